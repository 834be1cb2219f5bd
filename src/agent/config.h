// What a launcher configures: the environment of one attempt, and what is run in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// What begins so is the agent's own; no script sees it.
inline constexpr std::string_view kOwnVariables = "TRAINYARD_AGENT_";

struct ScriptConfig {
  std::int64_t attempt = 1;
  std::map<std::string, std::string> env;
  std::vector<std::string> command;  // empty: the script that the agent was started with
  std::string working_dir;           // empty: the agent's

  bool operator==(const ScriptConfig&) const = default;
};

struct ParsedConfig {
  std::optional<ScriptConfig> config;
  std::string wrong;  // without one: what, and what to do
};

// Of {"attempt": 1, "env": {…}, "command": […], "workingDir": "…"}, all optional. An object of texts alone,
// without "env", is the environment itself.
ParsedConfig ParseConfig(std::string_view body);

}  // namespace trainyard::agent
