#include "tests/sim/documents.h"

#include <set>

#include "base/text.h"

namespace trainyard::sim {
namespace {

void Count(const Document& job, std::string_view where, std::initializer_list<std::string_view> what,
           std::map<std::string, std::int64_t>& counters) {
  const Object* roles = ObjectAt(job, {"status", where});
  if (roles == nullptr) return;
  for (const auto& role : *roles) {
    for (const std::string_view one : what) {
      counters[StrCat(Key(role), " ", one)] = IntAt(role.value(), {one}).value_or(0);
    }
  }
}

}  // namespace

std::string StateOf(const Document& job) {
  std::string state;
  if (const Array* conditions = ArrayAt(job, {"status", "conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"status"}) == "True") StrAppend(state, StringAt(condition, {"type"}));
    }
  }
  return state;
}

bool IsEnd(std::string_view state) {
  static const std::set<std::string_view> ends = {"Succeeded", "Succeed",   "Failed",
                                                  "Timeout",   "Preempted", "NodeFail"};
  return ends.contains(state);
}

bool IsFinished(const Document& job) { return IsEnd(StateOf(job)); }

std::map<std::string, std::int64_t> CountersOf(const Document& job) {
  std::map<std::string, std::int64_t> counters;
  Count(job, "tfReplicaStatuses", {"succeeded", "failed"}, counters);
  Count(job, "restarts", {"count", "disruptions"}, counters);
  return counters;
}

}  // namespace trainyard::sim
