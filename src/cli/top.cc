// trainyard top
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/jobs_common.h"
#include "cli/kv_common.h"
#include "kube/error.h"
#include "kube/rfc3339.h"
#include "view/reader.h"
#include "view/usage.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kTopRefresh = absl::Seconds(1);
constexpr absl::Duration kFirstWindow = absl::Milliseconds(300);

// Records a second, as the job reports them; "-": it does not.
std::string PrintRate(const Document& told, Path path) {
  const auto rate = NumberAt(told, path);
  return rate ? fmt::format("{:.0f}", *rate) : "-";
}

class Top final : public Command {
 public:
  std::string name() const override { return "top"; }
  std::string summary() const override { return "Show what a job's members use, live"; }
  std::string details() const override {
    return "On a cluster of several machines metrics-server must run; the embedded cluster measures by "
           "itself.\n\n"
           "Examples:\n  trainyard top mnist\n  trainyard top mnist --once";
  }
  void Declare(Flags& flags) override {
    flags.Argument("JOB", "NAME or KIND/NAME", job_);
    flags.Switch({.name = "--once", .help = "Print it once, as it does where there is no terminal"}, once_);
    jobs_.Declare(flags);
  }
  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    const EndingSignals signals;
    const Terminal terminal = TerminalAt(STDOUT_FILENO);
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    TY_ASSIGN_OR_RETURN(view::Job job, FindNamed(*client, job_));
    if (once_ || !terminal.is_one) {
      TY_ASSIGN_OR_RETURN(const std::string text, Draw(*client, std::move(job)));
      return Print(text);
    }
    while (true) {
      const view::JobName name{.kind = job.kind, .name = job.name};
      const bool over = job.over;
      TY_ASSIGN_OR_RETURN(const std::string text, Draw(*client, std::move(job)));
      // Over what was there, without a flicker.
      std::string screen = "\x1b[H";
      for (const std::string_view line : Split(text, '\n'))
        StrAppend(screen, Fit(line, terminal.width), "\x1b[K\r\n");
      TY_RETURN_IF_ERROR(Print(StrCat(screen, "\x1b[J")));
      if (over || signals.AwaitFor(kTopRefresh)) return absl::OkStatus();
      TY_ASSIGN_OR_RETURN(job, view::FindJob(client->api(), client->ns(), name));
    }
  }

 private:
  static std::string Fit(std::string_view line, std::size_t width) {
    return std::string(line.substr(0, width));
  }

  absl::StatusOr<std::string> Draw(JobsClient& client, view::Job job) {
    // The first time, usage is known only as what was used in all.
    if (std::exchange(first_, false)) {
      view::ReadUsage(client.api(), job.ns).IgnoreError();
      absl::SleepFor(kFirstWindow);
      TY_ASSIGN_OR_RETURN(job, view::FindJob(client.api(), job.ns, {.kind = job.kind, .name = job.name}));
    }
    TY_ASSIGN_OR_RETURN(const view::JobPage page, view::ReadMembers(client.api(), std::move(job)));
    const auto usage = view::ReadUsage(client.api(), page.job.ns);
    const absl::Time now = absl::Now();
    std::string out =
        StrCat(page.job.Id(), "  ", page.job.state.empty() ? "-" : page.job.state, "  ", page.job.ready, "/",
               page.job.wanted, " ready  ", page.job.restarts, " restarts");
    for (const auto& [name, value] : page.job.progress) StrAppend(out, "  ", name, " ", value);
    if (const std::string rate = PrintRate(page.job.told, {"rate"}); rate != "-")
      StrAppend(out, "  ", rate, " records/s");
    out += "\n\n";
    const bool tells = ObjectAt(page.job.told, {"members"}) != nullptr;
    std::vector<std::vector<std::string>> rows = {{"MEMBER", "STATE", "CPU", "MEMORY"}};
    if (tells) rows[0].insert(rows[0].end(), {"RECORDS/S", "VERSION"});
    rows[0].insert(rows[0].end(), {"RESTARTS", "NODE", "AGE"});
    for (const view::Member& member : page.members) {
      std::string cpu = "-";
      std::string memory = "-";
      if (usage.ok()) {
        if (const auto found = usage->find(member.pod); found != usage->end()) {
          cpu = fmt::format("{:.2f}", found->second.processors);
          memory = view::PrintBytes(found->second.memory_bytes);
        }
      }
      std::vector<std::string> row = {member.name, member.state, cpu, memory};
      if (tells) {
        const auto version = IntAt(page.job.told, {"members", member.name, "version"});
        row.insert(row.end(), {PrintRate(page.job.told, {"members", member.name, "rate"}),
                               version ? StrCat(*version) : "-"});
      }
      row.insert(row.end(), {StrCat(member.restarts), member.node.empty() ? "-" : member.node,
                             kube::PrintAge(now - member.created)});
      rows.push_back(std::move(row));
    }
    out += Table(rows, 3);
    if (!usage.ok())
      StrAppend(out, "\nWhat they use is not known: ",
                kube::IsNotFound(usage.status()) ? "the cluster has no metrics (metrics-server)"
                                                 : Message(usage.status()),
                ".\n");
    return out;
  }

  std::string job_;
  bool once_ = false;
  JobsFlags jobs_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<Command> NewTop() { return std::make_unique<Top>(); }

}  // namespace trainyard::cli
