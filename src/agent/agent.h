// The agent: one script at a time under the orders of a launcher. One thread, one epoll loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_log.h"
#include "agent/attempts.h"
#include "agent/options.h"
#include "agent/output_copy.h"
#include "agent/script_run.h"
#include "agent/server.h"
#include "agent/status.h"

namespace trainyard::agent {

// What a script has between SIGTERM and SIGKILL unless somebody says otherwise.
inline constexpr std::uint64_t kDefaultGraceMillis = 10'000;

struct AgentConfig {
  Options options;
  std::string token;
  std::vector<std::string> environment;  // NAME=VALUE: what a script inherits
  std::string incarnation;
  pid_t guard = 0;  // see guard.h; 0: there is none
};

// The agent itself is to end.
struct Ending {
  std::uint64_t last = kNever;         // whatever is left to do
  std::uint64_t flush_until = kNever;  // once the script is over
};

class Agent final : public Calls {
 public:
  explicit Agent(AgentConfig config);

  // Catches signals and listens; says where on standard error.
  Failure Open();
  // Until it is told to end. The exit code; nothing that it started is left.
  int Serve();

  bool Trusts(const Request& head) const override;
  std::optional<Answer> Refuse(const Request& head) override;
  Reply Handle(const Request& request) override;

 private:
  Reply HandleHealth(const Request& request);
  Reply HandleConfig(const Request& request);
  Reply HandleRun(const Request& request);
  Reply HandleStatus(const Request& request);
  Reply HandleLogs(const Request& request);
  Reply HandleStop(const Request& request);
  Reply HandleEnd(const Request& request);

  Answer StatusAnswer() const;
  Answer RunAnswer() const;
  const std::shared_ptr<AttemptLog>* FindLog(std::int64_t attempt) const;

  void TakeConfig(ScriptConfig config);
  void StartScript();
  void StopScript(std::uint64_t kill_at);
  void BeginEnd(std::uint64_t kill_at, std::uint64_t last);
  Attempts Standing() const;
  bool Active() const { return run_ != nullptr && !run_->over(); }
  // The script is over, or there is none.
  bool ShallEnd() const { return ending_.has_value() && !Active(); }

  void Dispatch(const Event& event, std::uint64_t now);
  void HandleSignals();
  void AdvanceRun(std::uint64_t now);
  bool IsFlushed(std::uint64_t now);
  std::uint64_t NextDeadline() const;
  void Change() { ++status_.version; }

  const AgentConfig config_;
  Poller poller_;
  OwnedFd signals_;
  OutputCopy own_out_;
  OutputCopy own_err_;
  LogSpace log_space_;
  Server server_;

  std::optional<ScriptConfig> script_;
  std::unique_ptr<ScriptRun> run_;  // of the present attempt; null: it was not begun
  std::shared_ptr<AttemptLog> log_;
  std::shared_ptr<AttemptLog> previous_log_;  // of the last attempt before that was begun
  std::int64_t previous_attempt_ = 0;
  Status status_;
  int exit_code_ = 0;              // of the last script
  std::optional<int> asked_code_;  // that the call which ends the agent names
  int signal_ = 0;                 // that ends the agent
  std::optional<Ending> ending_;
  bool killed_ = false;
};

}  // namespace trainyard::agent
