// trainyard worker
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/member_flags.h"
#include "cli/worker_process.h"
#include "master/worker/program_worker.h"
#include "ps/rpc/process.h"

namespace trainyard::cli {
namespace {

class WorkerCommand final : public Command {
 public:
  std::string name() const override { return "worker"; }
  std::string summary() const override {
    return "Work for the master of an elastic job whose model is a program";
  }
  std::string details() const override {
    return "Takes tasks from the master, reads their records, and tells it gradients, metrics or "
           "predictions, until\n"
           "the job is over. Pods of elastic jobs run it, with everything in the environment; by hand:\n\n"
           "  trainyard worker --master 127.0.0.1:50001 --token-file token";
  }

  void Declare(Flags& flags) override {
    member_.Declare(flags, "--worker-index", "Which worker this is (any that is free)");
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(member_.Take(options_));
    ps::TuneProcess();
    SignalStopper stopper;
    absl::Status ended = stopper.Run(
        [this](const auto& on_running) { return master::RunProgramWorker(options_, on_running); });
    // One that was told to stop has given back what it had: that is no failure.
    if (absl::IsCancelled(ended)) return absl::OkStatus();
    if (!ended.ok()) WriteTerminationLog(Message(ended));
    return ended;
  }

 private:
  master::WorkerOptions options_;
  MemberFlags member_;
};

}  // namespace

std::unique_ptr<Command> NewWorker() { return std::make_unique<WorkerCommand>(); }

}  // namespace trainyard::cli
