// Decides what becomes of an event: written as new, counted on one that was written before, or dropped. A
// controller that fails once a second must not fill the cluster with events.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "kube/lru_map.h"
#include "kube/resource.h"

namespace trainyard::kube {

// Which object an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
  std::string resource_version;
};

enum class EventType : std::uint8_t { kNormal, kWarning };

// Something that happened once.
struct Occurrence {
  ObjectReference object;
  EventType type = EventType::kNormal;
  std::string reason;  // CamelCase
  std::string message;
  absl::Time time;
};

// What is to be written about it.
struct EventWrite {
  bool is_new = true;   // else the event of that name is patched
  std::string name;     // unique
  std::string message;  // of similar ones together, it says so
  std::int64_t count = 1;
  absl::Time first;
  absl::Time last;
};

// Used by one thread at a time.
class EventCorrelator {
 public:
  struct Options {
    // From so many different messages of one object, type and reason on, within so long of each other, all
    // become one event.
    std::size_t similar = 10;
    absl::Duration window = absl::Minutes(10);
    // About one object at most so many in a row, and then one in so long.
    int burst = 25;
    absl::Duration refill = absl::Minutes(5);
    // So much is remembered.
    std::size_t memory = 4096;
  };
  explicit EventCorrelator(IdSource ids) : EventCorrelator(std::move(ids), Options{}) {}
  EventCorrelator(IdSource ids, Options options);

  // Nothing: it is one too many about its object. It is counted all the same.
  std::optional<EventWrite> Correlate(const Occurrence& occurrence, SteadyTime now);
  // The event of that write was not there to be patched; what is to be written instead.
  EventWrite Anew(const Occurrence& occurrence, const EventWrite& write);

 private:
  struct Group {  // of one object, type and reason
    std::set<std::string> messages;
    SteadyTime last;
  };
  struct Series {  // one event
    std::string name;
    std::int64_t count = 0;
    absl::Time first;
  };
  struct Bucket {        // of one object
    double tokens = -1;  // below zero: not used yet
    SteadyTime filled;
  };

  bool IsOneOfMany(const std::string& group_key, const std::string& message, SteadyTime now);
  bool TakeToken(const std::string& object_key, SteadyTime now);
  std::string NewName(const ObjectKey& object);

  const Options options_;
  IdSource ids_;
  LruMap<Group> groups_;
  LruMap<Series> series_;
  LruMap<Bucket> buckets_;
};

}  // namespace trainyard::kube
