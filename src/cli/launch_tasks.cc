// trainyard launch list, status, logs, cancel, delete
#include <iostream>

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/jobs_common.h"
#include "cli/kv_common.h"
#include "cli/launch_common.h"
#include "cli/launch_follow.h"
#include "kube/http.h"
#include "view/diagnosis.h"
#include "view/parse.h"

namespace trainyard::cli {
namespace {

// A task as its launcher describes it, in the form of all jobs.
view::JobPage PageOf(const Document& task) {
  view::JobPage page{
      .job = view::ParseJob(view::Kind::kTask,
                            Object{{"metadata", Object{{"name", StringAt(task, {"name"})},
                                                       {"creationTimestamp", StringAt(task, {"created"})}}},
                                   {"status", Object{{"progress", task}}}})};
  view::Job& job = page.job;
  job.wanted = static_cast<int>(job.reported->members.size());
  for (const char* const field : {"strategy", "image", "script", "maxRestarts"}) {
    if (const Document* const value = Find(task, {"spec", field}))
      job.spec.emplace_back(field, value->is_string() ? std::string(Text(*value)) : PrintJson(*value));
  }
  for (const auto& [id, member] : job.reported->members)
    page.members.push_back({.name = Print(id), .pod = member.pod, .state = member.state});
  return page;
}

// What all of these commands take.
class TaskCommand : public Command {
 protected:
  void DeclareTask(Flags& flags) {
    flags.Argument("TASK", "Its name", task_);
    launcher_.Declare(flags);
  }
  std::string Path(std::string_view part = "") const {
    return StrCat("/tasks/", kube::PercentEncoded(task_), part);
  }

  std::string task_;
  LauncherFlags launcher_;
};

class LaunchList final : public TaskCommand {
 public:
  std::string name() const override { return "launch list"; }
  std::string summary() const override { return "List tasks"; }
  void Declare(Flags& flags) override {
    launcher_.Declare(flags);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "table, wide, json or name (table)",
                .one_of = {"table", "wide", "json", "name"}},
               output_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    TY_ASSIGN_OR_RETURN(const Document answer, launcher->Ask("GET", "/tasks"));
    const Array* const tasks = ArrayAt(answer, {"tasks"});
    if (tasks == nullptr) return absl::InternalError("the launcher's answer makes no sense");
    if (output_ == "json") return cli::Print(StrCat(PrintJson(*tasks), "\n"));
    std::vector<view::Job> jobs;
    for (const Document& task : *tasks) jobs.push_back(PageOf(task).job);
    if (output_ == "name") {
      for (const view::Job& job : jobs) std::cout << job.name << "\n";
    } else if (jobs.empty()) {
      std::cerr << "there are no tasks" << std::endl;
    } else {
      return cli::Print(JobTable(jobs, {.wide = output_ == "wide"}));
    }
    return absl::OkStatus();
  }

 private:
  std::string output_ = "table";
};

class LaunchStatus final : public TaskCommand {
 public:
  std::string name() const override { return "launch status"; }
  std::string summary() const override {
    return "Show how a task stands: its members, and why it was restarted";
  }
  void Declare(Flags& flags) override {
    DeclareTask(flags);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "table or json (table)",
                .one_of = {"table", "json"}},
               output_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    TY_ASSIGN_OR_RETURN(const Document task, launcher->Ask("GET", Path()));
    if (output_ == "json") return cli::Print(StrCat(PrintJson(task), "\n"));
    return cli::Print(view::PrintDescription(PageOf(task), absl::Now()));
  }

 private:
  std::string output_ = "table";
};

class LaunchLogs final : public TaskCommand {
 public:
  std::string name() const override { return "launch logs"; }
  std::string summary() const override { return "Show the output of a task's members"; }
  void Declare(Flags& flags) override {
    DeclareTask(flags);
    flags.Switch({.name = "-f,--follow", .help = "Until the task is over"}, logs_.follow);
    flags.Text({.name = "--member", .value = "NAME", .help = "Of one member alone, as worker-0"},
               logs_.member);
    flags.Number({.name = "--tail", .value = "N", .help = "So many lines of each pod (all)"}, logs_.tail);
  }
  absl::Status Run() override {
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    return ShowLogs(*launcher, task_, logs_, signals);
  }

 private:
  LogFlags logs_;
};

class LaunchCancel final : public TaskCommand {
 public:
  std::string name() const override { return "launch cancel"; }
  std::string summary() const override { return "Stop a task; it and its logs stay"; }
  void Declare(Flags& flags) override { DeclareTask(flags); }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    TY_RETURN_IF_ERROR(launcher->Ask("POST", Path("/cancel")));
    std::cout << "task " << task_ << " is being cancelled" << std::endl;
    return absl::OkStatus();
  }
};

class LaunchDelete final : public TaskCommand {
 public:
  std::string name() const override { return "launch delete"; }
  std::string summary() const override { return "End a task, and remove it with its logs"; }
  void Declare(Flags& flags) override { DeclareTask(flags); }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    TY_RETURN_IF_ERROR(launcher->Ask("DELETE", Path()));
    std::cout << "task " << task_ << " is deleted" << std::endl;
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Command> NewLaunchList() { return std::make_unique<LaunchList>(); }
std::unique_ptr<Command> NewLaunchStatus() { return std::make_unique<LaunchStatus>(); }
std::unique_ptr<Command> NewLaunchLogs() { return std::make_unique<LaunchLogs>(); }
std::unique_ptr<Command> NewLaunchCancel() { return std::make_unique<LaunchCancel>(); }
std::unique_ptr<Command> NewLaunchDelete() { return std::make_unique<LaunchDelete>(); }

}  // namespace trainyard::cli
