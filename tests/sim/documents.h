// Questions about objects as the server has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Objects as they were at one moment. A copy costs little, and keeps what it has.
class Objects {
 public:
  class Iterator {
   public:
    using value_type = Document;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(std::vector<std::shared_ptr<const Document>>::const_iterator at) : at_(at) {}
    const Document& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    std::vector<std::shared_ptr<const Document>>::const_iterator at_;
  };

  Iterator begin() const { return Iterator(items_.begin()); }
  Iterator end() const { return Iterator(items_.end()); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const Document& operator[](std::size_t at) const { return *items_[at]; }
  void Add(std::shared_ptr<const Document> object) { items_.push_back(std::move(object)); }
  void Add(const Objects& more) { items_.insert(items_.end(), more.items_.begin(), more.items_.end()); }

 private:
  std::vector<std::shared_ptr<const Document>> items_;
};

// Of a job: the types of all conditions that are true, without anything between them.
std::string StateOf(const Document& job);
bool IsEnd(std::string_view state);
// Whether it is of the kind that has phases.
bool HasPhase(const Document& job);
// A policy of the job as a whole, wherever its version has it; null: none.
const Document* FindPolicy(const Document& job, std::string_view name);
// A patch of such policies.
Document PolicyPatch(const Document& job, Object policies);
bool IsFinished(const Document& job);
// Of a job: what must never fall, by a name of its own.
std::map<std::string, std::int64_t> CountersOf(const Document& job);

}  // namespace trainyard::sim
