// Fills a cache from a watcher and tells of what has changed: in a thread of its own, or step by step by a
// caller that plays all parts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "kube/cache.h"
#include "kube/watcher.h"
#include "kube/work_queue.h"

namespace trainyard::kube {

// The part of an informer that does not depend on the type: its thread, and who waits for it.
class InformerBase {
 public:
  // Before the next step there is nothing but to wait for an event (idle), or for a back-off.
  struct Progress {
    bool idle = false;
    absl::Duration wait;
  };

  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;

  // Starts the thread; once.
  void Start();
  // Ends it, as soon as a request that is under way is over; no handler is called afterwards. May be called
  // twice. Not from a handler.
  void Stop();

  // The cache has been filled once and the handlers have been told.
  bool HasSynced() const;
  // Waits for that. DeadlineExceeded: not in time; the message says what was wrong last. Cancelled: Stop().
  absl::Status WaitForSync(absl::Duration timeout);

  // One step in this thread instead; waits no longer than `patience` for an event.
  virtual Progress Step(absl::Duration patience) = 0;
  // The same without waiting; whether anything came.
  bool StepNow();

 protected:
  InformerBase(Clock& clock, std::string what);
  virtual ~InformerBase();
  virtual void CancelWatch() = 0;

  void Synced();
  void Broke(const absl::Status& status, absl::Duration wait);

 private:
  void Run();
  bool Stopping() const;
  void WakeAll() TY_REQUIRES(mu_);

  Clock& clock_;
  const std::string what_;
  const std::unique_ptr<Alarm> alarm_;
  std::thread thread_;
  mutable Mutex mu_;
  bool synced_ TY_GUARDED_BY(mu_) = false;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  absl::Status last_error_ TY_GUARDED_BY(mu_);
  std::vector<Alarm*> waiting_ TY_GUARDED_BY(mu_);
};

// T has a member `meta` of type ObjectMeta. The API and the clock must outlive it.
template <typename T>
class Informer final : public InformerBase {
 public:
  Informer(Api& api, Clock& clock, IdSource random, WatcherOptions options,
           typename Watcher<T>::Decode decode)
      : InformerBase(clock, options.resource.plural),
        watcher_(api, clock, std::move(random), std::move(options), std::move(decode)) {}
  ~Informer() override { Stop(); }

  // ---- before Start() and the first Step()

  typename Cache<T>::Index AddIndex(typename Cache<T>::IndexBy by) { return cache_.AddIndex(std::move(by)); }
  // Called for every change, in their order and in the order of adding, after the cache has it and with no
  // lock held. Must not block for long: what it has to say are keys for a queue.
  void OnChange(std::function<void(const Change<T>&)> handler) { handlers_.push_back(std::move(handler)); }
  // Called when everything up to a version has been told, though no change of it may have been ours.
  void OnVersion(std::function<void(std::string_view)> handler) {
    version_handlers_.push_back(std::move(handler));
  }

  const Cache<T>& cache() const { return cache_; }

  Progress Step(absl::Duration patience) override {
    auto event = watcher_.Step(patience);
    using W = Watcher<T>;
    if (auto* restarted = std::get_if<typename W::Restarted>(&event)) {
      Tell(cache_.Replace(std::move(restarted->objects)));
      TellVersion();
      Synced();
    } else if (auto* applied = std::get_if<typename W::Applied>(&event)) {
      Tell(cache_.Apply(std::move(applied->object)));
    } else if (auto* deleted = std::get_if<typename W::Deleted>(&event)) {
      Tell(Gone(deleted->object));
    } else if (std::holds_alternative<typename W::Bookmark>(event)) {
      TellVersion();
    } else if (auto* broken = std::get_if<typename W::Broken>(&event)) {
      Broke(broken->status, broken->wait);
      return {.wait = broken->wait};
    } else {
      return {.idle = std::get<typename W::Nothing>(event).waited};
    }
    return {};
  }

 private:
  void CancelWatch() override { watcher_.Cancel(); }

  // What is told of an object that is gone is how it was at the end.
  std::vector<Change<T>> Gone(const typename Cache<T>::Ptr& last) {
    const auto known = cache_.Get(last->meta.Key());
    if (known == nullptr || known->meta.uid != last->meta.uid) return {};
    cache_.Remove(last->meta.Key());
    return {{last, nullptr}};
  }
  void Tell(const std::vector<Change<T>>& changes) {
    for (const Change<T>& change : changes) {
      for (const auto& handler : handlers_) handler(change);
    }
  }
  void TellVersion() {
    for (const auto& handler : version_handlers_) handler(watcher_.version());
  }

  Cache<T> cache_;
  std::vector<std::function<void(const Change<T>&)>> handlers_;
  std::vector<std::function<void(std::string_view)>> version_handlers_;
  Watcher<T> watcher_;
};

// ---- from changes to keys of a queue

// A handler for OnChange(): queues the keys that `keys_of` has for the object as it was and as it is, each
// once. The queue must outlive the informer.
template <typename T>
std::function<void(const Change<T>&)> QueueKeys(WorkQueue& queue,
                                                std::function<std::vector<ObjectKey>(const T&)> keys_of) {
  return [&queue, keys_of = std::move(keys_of)](const Change<T>& change) {
    std::set<ObjectKey> keys;
    for (const T* object : {change.before.get(), change.after.get()}) {
      if (object == nullptr) continue;
      for (ObjectKey& key : keys_of(*object)) keys.insert(std::move(key));
    }
    for (const ObjectKey& key : keys) queue.Add(key);
  };
}

// The object's own key.
template <typename T>
std::vector<ObjectKey> OwnKey(const T& object) {
  return {object.meta.Key()};
}
// The key of the object of that kind that controls it, if one does.
template <typename T>
std::function<std::vector<ObjectKey>(const T&)> ControllerKey(std::string kind) {
  return [kind = std::move(kind)](const T& object) -> std::vector<ObjectKey> {
    const auto& owner = object.meta.controller;
    if (!owner || owner->kind != std::string_view(kind)) return {};
    return {{std::string(object.meta.ns.view()), std::string(owner->name.view())}};
  };
}

}  // namespace trainyard::kube
