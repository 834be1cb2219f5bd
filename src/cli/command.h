// A command of the command line: what it is called, which flags it takes, and what it does. Each has a file
// of its own; only cli/parser.cc knows the library that parses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trainyard::cli {

// Where a command declares what it takes. What is bound is filled before Run() and keeps its value if it is
// not given. Every flag can also be set by an environment variable: TRAINYARD_ and its name, with the
// command's before it unless the flag means the same everywhere (--store is TRAINYARD_STORE, --limit of `kv
// range` TRAINYARD_KV_RANGE_LIMIT).
class Flags {
 public:
  virtual ~Flags() = default;
  struct Spec {
    std::string name;   // "--output" or "-o,--output"
    std::string value;  // what stands for the value in the help: "URL"
    std::string help;
    bool everywhere = false;
    std::vector<std::string> one_of;  // the only values that it takes
    std::string group;                // under which the help has it; "": among the others
  };
  virtual void Switch(const Spec& spec, bool& bound) = 0;
  virtual void Text(const Spec& spec, std::string& bound) = 0;
  // May be given several times, and adds to what is bound.
  virtual void Texts(const Spec& spec, std::vector<std::string>& bound) = 0;
  virtual void Number(const Spec& spec, std::optional<std::int64_t>& bound) = 0;
  virtual void Duration(const Spec& spec, std::optional<absl::Duration>& bound) = 0;
  // What stands without a flag, in order.
  virtual void Argument(const std::string& name, const std::string& help, std::string& bound) = 0;
  virtual void OptionalArgument(const std::string& name, const std::string& help,
                                std::optional<std::string>& bound) = 0;
  // All that stand without a flag; one at least.
  virtual void Arguments(const std::string& name, const std::string& help,
                         std::vector<std::string>& bound) = 0;
  // The same; there may be none.
  virtual void OptionalArguments(const std::string& name, const std::string& help,
                                 std::vector<std::string>& bound) = 0;
  // All that stands behind the command, as it was typed, --help too: another program understands it.
  virtual void Everything(std::vector<std::string>& bound) = 0;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;               // "kv get"
  virtual std::string summary() const = 0;            // one line, for the list
  virtual std::string details() const { return ""; }  // below the flags: examples
  virtual void Declare(Flags& flags) = 0;
  // What may stand as an argument, for a shell that completes it: names of jobs that there are. Quick, and
  // silent about what fails.
  virtual std::vector<std::string> Complete() { return {}; }
  // An error is printed as one line and ends the process with 1; one from UsageError() with 2, one from
  // FinalError() with 3.
  virtual absl::Status Run() = 0;
};

// What the user typed makes no sense: exit code 2.
absl::Status UsageError(std::string_view message);
bool IsUsageError(const absl::Status& status);

// The same again would fail again, whoever begins it: exit code 3.
absl::Status FinalError(absl::Status status);

// Parses the arguments, runs the command that they name, and returns the process's exit code: 0 done, 1
// failed, 2 misused, 3 failed for good. Results go to standard output, all else to standard error.
// `__complete WORDS` prints what the last of the words may become, and `man` all help as a man page.
int RunCommandLine(int argc, char** argv, const std::vector<Command*>& commands);

}  // namespace trainyard::cli
