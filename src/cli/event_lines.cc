#include "cli/event_lines.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/document.h"
#include "base/letters.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/jobs_common.h"
#include "cli/kv_common.h"
#include "kube/error.h"
#include "kube/pod.h"
#include "view/diagnosis.h"
#include "view/parse.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kAgainAfter = absl::Milliseconds(200);

constexpr absl::Duration kJobEventsTick = absl::Milliseconds(100);

// Whose an event is. A pod is asked once; one that is gone is in the job's history.
class Belongings {
 public:
  Belongings(kube::Api& api, const view::Job& job) : api_(api), job_(job) {}
  bool Of(const view::Event& event) {
    constexpr std::string_view kPod = "pod/";
    if (event.uid == job_.uid) return true;
    if (!event.object.starts_with(kPod)) return false;
    if (const auto known = pods_.find(event.uid); known != pods_.end()) return known->second;
    const auto text = api_.Get(kube::Resource::Pods(), {job_.ns, event.object.substr(kPod.size())});
    const auto pod = text.ok() ? kube::ParsePod(*text) : text.status();
    if (pod.ok() && pod->meta.uid == event.uid) return pods_[event.uid] = view::IsOf(*pod, job_);
    const auto gone = kube::ReadHistory(api_, job_.ns, view::FactsOf(job_.kind).history, job_.name, job_.uid);
    return gone.ok() && std::ranges::find(*gone, event.uid, &kube::GonePod::uid) != gone->end();
  }

 private:
  kube::Api& api_;
  const view::Job& job_;
  std::map<std::string, bool> pods_;  // by uid
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

std::string PrintEventLine(std::string_view event) {
  const auto document = ParseJson(event);
  if (!document.ok()) return "";
  std::string_view when = StringAt(*document, {"lastTimestamp"});
  if (when.empty()) when = StringAt(*document, {"eventTime"});
  if (when.empty()) when = StringAt(*document, {"metadata", "creationTimestamp"});
  const auto time = ParseTime(when);
  const std::string kind = LowerCase(StringAt(*document, {"involvedObject", "kind"}));
  const std::string_view ns = StringAt(*document, {"involvedObject", "namespace"});
  const std::string clock = time.ok() ? absl::FormatTime("%H:%M:%S", *time, absl::LocalTimeZone()) : "";
  const bool warns = StringAt(*document, {"type"}) == "Warning";
  return StrCat(clock, warns ? " ! " : "   ", kind, "/", ns, ns.empty() ? "" : "/",
                StringAt(*document, {"involvedObject", "name"}), " ", StringAt(*document, {"reason"}), ": ",
                StringAt(*document, {"message"}));
}

EventLines::EventLines(kube::Transport& transport, std::function<void(std::string_view)> print)
    : api_(transport, Clock::System(), IdSource::Random()),
      print_(std::move(print)),
      alarm_(Clock::System().NewAlarm()),
      thread_([this] { Run(); }) {}

EventLines::~EventLines() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    if (current_ != nullptr) current_->Cancel();
  }
  alarm_->Notify();
  thread_.join();
}

void EventLines::Run() {
  for (;;) {
    // From the newest on: what has happened before is not news.
    const auto newest = api_.List(kube::Resource::Events(), "", {.limit = 1});
    auto stream =
        newest.ok() ? api_.Watch(kube::Resource::Events(), "", {.resource_version = newest->resource_version})
                    : newest.status();
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      if (stream.ok()) current_ = stream->get();
    }
    if (stream.ok()) Follow(**stream);
    {
      MutexLock lock(mu_);
      current_ = nullptr;
      if (stopping_) return;
    }
    alarm_->WaitUntil(Clock::System().Steady() + kAgainAfter);
  }
}

void EventLines::Follow(kube::WatchStream& stream) {
  for (;;) {
    const auto event = stream.Next(absl::InfiniteDuration());
    if (!event.ok()) return;
    if (event->type == kube::WatchEventType::kBookmark || event->type == kube::WatchEventType::kDeleted)
      continue;
    if (const std::string line = PrintEventLine(event->object); !line.empty()) print_(line);
  }
}

std::unique_ptr<Command> NewEvents() { return std::make_unique<JobEvents>(); }

}  // namespace trainyard::cli
