// trainyard pserver
#include "master/pserver/pserver.h"

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/member_flags.h"
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
    member_.Declare(flags, "--pserver-index", "Which pserver this is (0)");
    flags.Text({.name = "--listen",
                .value = "ADDRESS",
                .help = "Where workers come (the pod's IP, any port that is free)"},
               listen_);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(member_.Take(options_));
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
  MemberFlags member_;
  std::string listen_;
};

}  // namespace

std::unique_ptr<Command> NewPserver() { return std::make_unique<PserverCommand>(); }

}  // namespace trainyard::cli
