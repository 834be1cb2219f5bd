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
  bool created = false;  // beside another state, it says that the job was accepted
  if (const Array* conditions = ArrayAt(job, {"status", "conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"status"}) != "True") continue;
      const std::string_view type = StringAt(condition, {"type"});
      if (type == "Created") {
        created = true;
      } else {
        StrAppend(state, type);
      }
    }
  }
  return state.empty() && created ? "Created" : state;
}

bool IsEnd(std::string_view state) {
  static const std::set<std::string_view> ends = {"Succeeded", "Succeed",   "Failed",
                                                  "Timeout",   "Preempted", "NodeFail"};
  return ends.contains(state);
}

bool HasPhase(const Document& job) { return StringAt(job, {"kind"}) == "AITrainingJob"; }

Document PolicyPatch(const Document& job, Object policies) {
  const bool v1 = ObjectAt(job, {"spec", "runPolicy"}) != nullptr;
  return Object{{"spec", v1 ? Object{{"runPolicy", std::move(policies)}} : std::move(policies)}};
}

const Document* FindPolicy(const Document& job, std::string_view name) {
  const Document* found = Find(job, {"spec", name});
  return found != nullptr ? found : Find(job, {"spec", "runPolicy", name});
}

bool IsFinished(const Document& job) { return IsEnd(StateOf(job)); }

std::map<std::string, std::int64_t> CountersOf(const Document& job) {
  std::map<std::string, std::int64_t> counters;
  if (!HasPhase(job)) Count(job, "replicaStatuses", {"succeeded", "failed"}, counters);
  Count(job, "restarts", {"count", "disruptions"}, counters);
  return counters;
}

}  // namespace trainyard::sim
