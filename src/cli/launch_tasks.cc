// trainyard launch list, status, logs, cancel, delete
#include <iostream>

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch_common.h"
#include "cli/launch_follow.h"
#include "kube/http.h"

namespace trainyard::cli {
namespace {

std::string AgeOf(std::string_view time) {
  absl::Time since;
  if (!absl::ParseTime(absl::RFC3339_full, std::string(time), &since, nullptr)) return "";
  return absl::FormatDuration(
      absl::Trunc(std::max(absl::Now() - since, absl::ZeroDuration()), absl::Seconds(1)));
}

int CountRunning(const Document& task) {
  int running = 0;
  if (const Array* const members = ArrayAt(task, {"members"})) {
    for (const Document& member : *members)
      running += StringAt(member, {"state"}).starts_with("running") ? 1 : 0;
  }
  return running;
}

std::size_t CountMembers(const Document& task) {
  const Array* const members = ArrayAt(task, {"members"});
  return members == nullptr ? 0 : members->size();
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
                .help = "table, json or name (table)",
                .one_of = {"table", "json", "name"}},
               output_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto launcher, launcher_.Connect(/*start=*/false));
    TY_ASSIGN_OR_RETURN(const Document answer, launcher->Ask("GET", "/tasks"));
    const Array* const tasks = ArrayAt(answer, {"tasks"});
    if (tasks == nullptr) return absl::InternalError("the launcher's answer makes no sense");
    if (output_ == "json") std::cout << PrintJson(*tasks) << "\n";
    std::vector<std::vector<std::string>> rows = {
        {"NAME", "PHASE", "STRATEGY", "RUNNING", "RESTARTS", "AGE"}};
    for (const Document& task : *tasks) {
      const std::string name(StringAt(task, {"name"}));
      if (output_ == "name") std::cout << name << "\n";
      rows.push_back(
          {name, std::string(StringAt(task, {"phase"})), std::string(StringAt(task, {"spec", "strategy"})),
           StrCat(CountRunning(task), "/", CountMembers(task)),
           std::to_string(IntAt(task, {"restarts"}).value_or(0)), AgeOf(StringAt(task, {"created"}))});
    }
    if (output_ == "table" && rows.size() == 1) std::cerr << "there are no tasks" << std::endl;
    if (output_ == "table" && rows.size() > 1) std::cout << Table(rows, 3);
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
    if (output_ == "json") {
      std::cout << PrintJson(task) << "\n";
      return absl::OkStatus();
    }
    std::cout << task_ << ": " << StringAt(task, {"phase"}) << ": " << StringAt(task, {"reason"}) << "\n"
              << "attempt " << IntAt(task, {"attempt"}).value_or(0) << ", "
              << IntAt(task, {"restarts"}).value_or(0) << " of "
              << IntAt(task, {"spec", "maxRestarts"}).value_or(0) << " restarts, made "
              << AgeOf(StringAt(task, {"created"})) << " ago\n\n";
    std::vector<std::vector<std::string>> rows = {{"MEMBER", "ATTEMPT", "POD", "STATE"}};
    if (const Array* const members = ArrayAt(task, {"members"})) {
      for (const Document& member : *members)
        rows.push_back({std::string(StringAt(member, {"name"})),
                        std::to_string(IntAt(member, {"attempt"}).value_or(0)),
                        std::string(StringAt(member, {"pod"})), std::string(StringAt(member, {"state"}))});
    }
    std::cout << Table(rows, 3);
    const Array* const history = ArrayAt(task, {"history"});
    if (history == nullptr || history->empty()) return absl::OkStatus();
    rows = {{"RESTARTED", "ATTEMPT", "BECAUSE"}};
    for (const Document& restart : *history)
      rows.push_back({StrCat(AgeOf(StringAt(restart, {"time"})), " ago"),
                      std::to_string(IntAt(restart, {"attempt"}).value_or(0)),
                      StrCat(StringAt(restart, {"member"}), " ", StringAt(restart, {"cause"}))});
    std::cout << "\n" << Table(rows, 3);
    return absl::OkStatus();
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
