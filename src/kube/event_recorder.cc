#include "kube/event_recorder.h"

#include <utility>

#include "base/check.h"
#include "base/document.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"

namespace trainyard::kube {
namespace {

constexpr std::size_t kMaxMessage = 1024;

std::string Bounded(std::string_view text) { return std::string(FirstCharacters(text, kMaxMessage)); }

// Events of what has no namespace go where kubectl looks for them.
std::string NamespaceOf(const ObjectReference& object) {
  return object.key.ns.empty() ? "default" : object.key.ns;
}

}  // namespace

EventRecorder::EventRecorder(Api& api, Clock& clock, IdSource ids, Options options)
    : api_(api),
      clock_(clock),
      options_(std::move(options)),
      correlator_(std::move(ids), options_.correlator) {
  TY_CHECK(options_.room > 0, "events need room to wait in");
}

EventRecorder::~EventRecorder() { Stop(); }

void EventRecorder::Record(const ObjectReference& object, EventType type, std::string_view reason,
                           std::string_view message) {
  Occurrence occurrence{.object = object,
                        .type = type,
                        .reason = std::string(reason),
                        .message = ToUtf8(Bounded(message)),
                        .time = clock_.Now()};
  MutexLock lock(mu_);
  if (stopping_) {
    ++counts_.crowded;
    return;
  }
  if (queue_.size() == options_.room) {
    queue_.pop_front();
    ++counts_.crowded;
  }
  queue_.push_back(std::move(occurrence));
  changed_.Signal();
}

void EventRecorder::Start() {
  TY_CHECK(!thread_.joinable(), "a recorder starts once");
  thread_ = std::thread([this] { Work(); });
}

void EventRecorder::Stop(absl::Duration grace) {
  bool first = false;
  {
    MutexLock lock(mu_);
    first = !std::exchange(stopping_, true);
    if (first) deadline_ = clock_.Steady() + grace;
    changed_.Signal();
  }
  if (thread_.joinable()) {
    thread_.join();
  } else {
    Work();
  }
  const Counts counts = Count();
  if (first && counts.crowded + counts.failed > 0) {
    log::Warn("events were lost", {{"crowded", counts.crowded}, {"failed", counts.failed}});
  }
}

void EventRecorder::Work() {
  while (const std::optional<Occurrence> occurrence = Await()) Write(*occurrence);
}

std::optional<Occurrence> EventRecorder::Await() {
  MutexLock lock(mu_);
  while (queue_.empty() && !stopping_) changed_.Wait(mu_);
  if (stopping_ && clock_.Steady() >= deadline_) {
    counts_.crowded += static_cast<std::int64_t>(queue_.size());
    queue_.clear();
  }
  if (queue_.empty()) return std::nullopt;
  Occurrence occurrence = std::move(queue_.front());
  queue_.pop_front();
  return occurrence;
}

void EventRecorder::Flush() {
  std::deque<Occurrence> all;
  {
    MutexLock lock(mu_);
    all.swap(queue_);
  }
  for (const Occurrence& occurrence : all) Write(occurrence);
}

void EventRecorder::Write(const Occurrence& occurrence) {
  const std::optional<EventWrite> write = correlator_.Correlate(occurrence, clock_.Steady());
  absl::Status status;
  if (write) {
    status = Send(occurrence, *write);
    // The server forgets events after a while.
    if (!write->is_new && kube::IsNotFound(status))
      status = Send(occurrence, correlator_.Anew(occurrence, *write));
  }
  if (!status.ok()) {
    log::Debug(
        "an event was not written",
        {{"object", occurrence.object.key.Str()}, {"reason", occurrence.reason}, {"error", Message(status)}});
  }
  MutexLock lock(mu_);
  ++(!write ? counts_.limited : status.ok() ? counts_.written : counts_.failed);
}

absl::Status EventRecorder::Send(const Occurrence& occurrence, const EventWrite& write) {
  const std::string ns = NamespaceOf(occurrence.object);
  Operation operation;
  if (write.is_new) {
    operation = CreateOperation(Resource::Events(), ns, PrintEvent(occurrence, write));
  } else {
    const Object patch{
        {"count", write.count}, {"lastTimestamp", PrintTime(write.last)}, {"message", write.message}};
    operation = PatchOperation(Resource::Events(), {ns, write.name}, PrintJson(patch), {});
    operation.repeatable = true;  // it says what the count is, not what to add
  }
  operation.request.timeout = options_.write_timeout;
  const absl::Status status = api_.Do(std::move(operation)).status();
  // The first attempt was done though its answer was lost: the name is nobody else's.
  return kube::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

std::string EventRecorder::PrintEvent(const Occurrence& occurrence, const EventWrite& write) const {
  const ObjectReference& object = occurrence.object;
  Object involved{{"kind", object.kind}, {"name", object.key.name}, {"apiVersion", object.api_version}};
  if (!object.key.ns.empty()) involved["namespace"] = object.key.ns;
  if (!object.uid.empty()) involved["uid"] = object.uid;
  if (!object.resource_version.empty()) involved["resourceVersion"] = object.resource_version;
  return PrintJson(Object{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", write.name}, {"namespace", NamespaceOf(object)}}},
      {"involvedObject", std::move(involved)},
      {"type", occurrence.type == EventType::kNormal ? "Normal" : "Warning"},
      {"reason", occurrence.reason},
      {"message", write.message},
      {"source", {{"component", options_.component}}},
      {"reportingComponent", options_.component},
      {"reportingInstance", options_.instance},
      {"count", write.count},
      {"firstTimestamp", PrintTime(write.first)},
      {"lastTimestamp", PrintTime(write.last)},
  });
}

EventRecorder::Counts EventRecorder::Count() const {
  MutexLock lock(mu_);
  return counts_;
}

}  // namespace trainyard::kube
