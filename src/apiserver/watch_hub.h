// Tells watchers of changes to objects. One watch of the store feeds every client's watch, so that a thousand
// clients cost the store no more than one, and an event is rendered once for all who want it in the same
// form.
//
//                        ┌─ older than the ring ─▶ [catching up] ─ reads the store's history ─┐
//   Subscribe(from) ─────┤                                                                     ▼
//                        └─ in the ring ───────────────────────────────────────────────▶ [live] ─▶ ended
//
// All deliveries happen on the hub's one thread, or, without a thread, in Pump().
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/object_filter.h"
#include "apiserver/stored_object.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kv/store.h"

namespace trainyard::apiserver {

// One change of one object, shared by all who are told of it.
class ObjectEvent {
 public:
  explicit ObjectEvent(kv::WatchEvent event);

  kv::Revision revision() const { return event_.kv.mod_revision; }
  const std::string& store_key() const { return event_.kv.key; }
  const ParsedStoreKey& key() const { return key_; }
  bool deleted() const { return event_.type == kv::WatchEvent::Type::kDelete; }
  bool created() const { return !deleted() && event_.kv.version == 1; }
  const std::string& stored() const { return event_.kv.value; }  // of what was put
  // Before the change; null when there was nothing, or when it has been forgotten.
  const std::string* previous() const { return event_.previous ? &event_.previous->value : nullptr; }
  std::size_t bytes() const;

  // Of what was put, and of what was there before. Only on the hub's thread.
  const ObjectLabels& labels() const;
  const ObjectLabels& previous_labels() const;

  // What `render` gives, made once for each tag until Forget(). Only on the hub's thread.
  std::shared_ptr<const std::string> Rendered(std::string_view tag,
                                              const std::function<std::string()>& render) const;
  // Drops what was rendered: the ring's bound counts what is stored alone, which a table may show many times
  // over.
  void Forget() const { rendered_.clear(); }

 private:
  const kv::WatchEvent event_;
  ParsedStoreKey key_;
  mutable std::optional<ObjectLabels> labels_;
  mutable std::optional<ObjectLabels> previous_labels_;
  mutable std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> rendered_;
};
using ObjectEventPtr = std::shared_ptr<const ObjectEvent>;

// Who is told. Called on the hub's thread with no lock held; must not block.
class WatchSubscriber {
 public:
  virtual ~WatchSubscriber() = default;
  // False: it wants no more, and is forgotten.
  virtual bool OnEvent(const ObjectEventPtr& event) = 0;
  // All events up to `revision` have been told; called about once a second, and when catching up is done.
  virtual bool OnProgress(kv::Revision revision, SteadyTime now) = 0;
  // It will be told no more. Compacted (kv::IsCompacted): what it asked for is forgotten.
  virtual void OnEnd(const absl::Status& why) = 0;
};

class WatchHub {
 public:
  struct Options {
    kv::Store* store = nullptr;
    Clock* clock = &Clock::System();
    bool thread = true;
    std::size_t ring_events = 4096;
    std::size_t ring_bytes = std::size_t{4} * 1024 * 1024;
  };
  static absl::StatusOr<std::unique_ptr<WatchHub>> Start(const Options& options);
  ~WatchHub();  // every subscriber gets OnEnd(Cancelled)

  // Tells of all changes after `from` to what begins with `prefix`, in order. From any thread.
  void Subscribe(std::string prefix, kv::Revision from, std::shared_ptr<WatchSubscriber> subscriber);

  // One turn: what is there is delivered. For a hub without a thread.
  void Pump();

 private:
  struct Subscription {
    std::string prefix;
    kv::Revision told = 0;  // all up to here
    std::shared_ptr<WatchSubscriber> subscriber;
    std::unique_ptr<kv::Watcher> history;  // while it catches up
  };

  explicit WatchHub(const Options& options) : options_(options) {}
  absl::Status Open(kv::Revision from);
  void Run();
  void Turn();
  void TakeNew();
  void ReadStore();
  void CatchUp();
  void Place(std::unique_ptr<Subscription> subscription);
  static bool Tell(Subscription& subscription, const ObjectEventPtr& event);
  bool TellFromRing(Subscription& subscription);
  bool ReadHistory(Subscription& subscription);
  void Deliver(const ObjectEventPtr& event);
  void TellProgress();
  void Reopen(const absl::Status& why);
  void EndAll(const absl::Status& why);

  const Options options_;
  std::unique_ptr<Alarm> alarm_;

  Mutex mu_;
  std::vector<std::unique_ptr<Subscription>> incoming_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;

  // Below: the hub's thread alone.
  std::unique_ptr<kv::Watcher> watcher_;
  kv::Revision revision_ = 0;  // all up to here has been read
  std::deque<ObjectEventPtr> ring_;
  std::size_t ring_bytes_ = 0;
  kv::Revision ring_floor_ = 0;  // the ring has all events after it
  std::map<std::string, std::vector<std::unique_ptr<Subscription>>, std::less<>> live_;
  std::vector<std::unique_ptr<Subscription>> catching_up_;
  SteadyTime next_progress_;

  std::thread thread_;
};

}  // namespace trainyard::apiserver
