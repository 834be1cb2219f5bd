// trainyard launch, run
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "base/clock.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/launch_common.h"
#include "cli/launch_follow.h"
#include "kube/http.h"
#include "launch/task.h"

namespace trainyard::cli {
namespace {

class Launch final : public Command {
 public:
  std::string name() const override { return "launch"; }
  std::string summary() const override {
    return "Run a training script in several members, with TF_CONFIG and the like set";
  }
  std::string details() const override {
    return "The script is run as it is: in each member with TF_CONFIG, NUM_WORKERS, and MASTER_ADDR, "
           "MASTER_PORT, RANK and\n"
           "WORLD_SIZE set. Their output is shown as it comes, and the exit code is the task's: 0 if it "
           "succeeded. When a\n"
           "member is lost the others are stopped and all are started again (AllReduce), or it comes back "
           "alone\n"
           "(a worker of ParameterServer). Ctrl-C asks whether to cancel the task or to leave it running.\n\n"
           "Examples:\n"
           "  trainyard launch --worker-num 4 --task test                     # exec.py of this folder, on "
           "this machine\n"
           "  trainyard launch --master http://10.0.0.5:7897 --strategy ParameterServer --ps-num 2 "
           "--worker-num 4 \\\n"
           "      --image registry.example/train --task test\n"
           "  trainyard launch list";
  }

  void Declare(Flags& flags) override {
    launcher_.Declare(flags);
    const std::string what = "Task";
    flags.Text(
        {.name = "--task", .value = "NAME", .help = "What the task is called (default)", .group = what},
        spec_.name);
    flags.Text({.name = "--strategy",
                .value = "NAME",
                .help = "AllReduce or ParameterServer (AllReduce)",
                .one_of = {"AllReduce", "ParameterServer"},
                .group = what},
               strategy_);
    flags.Number({.name = "--worker-num", .value = "N", .help = "Workers (1)", .group = what}, workers_);
    flags.Number({.name = "--ps-num", .value = "N", .help = "Parameter servers (0)", .group = what}, ps_);
    flags.Switch({.name = "--chief",
                  .help = "One member more that coordinates, as TensorFlow's ParameterServerStrategy wants",
                  .group = what},
                 spec_.chief);
    flags.Switch({.name = "--evaluator", .help = "One member more that evaluates", .group = what},
                 spec_.evaluator);
    flags.Number({.name = "--min-workers",
                  .value = "N",
                  .help = "AllReduce: go on with so few, where there is no room for more",
                  .group = what},
                 least_);
    flags.Number({.name = "--max-workers",
                  .value = "N",
                  .help = "AllReduce: take so many, where there is room",
                  .group = what},
                 most_);
    const std::string runs = "What runs";
    flags.Text(
        {.name = "--image",
         .value = "IMAGE",
         .help = "Has the script in its working directory; on the embedded cluster a folder (this one)",
         .group = runs},
        spec_.image);
    flags.Text({.name = "--script", .value = "FILE", .help = "What is run (exec.py)", .group = runs},
               spec_.script);
    flags.Text(
        {.name = "--working-dir", .value = "DIR", .help = "Where it is run (the image's)", .group = runs},
        spec_.working_dir);
    flags.Texts({.name = "--env",
                 .value = "NAME=VALUE",
                 .help = "A variable of the members' environment; may be repeated",
                 .group = runs},
                env_);
    flags.Text({.name = "--cpu",
                .value = "AMOUNT",
                .help = "What each member asks for, as 1 or 500m",
                .group = runs},
               spec_.cpu);
    flags.Text({.name = "--memory",
                .value = "AMOUNT",
                .help = "Likewise, as 512Mi; also the most it gets",
                .group = runs},
               spec_.memory);
    flags.Text({.name = "--gpu", .value = "N", .help = "Likewise", .group = runs}, spec_.gpu);
    const std::string failing = "Failures";
    flags.Number({.name = "--max-restarts",
                  .value = "N",
                  .help = "So often it is started again before it fails (3)",
                  .group = failing},
                 restarts_);
    flags.Duration({.name = "--grace",
                    .value = "TIME",
                    .help = "Between SIGTERM and SIGKILL, when scripts are stopped (10s)",
                    .group = failing},
                   grace_);
    flags.Duration({.name = "--agent-timeout",
                    .value = "TIME",
                    .help = "A member whose agent does not answer for so long is lost (1m)",
                    .group = failing},
                   timeout_);
    flags.Switch({.name = "--detach", .help = "Return at once; `trainyard launch status` tells how it goes"},
                 detach_);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(TakeFlags());
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/true));
    if (launcher->embedded()) TY_RETURN_IF_ERROR(TakeFolder());
    const absl::StatusOr<Document> made = launcher->Ask("POST", "/tasks", launch::Print(spec_));
    if (absl::IsInvalidArgument(made.status())) return UsageError(Message(made.status()));
    TY_RETURN_IF_ERROR(made);
    if (detach_) {
      std::cout << "task " << spec_.name << " is made; see `trainyard launch status " << spec_.name << "`"
                << std::endl;
      return absl::OkStatus();
    }
    return FollowTask(*launcher, spec_.name, signals).status();
  }

 private:
  absl::Status TakeFlags() {
    if (spec_.name.empty()) spec_.name = "default";
    if (!strategy_.empty()) spec_.strategy = *launch::ParseStrategy(strategy_);
    for (const auto& [flag, given, bound] :
         {std::tuple("--worker-num", &workers_, &spec_.workers), std::tuple("--ps-num", &ps_, &spec_.ps),
          std::tuple("--min-workers", &least_, &spec_.min_workers),
          std::tuple("--max-workers", &most_, &spec_.max_workers),
          std::tuple("--max-restarts", &restarts_, &spec_.max_restarts)}) {
      TY_RETURN_IF_ERROR(TakeInt(flag, *given, *bound));
    }
    if (grace_) spec_.grace = *grace_;
    if (timeout_) spec_.agent_timeout = *timeout_;
    TY_RETURN_IF_ERROR(TakeVariables(env_, spec_.env));
    const absl::Status valid = launch::Validate(spec_);
    return valid.ok() ? valid : UsageError(Message(valid));
  }

  // On this machine an image is a folder, or only a name: then the script is in the folder of this process.
  // What is missing can be seen before anything is made.
  absl::Status TakeFolder() {
    namespace fs = std::filesystem;
    std::error_code error;
    const bool named = !TakeImageFolder(spec_.image);
    if (named && spec_.working_dir.empty()) spec_.working_dir = fs::current_path(error).string();
    if (!spec_.working_dir.empty()) spec_.working_dir = AbsolutePath(spec_.working_dir);
    const fs::path dir = spec_.working_dir.empty() ? fs::path(spec_.image) : fs::path(spec_.working_dir);
    if (!fs::exists(dir / spec_.script, error))
      return UsageError(StrCat("there is no ", spec_.script, " in ", dir.string(),
                               ": name it with --script, and its folder with --image"));
    return absl::OkStatus();
  }

  LauncherFlags launcher_;
  launch::TaskSpec spec_;
  std::string strategy_;
  std::optional<std::int64_t> workers_, ps_, least_, most_, restarts_;
  std::optional<absl::Duration> grace_, timeout_;
  std::vector<std::string> env_;
  bool detach_ = false;
};

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

std::unique_ptr<Command> NewLaunch() { return std::make_unique<Launch>(); }

std::unique_ptr<Command> NewRun() { return std::make_unique<RunCommand>(); }

}  // namespace trainyard::cli
