#include "tests/sim/promises.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "tests/sim/documents.h"

namespace trainyard::sim {
namespace {

using kube::Resource;

int AttemptOf(const Document& pod) {
  return ParseNumber<int>(StringAt(pod, {"metadata", "annotations", "trainyard.dev/attempt"})).value_or(0);
}

int StoredAttempt(const job::JobStatus& status, const Document& pod) {
  for (const auto& [name, role] : status.roles) {
    std::string slug = name;
    std::ranges::transform(slug, slug.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    if (slug != LabelOf(pod, "tf-replica-type")) continue;
    return role.AttemptOf(ParseNumber<int>(LabelOf(pod, "tf-replica-index")).value_or(0));
  }
  return 0;
}

// A pod that should have been cleaned up.
std::string LeftOf(const Document& job, const std::vector<Document>& pods) {
  const std::string_view clean = StringAt(job, {"spec", "cleanPodPolicy"});
  if (clean == "None") return "";
  for (const Document& pod : pods) {
    if (LabelOf(pod, "trainyard.dev/job-uid") != UidOf(job)) continue;
    const std::string_view phase = StringAt(pod, {"status", "phase"});
    if (clean == "All" || (phase != "Succeeded" && phase != "Failed")) return KeyOf(pod).name;
  }
  return "";
}

}  // namespace

void Promises::Break(std::string what) {
  cluster_.story().Tell(StrCat("BROKEN: ", what));
  broken_.push_back(std::move(what));
}

void Promises::Check() {
  for (const Document& job : cluster_.ListJobs()) CheckJob(job);
  std::set<std::string> seats;
  for (const Document& pod : cluster_.ListPods()) {
    const std::string seat = StrCat(LabelOf(pod, "trainyard.dev/job-uid"), " ",
                                    LabelOf(pod, "tf-replica-type"), "-", LabelOf(pod, "tf-replica-index"));
    if (!seats.insert(seat).second) Break(StrCat("two pods of one index: ", seat));
  }
}

void Promises::CheckJob(const Document& job) {
  const std::string name = KeyOf(job).name;
  static const std::set<std::string> states = {"",          "Created",   "Running", "Restarting",
                                               "Suspended", "Succeeded", "Failed"};
  const std::string state = StateOf(job);
  if (!states.contains(state)) Break(StrCat(name, " is in two states at once: ", state));
  Known& known = known_[UidOf(job)];
  if ((known.state == "Succeeded" || known.state == "Failed") && state != known.state) {
    Break(StrCat(name, " went from ", known.state, " to ", state));
  }
  const bool ended = Find(job, {"status", "completionTime"}) != nullptr;
  if (ended != IsFinished(job)) Break(StrCat(name, " has a completion time and is ", state));
  auto counters = CountersOf(job);
  for (const auto& [what, before] : known.counters) {
    const auto now = counters.find(what);
    const bool may_fall = scaled_.contains(name) && what.ends_with("succeeded");
    if ((now == counters.end() ? 0 : now->second) < before && !may_fall) {
      Break(StrCat(name, ": ", what, " fell from ", before));
    }
  }
  if (state != known.state) cluster_.story().Tell(StrCat(name, " is ", state));
  known = {.state = state, .counters = std::move(counters)};
  const auto limit = IntAt(job, {"spec", "backoffLimit"});
  if (!limit || IsFinished(job)) return;
  if (IntAt(job, {"status", "restartCount"}).value_or(0) > *limit)
    Break(StrCat(name, " has gone beyond its limit"));
}

void Promises::JudgeWrite(const kube::Request& request) {
  const std::string_view target(request.target);
  cluster_.story().Tell(StrCat("  ", request.method, " ", target));
  const std::size_t at = target.find("/pods");
  if (at == std::string_view::npos) return;
  if (request.method == "POST") return JudgeCreate(ParseJson(request.body).value());
  if (request.method != "DELETE") return;
  const std::string_view name = target.substr(at + 6);
  JudgeDelete(std::string(name.substr(0, name.find('?'))), request);
}

std::optional<Document> Promises::OwnerOf(const Document& pod) {
  const Array* owners = ArrayAt(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || owners->empty()) return std::nullopt;
  auto job = cluster_.Get(cluster_.kind().resource(), std::string(StringAt((*owners)[0], {"name"})));
  if (job && UidOf(*job) != StringAt((*owners)[0], {"uid"})) return std::nullopt;
  return job;
}

job::JobStatus Promises::StatusOf(const Document& job) const {
  return cluster_.kind().Decode(PrintJson(job)).value().status;
}

void Promises::JudgeCreate(const Document& pod) {
  const auto job = OwnerOf(pod);
  if (!job) return cluster_.ExpectGarbage();  // it was deleted just now
  if (IsFinished(*job)) Break(StrCat("a pod is made for ", KeyOf(*job).name, ", which has ended"));
  // A scale-down forgets indexes, and with them their numbers.
  const int stored = StoredAttempt(StatusOf(*job), pod);
  if (!scaled_.contains(KeyOf(*job).name) && AttemptOf(pod) > stored) {
    Break(StrCat(KeyOf(pod).name, " is made under number ", AttemptOf(pod), ", and ", stored, " is stored"));
  }
}

void Promises::JudgeDelete(const std::string& name, const kube::Request& request) {
  const auto pod = cluster_.Get(Resource::Pods(), name);
  if (!pod) return;
  const auto options = ParseJson(request.body);
  if (!options.ok() || StringAt(*options, {"preconditions", "uid"}).empty()) {
    return Break(StrCat(name, " is deleted whoever it is"));
  }
  // The server will refuse it: another has the name by now.
  if (StringAt(*options, {"preconditions", "uid"}) != UidOf(*pod)) return;
  const auto job = OwnerOf(*pod);
  if (!job || IsFinished(*job) || scaled_.contains(KeyOf(*job).name) || suspended_.contains(KeyOf(*job).name))
    return;
  if (IsLeaving(*pod) || AttemptOf(*pod) < StoredAttempt(StatusOf(*job), *pod)) return;
  Break(StrCat(name, " is deleted, and its failure is not stored"));
}

bool Promises::AllSettled() {
  const auto jobs = cluster_.ListJobs();
  if (!std::ranges::all_of(jobs, IsFinished)) return false;
  const auto pods = cluster_.ListPods();
  return std::ranges::all_of(jobs, [&](const Document& job) { return LeftOf(job, pods).empty(); });
}

int Promises::CheckEnds() {
  const auto pods = cluster_.ListPods();
  int finished = 0;
  for (const Document& job : cluster_.ListJobs()) {
    if (!IsFinished(job)) {
      Break(StrCat(KeyOf(job).name, " hangs in state '", StateOf(job),
                   "': ", PrintJson(*Find(job, {"status"}))));
      continue;
    }
    ++finished;
    if (const std::string left = LeftOf(job, pods); !left.empty()) Break(StrCat(left, " is left behind"));
  }
  return finished;
}

}  // namespace trainyard::sim
