// trainyard get, describe, why, top
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/jobs_common.h"
#include "cli/kv_common.h"
#include "kube/error.h"
#include "view/diagnosis.h"
#include "view/reader.h"
#include "view/watches.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kGetTick = absl::Milliseconds(100);  // and no more often is looked again

class Get final : public Command {
 public:
  std::string name() const override { return "get"; }
  std::string summary() const override { return "List jobs of every kind, and where they stand"; }
  std::string details() const override {
    return "KIND is tfjobs, pytorchjobs, aitjs, elastic or tasks; without one, jobs of all kinds are "
           "listed.\n\n"
           "Examples:\n"
           "  trainyard get\n"
           "  trainyard get tfjobs -A -o wide\n"
           "  trainyard get elastic/mnist -o yaml\n"
           "  trainyard get -w";
  }
  void Declare(Flags& flags) override {
    flags.OptionalArguments("KIND|JOB", "What to list: a kind, or jobs as NAME or KIND/NAME", wanted_);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "table, wide, json, yaml or name (table)",
                .one_of = {"table", "wide", "json", "yaml", "name"}},
               output_);
    flags.Switch({.name = "-w,--watch", .help = "Go on, and print a job's line again when it changes"},
                 watch_);
    flags.Text({.name = "-l,--selector", .value = "LABELS", .help = "Only jobs with these labels"},
               filter_.selector);
    flags.Switch({.name = "-A,--all-namespaces", .help = "Those of every namespace"}, all_);
    jobs_.Declare(flags);
  }

  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(TakeWanted());
    const EndingSignals signals;
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    filter_.ns = all_ ? "" : client->ns();
    TY_ASSIGN_OR_RETURN(std::vector<view::Job> jobs, Read(*client));
    TY_RETURN_IF_ERROR(Show(jobs, *client));
    std::map<std::string, std::string> seen;
    Changed(jobs, seen);
    return watch_ ? Watch(*client, seen, signals) : absl::OkStatus();
  }

 private:
  absl::Status TakeWanted() {
    if (watch_ && output_ != "table" && output_ != "wide")
      return UsageError("-w prints lines: leave -o out, or give -o wide");
    for (const std::string& text : wanted_) {
      if (text == "jobs" || text == "job" || text == "all") continue;
      if (const auto kind = view::ParseKind(text); kind && text.find('/') == std::string::npos) {
        filter_.kinds.push_back(*kind);
        continue;
      }
      const auto name = view::ParseJobName(text);
      if (!name.ok()) return UsageError(Message(name.status()));
      names_.push_back(*name);
    }
    if (!names_.empty() && (all_ || !filter_.selector.empty()))
      return UsageError("jobs that are named are not chosen by -A or -l as well");
    // `get tfjobs mnist`, as with kubectl.
    if (filter_.kinds.size() == 1 && !names_.empty()) {
      for (view::JobName& name : names_) {
        if (!name.kind) name.kind = filter_.kinds.front();
      }
    }
    return absl::OkStatus();
  }

  absl::Status Watch(JobsClient& client, std::map<std::string, std::string>& seen,
                     const EndingSignals& signals) const {
    view::JobChanges changes(client.api(), Clock::System(), filter_.ns, filter_.kinds);
    while (!signals.AwaitFor(kGetTick)) {
      if (!changes.Await(absl::ZeroDuration())) continue;
      TY_ASSIGN_OR_RETURN(const std::vector<view::Job> jobs, Read(client));
      const std::vector<view::Job> changed = Changed(jobs, seen);
      if (!changed.empty()) TY_RETURN_IF_ERROR(ShowChanged(jobs, changed));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<view::Job>> Read(JobsClient& client) const {
    if (names_.empty()) {
      auto jobs = view::ListJobs(client.api(), filter_);
      if (!jobs.ok()) return Annotate(jobs.status(), client.where());
      return jobs;
    }
    std::vector<view::Job> jobs;
    for (const view::JobName& name : names_) {
      TY_ASSIGN_OR_RETURN(view::Job job, view::FindJob(client.api(), client.ns(), name));
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  // Jobs whose line is another than before.
  std::vector<view::Job> Changed(const std::vector<view::Job>& jobs,
                                 std::map<std::string, std::string>& seen) const {
    std::vector<view::Job> changed;
    for (const view::Job& job : jobs) {
      std::string line =
          StrCat(job.shown, " ", job.ready, "/", job.wanted, " ", job.restarts, " ", job.message);
      std::string& last = seen[StrCat(job.ns, "/", job.Id(), "/", job.uid)];
      if (last == line) continue;
      last = std::move(line);
      changed.push_back(job);
    }
    return changed;
  }

  absl::Status ShowRows(const std::vector<view::Job>& jobs) const {
    return Print(JobTable(jobs, {.all_namespaces = all_, .wide = output_ == "wide"}));
  }

  // Below what was shown before, and as wide.
  absl::Status ShowChanged(const std::vector<view::Job>& all, const std::vector<view::Job>& changed) const {
    std::vector<view::Job> both = all;
    std::ranges::copy(changed, std::back_inserter(both));
    const std::string table = JobTable(both, {.all_namespaces = all_, .wide = output_ == "wide"});
    const std::vector<std::string_view> lines = Split(std::string_view(table), '\n');
    std::string out;
    for (std::size_t i = all.size() + 1; i <= both.size(); ++i) StrAppend(out, lines[i], "\n");
    return Print(out);
  }

  absl::Status Show(const std::vector<view::Job>& jobs, const JobsClient& client) const {
    if (output_ == "name") {
      std::string out;
      for (const view::Job& job : jobs) StrAppend(out, job.Id(), "\n");
      return Print(out);
    }
    if (output_ == "json" || output_ == "yaml") return ShowObjects(jobs);
    if (!jobs.empty()) return ShowRows(jobs);
    std::cerr << "there are no jobs" << (all_ ? "" : StrCat(" in namespace ", client.ns())) << " ("
              << client.where() << ")" << std::endl;
    return absl::OkStatus();
  }

  absl::Status ShowObjects(const std::vector<view::Job>& jobs) const {
    Document document;
    if (names_.size() == 1 && jobs.size() == 1) {
      document = jobs.front().object;
    } else {
      Array items;
      for (const view::Job& job : jobs) items.push_back(job.object);
      document = Object{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
    }
    return Print(output_ == "json" ? StrCat(PrintJson(document), "\n") : PrintYaml(document));
  }

  std::vector<std::string> wanted_;
  std::string output_ = "table";
  bool watch_ = false;
  bool all_ = false;
  view::JobFilter filter_;
  std::vector<view::JobName> names_;
  JobsFlags jobs_;
};

class Describe final : public Command {
 public:
  std::string name() const override { return "describe"; }
  std::string summary() const override { return "Show all that is known of a job"; }
  std::string details() const override { return "Example:\n  trainyard describe tfjob/dist-mnist"; }
  void Declare(Flags& flags) override {
    flags.Argument("JOB", "NAME or KIND/NAME", job_);
    jobs_.Declare(flags);
  }
  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    TY_ASSIGN_OR_RETURN(view::Job job, FindNamed(*client, job_));
    TY_ASSIGN_OR_RETURN(const view::JobPage page, view::ReadPage(client->api(), std::move(job)));
    return Print(view::PrintDescription(page, absl::Now()));
  }

 private:
  std::string job_;
  JobsFlags jobs_;
};

class Why final : public Command {
 public:
  std::string name() const override { return "why"; }
  std::string summary() const override { return "Tell why a job is not running, was restarted or has ended"; }
  std::string details() const override {
    return "The present state in a sentence, what it waits for, the pods that are gone with their causes and "
           "last\n"
           "lines, and the next thing to try.\n\n"
           "Examples:\n"
           "  trainyard why mnist\n"
           "  trainyard why tfjob/dist-mnist --lines 50";
  }
  void Declare(Flags& flags) override {
    flags.Argument("JOB", "NAME or KIND/NAME", job_);
    flags.Number({.name = "--lines", .value = "N", .help = "Lines of each log (20)"}, lines_);
    flags.Number({.name = "--restarts", .value = "N", .help = "Pods that are told of, the newest (10)"},
                 restarts_);
    flags.Text(
        {.name = "-o,--output", .value = "FORMAT", .help = "text or json (text)", .one_of = {"text", "json"}},
        output_);
    jobs_.Declare(flags);
  }
  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    view::WhyOptions options;
    if (lines_.value_or(0) < 0 || restarts_.value_or(0) < 0)
      return UsageError("--lines and --restarts must not be below 0");
    if (lines_) options.lines = static_cast<std::size_t>(*lines_);
    if (restarts_) options.restarts = static_cast<std::size_t>(*restarts_);
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    TY_ASSIGN_OR_RETURN(view::Job job, FindNamed(*client, job_));
    TY_ASSIGN_OR_RETURN(const view::JobPage page, view::ReadPage(client->api(), std::move(job)));
    if (output_ == "json") return Print(StrCat(PrintJson(view::WhyToJson(page, absl::Now())), "\n"));
    return Print(view::PrintWhy(page, absl::Now(), options));
  }

 private:
  std::string job_;
  std::optional<std::int64_t> lines_, restarts_;
  std::string output_ = "text";
  JobsFlags jobs_;
};

constexpr absl::Duration kTopRefresh = absl::Seconds(1);
constexpr absl::Duration kFirstWindow = absl::Milliseconds(300);

// Records a second, as the job reports them; "-": it does not.
std::string PrintRate(std::optional<double> rate) { return rate ? fmt::format("{:.0f}", *rate) : "-"; }

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
        StrCat(page.job.Id(), "  ", page.job.shown.empty() ? "-" : page.job.shown, "  ", page.job.ready, "/",
               page.job.wanted, " ready  ", page.job.restarts, " restarts");
    for (const auto& [name, value] : page.job.progress) StrAppend(out, "  ", name, " ", value);
    const job::Progress reported = page.job.reported.value_or(job::Progress());
    if (reported.rate) StrAppend(out, "  ", PrintRate(reported.rate), " records/s");
    out += "\n\n";
    const bool tells = page.job.reported && reported.reporter == job::Reporter::kMaster;
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
        const auto id = job::ParseMember(member.name);
        const auto worker = id ? reported.members.find(*id) : reported.members.end();
        const bool works = worker != reported.members.end();
        row.insert(row.end(), {works ? PrintRate(worker->second.rate) : "-",
                               works ? StrCat(worker->second.version) : "-"});
      }
      row.insert(row.end(), {StrCat(member.restarts), member.node.empty() ? "-" : member.node,
                             PrintAge(now - member.created)});
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

std::unique_ptr<Command> NewGet() { return std::make_unique<Get>(); }
std::unique_ptr<Command> NewDescribe() { return std::make_unique<Describe>(); }
std::unique_ptr<Command> NewWhy() { return std::make_unique<Why>(); }

std::unique_ptr<Command> NewTop() { return std::make_unique<Top>(); }

}  // namespace trainyard::cli
