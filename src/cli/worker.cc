// trainyard worker
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
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
    flags.Text({.name = "--master", .value = "HOST:PORT", .help = "Where the master is", .everywhere = true},
               options_.master);
    flags.Number({.name = "--worker-index",
                  .value = "N",
                  .help = "Which worker this is (any that is free)",
                  .everywhere = true},
                 index_);
    flags.Text({.name = "--token-file",
                .value = "FILE",
                .help = "The job's token: whoever lacks it is refused ($TRAINYARD_JOB_TOKEN)"},
               token_file_);
    flags.Text({.name = "--pod-name",
                .value = "NAME",
                .help = "What the master calls it (the host's name)",
                .everywhere = true},
               options_.pod);
    flags.Duration({.name = "--patience",
                    .value = "TIME",
                    .help = "How long it waits for a master that cannot be reached (10m)"},
                   patience_);
  }

  absl::Status Run() override {
    if (options_.master.empty())
      return UsageError("--master is missing: say where the master is, as HOST:PORT");
    if (index_ && (*index_ < 0 || *index_ > INT32_MAX))
      return UsageError("--worker-index must not be below 0");
    if (index_) options_.index = static_cast<int>(*index_);
    if (patience_) options_.patience = *patience_;
    TY_ASSIGN_OR_RETURN(options_.token, JobToken(token_file_));
    if (options_.pod.empty()) options_.pod = HostName();
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
  std::optional<std::int64_t> index_;
  std::optional<absl::Duration> patience_;
  std::string token_file_;
};

}  // namespace

std::unique_ptr<Command> NewWorker() { return std::make_unique<WorkerCommand>(); }

}  // namespace trainyard::cli
