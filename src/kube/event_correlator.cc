#include "kube/event_correlator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::kube {
namespace {

// A byte that no name has: "a"+"bc" and "ab"+"c" are two keys.
constexpr char kSeparator = '\0';

std::string ObjectKeyOf(const ObjectReference& object) {
  return StrCat(object.api_version, kSeparator, object.kind, kSeparator, object.key.ns, kSeparator,
                object.key.name, kSeparator, object.uid);
}

std::string GroupKeyOf(const Occurrence& occurrence) {
  return StrCat(ObjectKeyOf(occurrence.object), kSeparator, static_cast<int>(occurrence.type), kSeparator,
                occurrence.reason);
}

std::string CombinedMessage(const std::string& message) {
  return StrCat("(combined from similar events): ", message);
}

}  // namespace

EventCorrelator::EventCorrelator(IdSource ids, Options options)
    : options_(options),
      ids_(std::move(ids)),
      groups_(options.memory),
      series_(options.memory),
      buckets_(options.memory) {}

std::optional<EventWrite> EventCorrelator::Correlate(const Occurrence& occurrence, SteadyTime now) {
  const std::string group_key = GroupKeyOf(occurrence);
  const bool combined = IsOneOfMany(group_key, occurrence.message, now);
  Series& series = series_.Use(combined ? group_key : StrCat(group_key, kSeparator, occurrence.message));
  const bool is_new = series.count == 0;
  if (is_new) {
    series.name = NewName(occurrence.object.key);
    series.first = occurrence.time;
  }
  ++series.count;
  if (!TakeToken(ObjectKeyOf(occurrence.object), now)) return std::nullopt;
  return EventWrite{.is_new = is_new,
                    .name = series.name,
                    .message = combined ? CombinedMessage(occurrence.message) : occurrence.message,
                    .count = series.count,
                    .first = series.first,
                    .last = occurrence.time};
}

EventWrite EventCorrelator::Anew(const Occurrence& occurrence, const EventWrite& write) {
  const bool combined = write.message != occurrence.message;
  const std::string group_key = GroupKeyOf(occurrence);
  Series& series = series_.Use(combined ? group_key : StrCat(group_key, kSeparator, occurrence.message));
  series = {.name = NewName(occurrence.object.key), .count = write.count, .first = write.first};
  EventWrite anew = write;
  anew.is_new = true;
  anew.name = series.name;
  return anew;
}

bool EventCorrelator::IsOneOfMany(const std::string& group_key, const std::string& message, SteadyTime now) {
  Group& group = groups_.Use(group_key);
  if (now - group.last > options_.window) group.messages.clear();
  group.last = now;
  if (group.messages.size() < options_.similar) group.messages.insert(message);
  return group.messages.size() >= options_.similar;
}

bool EventCorrelator::TakeToken(const std::string& object_key, SteadyTime now) {
  Bucket& bucket = buckets_.Use(object_key);
  const double most = options_.burst;
  bucket.tokens =
      bucket.tokens < 0
          ? most
          : std::min(most, bucket.tokens + absl::FDivDuration(now - bucket.filled, options_.refill));
  bucket.filled = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

std::string EventCorrelator::NewName(const ObjectKey& object) {
  const std::string suffix = absl::StrFormat(".%016x", ids_.Next());
  std::string name = object.name.substr(0, kMaxDnsSubdomain - suffix.size());
  // What is cut off may leave an end that no name may have before a dot.
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return name + suffix;
}

}  // namespace trainyard::kube
