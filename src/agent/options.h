// What the agent is told when it is started: flags, and an environment variable for each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::agent {

enum class Action : std::uint8_t { kServe, kInstall, kKeep, kHelp, kVersion };

struct Options {
  Action action = Action::kServe;
  std::string listen = "0.0.0.0:7896";
  std::string token_file;
  std::string script = "exec.py";
  std::string python;                     // empty: the first of python3 and python
  std::string working_dir;                // empty: the current one
  std::string state_dir;                  // empty: $TMPDIR or /tmp
  std::string to;                         // of an installation
  std::vector<std::string> command;       // to keep running
  std::optional<std::uint64_t> restarts;  // of that, at most; none: no limit
  std::uint64_t log_bytes = std::uint64_t{64} << 20;
  std::uint64_t term_grace_millis = 8'000;
  std::uint64_t idle_timeout_millis = 30'000;
  std::uint64_t request_timeout_millis = 10'000;
};

struct ParsedOptions {
  Options options;
  std::string wrong;  // one line; empty: nothing is
};

// The value of an environment variable, null if there is none.
using Environment = std::function<const char*(const std::string&)>;
ParsedOptions ParseOptions(const std::vector<std::string>& args, const Environment& environment);

std::string Help();

// "8", "8s", "0.5s", "500ms", "2m"; none: it is no time.
std::optional<std::uint64_t> ParseMillis(const std::string& text);
// "1048576", "64Mi", "1Gi".
std::optional<std::uint64_t> ParseBytes(const std::string& text);

}  // namespace trainyard::agent
