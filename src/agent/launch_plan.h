// What is run, of what the agent was started with and what a launcher has configured. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/options.h"

namespace trainyard::agent {

struct LaunchPlan {
  // Programs, of which the first that there is runs; each is looked up on the script's PATH unless it has a
  // slash.
  std::vector<std::string> programs;
  std::vector<std::string> args;  // behind the program
  std::vector<std::string> env;   // NAME=VALUE
  std::string working_dir;        // empty: the agent's
  std::string script;             // a file that must be there; empty: the program alone counts

  bool operator==(const LaunchPlan&) const = default;
};

// `inherited`: the agent's own environment.
LaunchPlan PlanLaunch(const Options& options, const ScriptConfig& config,
                      const std::vector<std::string>& inherited);

}  // namespace trainyard::agent
