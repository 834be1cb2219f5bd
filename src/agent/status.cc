#include "agent/status.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <string_view>

#include "agent/json_text.h"
#include "agent/sys.h"

namespace trainyard::agent {
namespace {

constexpr int kNotStartedCode = 127;

std::string_view Name(State state) {
  switch (state) {
    case State::kIdle:
      return "idle";
    case State::kConfigured:
      return "configured";
    case State::kRunning:
      return "running";
    case State::kStopping:
      return "stopping";
    case State::kExited:
      return "exited";
    case State::kFailed:
      return "failed";
  }
  return "unknown";
}

class Fields {
 public:
  void Add(std::string_view name, std::string_view json) {
    text_.append(text_.empty() ? "{" : ", ").append(Quote(name)).append(": ").append(json);
  }
  void Text(std::string_view name, std::string_view value) { Add(name, Quote(value)); }
  template <typename T>
  void Number(std::string_view name, const std::optional<T>& value) {
    Add(name, value ? std::to_string(*value) : "null");
  }
  void Time(std::string_view name, const std::optional<std::uint64_t>& millis) {
    Add(name, millis ? Quote(PrintTime(*millis)) : "null");
  }
  std::string Take() { return std::move(text_) + "}\n"; }

 private:
  std::string text_;
};

}  // namespace

ScriptExit ScriptExit::FromWait(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status)};
}

std::string PrintExit(const ScriptExit& exit) {
  if (!exit.signal) return "exited " + std::to_string(exit.code.value_or(0));
  std::string text = "was killed by signal " + std::to_string(*exit.signal);
  const char* name = ::sigabbrev_np(*exit.signal);
  if (name != nullptr) text.append(" (SIG").append(name).append(")");
  return text;
}

std::string PrintStatus(const Status& status) {
  Fields fields;
  fields.Text("incarnation", status.incarnation);
  fields.Number("version", std::optional(status.version));
  fields.Text("state", Name(status.state));
  fields.Number("attempt", status.attempt);
  fields.Number("pid", status.pid);
  fields.Number("exitCode", status.exit.code);
  fields.Number("signal", status.exit.signal);
  fields.Text("reason", status.reason);
  fields.Time("startedAt", status.started_millis);
  fields.Time("endedAt", status.ended_millis);
  fields.Number("logBytes", std::optional(status.log_bytes));
  fields.Number("logDropped", std::optional(status.log_dropped));
  fields.Number("copyDropped", std::optional(status.copy_dropped));
  fields.Text("logs", status.logs_on_disk ? "disk" : "memory");
  return fields.Take();
}

int ExitCodeOf(const Status& status) {
  if (status.state == State::kFailed) return kNotStartedCode;
  if (status.exit.signal) return 128 + *status.exit.signal;
  return status.exit.code.value_or(0);
}

}  // namespace trainyard::agent
