#include "agent/launch_plan.h"

#include <map>

namespace trainyard::agent {
namespace {

std::vector<std::string> PlanEnvironment(const ScriptConfig& config,
                                         const std::vector<std::string>& inherited) {
  // Python holds back what it prints to a pipe; nobody wants to wait for a log.
  std::map<std::string, std::string> env{{"PYTHONUNBUFFERED", "1"}};
  for (const std::string& variable : inherited) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || variable.starts_with(kOwnVariables)) continue;
    env[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  for (const auto& [name, value] : config.env) env[name] = value;
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.emplace_back(name).append("=").append(value);
  return out;
}

}  // namespace

LaunchPlan PlanLaunch(const Options& options, const ScriptConfig& config,
                      const std::vector<std::string>& inherited) {
  LaunchPlan plan;
  plan.env = PlanEnvironment(config, inherited);
  plan.working_dir = config.working_dir.empty() ? options.working_dir : config.working_dir;
  if (!config.command.empty()) {
    plan.programs = {config.command[0]};
    plan.args.assign(config.command.begin() + 1, config.command.end());
    return plan;
  }
  plan.script = options.script;
  if (!options.script.ends_with(".py")) {
    const bool has_folder = options.script.find('/') != std::string::npos;
    plan.programs = {has_folder ? options.script : "./" + options.script};
    return plan;
  }
  plan.args = {options.script};
  plan.programs = options.python.empty() ? std::vector<std::string>{"python3", "python"}
                                         : std::vector<std::string>{options.python};
  return plan;
}

}  // namespace trainyard::agent
