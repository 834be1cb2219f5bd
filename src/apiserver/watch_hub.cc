#include "apiserver/watch_hub.h"

#include <algorithm>

#include "base/log.h"
#include "base/status.h"

namespace trainyard::apiserver {
namespace {

constexpr absl::Duration kProgressEvery = absl::Seconds(1);
constexpr absl::Duration kReopenAfter = absl::Milliseconds(200);

}  // namespace

ObjectEvent::ObjectEvent(kv::WatchEvent event) : event_(std::move(event)) {
  key_ = ParseStoreKey(event_.kv.key).value_or(ParsedStoreKey{});
}

std::size_t ObjectEvent::bytes() const {
  return event_.kv.key.size() + event_.kv.value.size() +
         (event_.previous ? event_.previous->value.size() : 0);
}

const ObjectLabels& ObjectEvent::labels() const {
  if (!labels_) labels_ = LabelsOf(stored());
  return *labels_;
}

const ObjectLabels& ObjectEvent::previous_labels() const {
  if (!previous_labels_) previous_labels_ = previous() == nullptr ? ObjectLabels() : LabelsOf(*previous());
  return *previous_labels_;
}

std::shared_ptr<const std::string> ObjectEvent::Rendered(std::string_view tag,
                                                         const std::function<std::string()>& render) const {
  for (const auto& [known, text] : rendered_) {
    if (known == tag) return text;
  }
  return rendered_.emplace_back(tag, std::make_shared<const std::string>(render())).second;
}

absl::StatusOr<std::unique_ptr<WatchHub>> WatchHub::Start(const Options& options) {
  auto hub = std::unique_ptr<WatchHub>(new WatchHub(options));
  hub->alarm_ = hub->options_.clock->NewAlarm();
  TY_ASSIGN_OR_RETURN(const kv::GetResult newest, hub->options_.store->Get(kRegistryPrefix));
  TY_RETURN_IF_ERROR(hub->Open(newest.revision));
  if (hub->options_.thread) hub->thread_ = std::thread([raw = hub.get()] { raw->Run(); });
  return hub;
}

WatchHub::~WatchHub() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    alarm_->Notify();
    thread_.join();
  }
  TakeNew();
  EndAll(absl::CancelledError("the API server stops"));
}

void WatchHub::Subscribe(std::string prefix, kv::Revision from, std::shared_ptr<WatchSubscriber> subscriber) {
  auto subscription = std::make_unique<Subscription>(
      Subscription{.prefix = std::move(prefix), .told = from, .subscriber = std::move(subscriber)});
  {
    MutexLock lock(mu_);
    incoming_.push_back(std::move(subscription));
  }
  alarm_->Notify();
}

void WatchHub::Pump() { Turn(); }

// Watches the store from the revision after `from`, with an empty ring.
absl::Status WatchHub::Open(kv::Revision from) {
  TY_ASSIGN_OR_RETURN(watcher_, options_.store->Watch({.range = kv::KeyRange::Prefix(kRegistryPrefix),
                                                       .start_revision = from + 1,
                                                       .with_previous = true,
                                                       .on_ready = [this] { alarm_->Notify(); }}));
  revision_ = from;
  ring_.clear();
  ring_bytes_ = 0;
  ring_floor_ = from;
  return absl::OkStatus();
}

void WatchHub::Run() {
  for (;;) {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    Turn();
    alarm_->WaitUntil(watcher_ == nullptr ? options_.clock->Steady() + kReopenAfter
                      : live_.empty()     ? SteadyTime::Never()
                                          : next_progress_);
  }
}

void WatchHub::Turn() {
  if (watcher_ == nullptr) {
    if (const absl::Status opened = Open(revision_); !opened.ok()) return;
  }
  ReadStore();
  TakeNew();
  CatchUp();
  if (options_.clock->Steady() >= next_progress_) TellProgress();
}

void WatchHub::TakeNew() {
  std::vector<std::unique_ptr<Subscription>> incoming;
  {
    MutexLock lock(mu_);
    incoming.swap(incoming_);
  }
  for (auto& subscription : incoming) Place(std::move(subscription));
}

void WatchHub::ReadStore() {
  for (;;) {
    auto batch = watcher_->Next(absl::ZeroDuration());
    if (!batch.ok()) {
      if (batch.status().code() != absl::StatusCode::kDeadlineExceeded) Reopen(batch.status());
      return;
    }
    for (kv::WatchEvent& change : batch->events) {
      auto event = std::make_shared<const ObjectEvent>(std::move(change));
      ring_bytes_ += event->bytes();
      ring_.push_back(event);
      revision_ = event->revision();
      Deliver(event);
      event->Forget();
    }
    revision_ = std::max(revision_, batch->revision);
    while (ring_.size() > options_.ring_events || (ring_bytes_ > options_.ring_bytes && ring_.size() > 1)) {
      ring_floor_ = ring_.front()->revision();
      ring_bytes_ -= ring_.front()->bytes();
      ring_.pop_front();
    }
  }
}

// The history that the hub itself stood on is gone: what it missed cannot be told, so every watcher is ended
// and lists again.
void WatchHub::Reopen(const absl::Status& why) {
  log::Warn("watch of the store broke", {{"error", why}});
  watcher_.reset();
  if (!kv::IsCompacted(why)) return;
  EndAll(why);
  if (const auto newest = options_.store->Get(kRegistryPrefix); newest.ok()) revision_ = newest->revision;
}

void WatchHub::Place(std::unique_ptr<Subscription> subscription) {
  if (subscription->told < ring_floor_) {
    // Of all objects, not only of those under the prefix: the event at the ring's floor then surely comes,
    // and says that there is nothing before it any more.
    auto history = options_.store->Watch({.range = kv::KeyRange::Prefix(kRegistryPrefix),
                                          .start_revision = subscription->told + 1,
                                          .with_previous = true,
                                          .on_ready = [this] { alarm_->Notify(); }});
    if (!history.ok()) {
      subscription->subscriber->OnEnd(history.status());
      return;
    }
    subscription->history = *std::move(history);
    catching_up_.push_back(std::move(subscription));
    return;
  }
  if (!TellFromRing(*subscription)) return;
  const bool goes_on = subscription->subscriber->OnProgress(revision_, options_.clock->Steady());
  if (!goes_on) return;
  if (live_.empty()) next_progress_ = options_.clock->Steady() + kProgressEvery;
  live_[subscription->prefix].push_back(std::move(subscription));
}

bool WatchHub::Tell(Subscription& subscription, const ObjectEventPtr& event) {
  if (!event->store_key().starts_with(subscription.prefix)) return true;
  return subscription.subscriber->OnEvent(event);
}

bool WatchHub::TellFromRing(Subscription& subscription) {
  auto event = std::partition_point(ring_.begin(), ring_.end(), [&](const ObjectEventPtr& old) {
    return old->revision() <= subscription.told;
  });
  for (; event != ring_.end(); ++event) {
    const bool goes_on = Tell(subscription, *event);
    (*event)->Forget();
    if (!goes_on) return false;
  }
  subscription.told = std::max(subscription.told, revision_);
  return true;
}

void WatchHub::CatchUp() {
  std::vector<std::unique_ptr<Subscription>> reading;
  reading.swap(catching_up_);
  for (auto& subscription : reading) {
    if (!ReadHistory(*subscription)) continue;
    if (subscription->told < ring_floor_) {
      catching_up_.push_back(std::move(subscription));
    } else {
      subscription->history.reset();
      Place(std::move(subscription));
    }
  }
}

// Tells what there is of it. False: it has ended.
bool WatchHub::ReadHistory(Subscription& subscription) {
  while (subscription.told < ring_floor_) {
    auto batch = subscription.history->Next(absl::ZeroDuration());
    if (!batch.ok()) {
      if (batch.status().code() == absl::StatusCode::kDeadlineExceeded) return true;
      subscription.subscriber->OnEnd(batch.status());
      return false;
    }
    for (kv::WatchEvent& change : batch->events) {
      if (!Tell(subscription, std::make_shared<const ObjectEvent>(std::move(change)))) return false;
    }
    subscription.told = std::max(subscription.told, batch->revision);
  }
  return true;
}

void WatchHub::Deliver(const ObjectEventPtr& event) {
  const std::string of_kind = StoreKey(event->key().group, event->key().plural, "", "");
  const std::string of_namespace = StoreKey(event->key().group, event->key().plural, event->key().ns, "");
  const auto tell = [&](std::string_view prefix) {
    const auto watchers = live_.find(prefix);
    if (watchers == live_.end()) return;
    std::erase_if(watchers->second, [&](const std::unique_ptr<Subscription>& subscription) {
      return !subscription->subscriber->OnEvent(event);
    });
    if (watchers->second.empty()) live_.erase(watchers);
  };
  tell(of_kind);
  if (of_namespace != of_kind) tell(of_namespace);
}

void WatchHub::TellProgress() {
  const SteadyTime now = options_.clock->Steady();
  next_progress_ = now + kProgressEvery;
  for (auto prefix = live_.begin(); prefix != live_.end();) {
    std::erase_if(prefix->second, [&](const std::unique_ptr<Subscription>& subscription) {
      return !subscription->subscriber->OnProgress(revision_, now);
    });
    prefix = prefix->second.empty() ? live_.erase(prefix) : std::next(prefix);
  }
}

void WatchHub::EndAll(const absl::Status& why) {
  for (auto& [prefix, subscriptions] : live_) {
    for (auto& subscription : subscriptions) subscription->subscriber->OnEnd(why);
  }
  for (auto& subscription : catching_up_) subscription->subscriber->OnEnd(why);
  live_.clear();
  catching_up_.clear();
}

}  // namespace trainyard::apiserver
