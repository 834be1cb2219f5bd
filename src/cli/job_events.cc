// trainyard events
#include <iostream>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/event_lines.h"
#include "cli/jobs_common.h"
#include "cli/kv_common.h"
#include "kube/error.h"
#include "kube/pod.h"
#include "view/diagnosis.h"
#include "view/parse.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kJobEventsTick = absl::Milliseconds(100);

// Whose an event is: asked of its pod, once for each.
class Belongings {
 public:
  Belongings(kube::Api& api, const view::Job& job) : api_(api), job_(job) {}
  bool Of(const view::Event& event) {
    if (!event.object.starts_with(kPod)) return view::IsOf(event, job_);
    const auto [known, is_new] = pods_.try_emplace(event.object, false);
    if (is_new) known->second = Ask(event);
    return known->second;
  }

 private:
  static constexpr std::string_view kPod = "pod/";
  bool Ask(const view::Event& event) {
    const auto text = api_.Get(kube::Resource::Pods(), {job_.ns, event.object.substr(kPod.size())});
    // It is gone: its name is all that is left of it.
    if (!text.ok()) return view::IsOf(event, job_);
    const auto pod = kube::ParsePod(*text);
    return pod.ok() && view::IsOf(*pod, job_);
  }

  kube::Api& api_;
  const view::Job& job_;
  std::map<std::string, bool> pods_;
};

class JobEvents final : public Command {
 public:
  std::string name() const override { return "events"; }
  std::string summary() const override { return "Show what has happened to a job, or to all"; }
  std::string details() const override {
    return "Examples:\n  trainyard events mnist\n  trainyard events -A -w";
  }
  void Declare(Flags& flags) override {
    flags.OptionalArgument("JOB", "NAME or KIND/NAME; without it, all events of the namespace", job_);
    flags.Switch({.name = "-w,--watch", .help = "Go on, with a line for each event as it comes"}, watch_);
    flags.Switch({.name = "-A,--all-namespaces", .help = "Those of every namespace"}, all_);
    jobs_.Declare(flags);
  }

  std::vector<std::string> Complete() override { return jobs_.ListNames(); }

  absl::Status Run() override {
    if (job_ && all_) return UsageError("a job is in one namespace: name it, or give -A");
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    std::optional<view::Job> job;
    if (job_) {
      TY_ASSIGN_OR_RETURN(job, FindNamed(*client, *job_));
    }
    TY_ASSIGN_OR_RETURN(const std::vector<view::Event> events, Read(*client, job));
    const std::vector<std::vector<std::string>> rows = view::EventRows(events, absl::Now());
    if (rows.size() > 1) TY_RETURN_IF_ERROR(Print(Table(rows, 3)));
    if (rows.size() == 1 && !watch_) std::cerr << "there are no events" << std::endl;
    return watch_ ? Watch(*client, job, signals) : absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<view::Event>> Read(JobsClient& client,
                                                const std::optional<view::Job>& job) const {
    if (job) {
      TY_ASSIGN_OR_RETURN(view::JobPage page, view::ReadPage(client.api(), *job));
      return std::move(page.events);
    }
    auto events = view::ListEvents(client.api(), all_ ? "" : client.ns());
    return events.ok() ? std::move(events) : Annotate(events.status(), client.where());
  }

  absl::Status Watch(JobsClient& client, const std::optional<view::Job>& job,
                     const EndingSignals& signals) const {
    const std::string ns = all_ ? "" : client.ns();
    TY_ASSIGN_OR_RETURN(const kube::ListPage page,
                        client.api().List(kube::Resource::Events(), ns, {.limit = 1}));
    std::string version = page.resource_version;
    std::optional<Belongings> belongs;
    if (job) belongs.emplace(client.api(), *job);
    while (true) {
      auto stream = client.api().Watch(kube::Resource::Events(), ns, {.resource_version = version});
      if (!stream.ok()) return Annotate(stream.status(), client.where());
      while (true) {
        if (signals.AwaitFor(absl::ZeroDuration())) return absl::OkStatus();
        const auto event = (*stream)->Next(kJobEventsTick);
        if (absl::IsDeadlineExceeded(event.status())) continue;
        if (kube::IsGone(event.status())) version.clear();  // too old: from what there is now
        if (!event.ok()) break;                             // it ended: it is opened again
        const auto object = ParseJson(event->object);
        if (!object.ok()) continue;
        version = std::string(StringAt(*object, {"metadata", "resourceVersion"}));
        if (event->type == kube::WatchEventType::kBookmark || event->type == kube::WatchEventType::kDeleted)
          continue;
        if (job && !belongs->Of(view::ParseEvent(*object))) continue;
        std::cout << PrintEventLine(event->object) << std::endl;
        if (!std::cout) return absl::OkStatus();  // nobody reads any more
      }
      if (signals.AwaitFor(kJobEventsTick)) return absl::OkStatus();
    }
  }

  std::optional<std::string> job_;
  bool watch_ = false;
  bool all_ = false;
  JobsFlags jobs_;
};

}  // namespace

std::unique_ptr<Command> NewEvents() { return std::make_unique<JobEvents>(); }

}  // namespace trainyard::cli
