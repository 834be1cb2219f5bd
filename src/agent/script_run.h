// One run of the script, from fork to the end of its last process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/attempt_log.h"
#include "agent/launch.h"
#include "agent/output_copy.h"
#include "agent/poller.h"
#include "agent/status.h"

namespace trainyard::agent {

//   kLaunching ──▶ kRunning ──▶ kLeaving ──▶ kClearing ──▶ kOver
//        └──────────────────────────▲
//
// kLeaving: the first process has ended, and the others may finish: what they print, for a moment; all that
// they do, for the rest of the grace, if they were told to stop. kClearing: they are killed.
enum class RunStage : std::uint8_t { kLaunching, kRunning, kLeaving, kClearing, kOver };

class ScriptRun {
 public:
  struct Outputs {
    OutputCopy& out;
    OutputCopy& err;
  };
  ScriptRun(Poller& poller, Outputs copies, std::shared_ptr<AttemptLog> log);

  // Fails if there is no process to be had; then the run is over.
  Failure Start(const LaunchPlan& plan);

  // Tells all processes of the script to end, and kills them when the time has come; the earliest counts.
  void Stop(std::uint64_t kill_at);

  // What the poller has seen. Reads a bounded amount and never waits.
  void OnOutput(bool error_stream, std::uint64_t now);
  void OnReport();
  // A child has ended, or none is left.
  void OnEnded(pid_t pid, int wait_status, std::uint64_t now);
  void OnNoChildren() { no_children_ = true; }
  // To be called on every turn of the loop, and when deadline() has come.
  void Advance(std::uint64_t now);
  std::uint64_t deadline() const;

  RunStage stage() const { return stage_; }
  bool over() const { return stage_ == RunStage::kOver; }
  bool stopping() const { return kill_at_ != kNever; }
  pid_t pid() const { return child_.pid; }
  // Why it could not be started; empty: it could, as far as is known.
  const std::string& failure() const { return failure_; }
  ScriptExit exit() const { return exit_; }
  std::uint64_t ended_millis() const { return ended_millis_; }
  // Processes are left that cannot be killed.
  bool left_some() const { return left_some_; }

 private:
  bool ReadOnce(bool error_stream, std::uint64_t now);
  void WatchOutputs();
  void Tell(int signal);
  void Kill(std::uint64_t now);
  void Finish(std::uint64_t now);

  Poller& poller_;
  Outputs copies_;
  std::shared_ptr<AttemptLog> log_;
  Launched child_;
  RunStage stage_ = RunStage::kLaunching;
  std::string failure_;
  ScriptExit exit_;
  std::uint64_t ended_millis_ = 0;
  std::uint64_t kill_at_ = kNever;
  std::uint64_t next_kill_ = kNever;
  std::uint64_t leave_until_ = kNever;
  std::uint64_t clear_until_ = kNever;
  bool no_children_ = false;
  bool left_some_ = false;
};

}  // namespace trainyard::agent
