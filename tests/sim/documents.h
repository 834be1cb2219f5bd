// Questions about objects as the server has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/document.h"
#include "kube/resource.h"

namespace trainyard::sim {

inline constexpr std::string_view kNamespace = "default";

inline kube::ObjectKey KeyOf(const Document& object) {
  return {std::string(kNamespace), std::string(StringAt(object, {"metadata", "name"}))};
}
inline std::string UidOf(const Document& object) {
  return std::string(StringAt(object, {"metadata", "uid"}));
}
inline std::string LabelOf(const Document& object, std::string_view label) {
  return std::string(StringAt(object, {"metadata", "labels", label}));
}
inline bool IsLeaving(const Document& object) {
  return Find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

// Of a job: the types of all conditions that are true, without anything between them.
std::string StateOf(const Document& job);
bool IsEnd(std::string_view state);
bool IsFinished(const Document& job);
// Of a job: what must never fall, by a name of its own.
std::map<std::string, std::int64_t> CountersOf(const Document& job);

}  // namespace trainyard::sim
