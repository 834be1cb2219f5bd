// trainyard pserver
#include "master/pserver/pserver.h"

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/worker_process.h"
#include "ps/rpc/process.h"

namespace trainyard::cli {
namespace {

class PserverCommand final : public Command {
 public:
  std::string name() const override { return "pserver"; }
  std::string summary() const override { return "Keep a part of an elastic job's model"; }
  std::string details() const override {
    return "Takes gradients from workers, learns from those that the master says count, and gives the model "
           "out,\n"
           "until the job is over. Pods of elastic jobs with --pservers run it, with everything in the "
           "environment;\n"
           "by hand:\n\n"
           "  trainyard pserver --master 127.0.0.1:50001 --pserver-index 0 --token-file token";
  }

  void Declare(Flags& flags) override {
    flags.Text({.name = "--master", .value = "HOST:PORT", .help = "Where the master is", .everywhere = true},
               options_.master);
    flags.Number(
        {.name = "--pserver-index", .value = "N", .help = "Which pserver this is (0)", .everywhere = true},
        index_);
    flags.Text({.name = "--listen",
                .value = "ADDRESS",
                .help = "Where workers come (the pod's IP, any port that is free)"},
               listen_);
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
      return UsageError("--pserver-index must not be below 0");
    if (index_) options_.index = static_cast<int>(*index_);
    if (patience_) options_.patience = *patience_;
    TY_ASSIGN_OR_RETURN(options_.token, JobToken(token_file_));
    if (options_.pod.empty()) options_.pod = HostName();
    options_.listen = listen_.empty() ? PodAddress(0) : listen_;
    ps::TuneProcess(ps::Connections::kMany);
    SignalStopper stopper;
    absl::Status ended =
        stopper.Run([this](const auto& on_running) { return master::RunPserver(options_, on_running); });
    // Nobody would begin one again that ended as it should.
    if (absl::IsCancelled(ended)) ended = absl::UnavailableError("it was stopped before the job was over");
    if (!ended.ok()) WriteTerminationLog(Message(ended));
    return ended;
  }

 private:
  master::PserverOptions options_;
  std::optional<std::int64_t> index_;
  std::optional<absl::Duration> patience_;
  std::string listen_;
  std::string token_file_;
};

}  // namespace

std::unique_ptr<Command> NewPserver() { return std::make_unique<PserverCommand>(); }

}  // namespace trainyard::cli
