// trainyard run
#include <iostream>

#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/launch_common.h"
#include "cli/launch_follow.h"
#include "launch/task.h"

namespace trainyard::cli {
namespace {

class RunCommand final : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override { return "Run a command in several members, as torchrun does"; }
  std::string details() const override {
    return "Each member has RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and TF_CONFIG set, and runs in this "
           "folder. Their\n"
           "output is shown as it comes; when one fails all are started again, up to --max-restarts times. "
           "The exit code\n"
           "is 0 if all succeeded. A run that failed is kept, for `trainyard why`; --keep keeps any.\n\n"
           "Examples:\n"
           "  trainyard run --workers 4 -- python3 train.py --epochs 3\n"
           "  trainyard run -- sh -c 'echo member $RANK of $WORLD_SIZE'";
  }
  void Declare(Flags& flags) override {
    flags.Arguments("COMMAND", "What is run, behind --", spec_.command);
    flags.Number({.name = "--workers", .value = "N", .help = "Members (1)"}, workers_);
    flags.Text({.name = "--name", .value = "NAME", .help = "What the run is called (run- and five letters)"},
               spec_.name);
    flags.Texts(
        {.name = "--env", .value = "NAME=VALUE", .help = "A variable of their environment; may be repeated"},
        env_);
    flags.Number(
        {.name = "--max-restarts", .value = "N", .help = "So often it is started again before it fails (0)"},
        restarts_);
    flags.Text({.name = "--image",
                .value = "IMAGE",
                .help = "Where it is run: on the embedded cluster a folder (this one)"},
               spec_.image);
    flags.Text({.name = "--cpu", .value = "AMOUNT", .help = "What each member asks for, as 1 or 500m"},
               spec_.cpu);
    flags.Text({.name = "--memory", .value = "AMOUNT", .help = "Likewise, as 512Mi; also the most it gets"},
               spec_.memory);
    flags.Text({.name = "--gpu", .value = "N", .help = "Likewise"}, spec_.gpu);
    flags.Switch({.name = "--keep", .help = "Keep the run when it has succeeded"}, keep_);
    launcher_.Declare(flags);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(TakeFlags());
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/true));
    if (launcher->embedded()) TakeImageFolder(spec_.image);
    const absl::StatusOr<Document> made = launcher->Ask("POST", "/tasks", launch::Print(spec_));
    if (absl::IsInvalidArgument(made.status())) return UsageError(Message(made.status()));
    TY_RETURN_IF_ERROR(made);
    const absl::StatusOr<Followed> result = FollowTask(*launcher, spec_.name, signals);
    if (result.ok() && *result == Followed::kSucceeded && !keep_)
      launcher->Ask("DELETE", StrCat("/tasks/", spec_.name)).IgnoreError();
    if (result.ok() || absl::IsCancelled(result.status())) return result.status();
    return Annotate(result.status(), StrCat("see `trainyard why task/", spec_.name, "`"));
  }

 private:
  absl::Status TakeFlags() {
    if (spec_.name.empty())
      spec_.name = StrCat("run-", Hex32(static_cast<std::uint32_t>(IdSource::Random().Next())).substr(0, 5));
    spec_.max_restarts = 0;
    TY_RETURN_IF_ERROR(TakeInt("--workers", workers_, spec_.workers));
    TY_RETURN_IF_ERROR(TakeInt("--max-restarts", restarts_, spec_.max_restarts));
    TY_RETURN_IF_ERROR(TakeVariables(env_, spec_.env));
    const absl::Status valid = launch::Validate(spec_);
    return valid.ok() ? valid : UsageError(Message(valid));
  }

  LauncherFlags launcher_;
  launch::TaskSpec spec_;
  std::optional<std::int64_t> workers_, restarts_;
  std::vector<std::string> env_;
  bool keep_ = false;
};

}  // namespace

std::unique_ptr<Command> NewRun() { return std::make_unique<RunCommand>(); }

}  // namespace trainyard::cli
