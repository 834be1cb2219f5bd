#include "cli/event_lines.h"

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/document.h"
#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/rfc3339.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kAgainAfter = absl::Milliseconds(200);

}  // namespace

std::string PrintEventLine(std::string_view event) {
  const auto document = ParseJson(event);
  if (!document.ok()) return "";
  std::string_view when = StringAt(*document, {"lastTimestamp"});
  if (when.empty()) when = StringAt(*document, {"eventTime"});
  if (when.empty()) when = StringAt(*document, {"metadata", "creationTimestamp"});
  const auto time = kube::ParseTime(when);
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

}  // namespace trainyard::cli
