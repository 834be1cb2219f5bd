#include "view/parse.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/text.h"
#include "kube/pod_end.h"
#include "kube/rfc3339.h"
#include "view/usage.h"

namespace trainyard::view {
namespace {

absl::Time TimeAt(const Document& document, Path path) {
  return kube::ParseTime(StringAt(document, path)).value_or(absl::InfinitePast());
}

std::string TextAt(const Document& document, Path path) { return std::string(StringAt(document, path)); }

// "3/4".
void ParseReady(std::string_view text, Job& job) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return;
  job.ready = ParseNumber<int>(text.substr(0, slash)).value_or(0);
  job.wanted = ParseNumber<int>(text.substr(slash + 1)).value_or(0);
}

void TakeCondition(const Document& condition, Job& job) {
  job.state = TextAt(condition, {"type"});
  job.reason = TextAt(condition, {"reason"});
  job.message = TextAt(condition, {"message"});
  job.changed = TimeAt(condition, {"lastTransitionTime"});
}

// The newest cause of any role.
void TakeRestarts(const Document& status, Job& job) {
  const Object* const restarts = ObjectAt(status, {"restarts"});
  if (restarts == nullptr) return;
  absl::Time newest = absl::InfinitePast();
  for (const auto& role : *restarts) {
    const absl::Time time = TimeAt(role.value(), {"lastTime"});
    if (StringAt(role.value(), {"lastCause"}).empty() || time < newest) continue;
    newest = time;
    job.last_cause = TextAt(role.value(), {"lastCause"});
  }
}

void ParseCustom(Job& job) {
  static const Document none;
  const Document* const found = Find(job.object, {"status"});
  const Document& status = found == nullptr ? none : *found;
  if (const Array* const conditions = ArrayAt(status, {"conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"type"}) == "SpecInvalid") {
        job.spec_problem = TextAt(condition, {"message"});
      } else if (StringAt(condition, {"status"}) == "True") {
        TakeCondition(condition, job);
      }
    }
    // A TFJob is in no state until all its pods exist; its condition Created says why they do not.
    for (const Document& condition : *conditions) {
      const bool creating =
          StringAt(condition, {"type"}) == "Created" && !StringAt(condition, {"reason"}).ends_with("Created");
      if (!creating || (!job.state.empty() && job.state != "Created")) continue;
      TakeCondition(condition, job);
      job.state = "Creating";
    }
  }
  if (const std::string_view phase = StringAt(status, {"phase"}); !phase.empty()) job.state = phase;
  ParseReady(StringAt(status, {"ready"}), job);
  job.restarts = IntAt(status, {"restartTotal"}).value_or(IntAt(status, {"restartCount"}).value_or(0));
  job.started = TimeAt(status, {"startTime"});
  job.ended = std::max(TimeAt(status, {"completionTime"}), TimeAt(status, {"endTime"}));
  TakeRestarts(status, job);
  static const std::set<std::string_view> ends = {"Succeeded", "Succeed",   "Failed",
                                                  "Timeout",   "Preempted", "NodeFail"};
  job.over = ends.contains(job.state);
  job.succeeded = job.state.starts_with("Succe");
  const Object* const specs = ObjectAt(job.object, {"spec", FactsOf(job.kind).roles});
  if (specs == nullptr) return;
  for (const auto& role : *specs) {
    const Array* const containers = ArrayAt(role.value(), {"template", "spec", "containers"});
    std::string text = StrCat(IntAt(role.value(), {"replicas"}).value_or(1), " pods");
    if (containers != nullptr && !containers->empty())
      StrAppend(text, " of ", StringAt(containers->front(), {"image"}));
    job.spec.emplace_back(Key(role), std::move(text));
  }
}

// What the master of an elastic job reports stands in the job's status.
void ParseProgress(const Document& progress, Job& job) {
  job.told = progress;
  const std::string_view phase = StringAt(progress, {"phase"});
  // What it does says more than how its pods are, unless the operator restarts or ends it.
  if (job.succeeded || job.state == "Pending" || job.state == "Creating" || job.state == "Running")
    job.state = phase;
  if (const std::string_view reason = StringAt(progress, {"reason"}); !reason.empty()) {
    job.message = reason;
  } else if (!job.over && !StringAt(progress, {"waiting"}).empty()) {
    job.message = TextAt(progress, {"waiting"});
  }
  const auto add = [&](std::string name, std::string text) {
    job.progress.emplace_back(std::move(name), std::move(text));
  };
  add("epoch", StrCat(IntAt(progress, {"epoch"}).value_or(0), "/", IntAt(progress, {"epochs"}).value_or(0)));
  add("records",
      StrCat(IntAt(progress, {"records"}).value_or(0), "/", IntAt(progress, {"epochRecords"}).value_or(0)));
  add("version", StrCat(IntAt(progress, {"version"}).value_or(0)));
  if (const auto loss = NumberAt(progress, {"loss"})) add("loss", fmt::format("{:.4f}", *loss));
  if (const std::string_view last = StringAt(progress, {"lastNonFinite"}); !last.empty())
    add("non-finite", StrCat(IntAt(progress, {"nonFinite"}).value_or(0), ", last: ", last));
  if (const Object* const metrics = ObjectAt(progress, {"metrics"})) {
    for (const auto& metric : *metrics)
      add(std::string(Key(metric)), fmt::format("{:.4f}", NumberOf(metric.value()).value_or(0)));
  }
  if (const std::string_view checkpoint = StringAt(progress, {"checkpoint"}); !checkpoint.empty())
    add("checkpoint", std::string(checkpoint));
}

// What the launcher reports goes before what the operator says of the pods, until the operator ends the job.
void ParseTask(Job& job) {
  ParseCustom(job);
  const Document* const progress = Find(job.object, {"status", "progress"});
  if (progress == nullptr) {
    if (!job.over && !job.state.empty()) job.state = "Pending";  // its scripts have not begun
    return;
  }
  const bool ended = Find(*progress, {"ended"}) != nullptr;
  if (job.over && !ended) return;
  job.state = TextAt(*progress, {"phase"});
  job.reason.clear();
  job.message = TextAt(*progress, {"reason"});
  job.ready = static_cast<int>(IntAt(*progress, {"running"}).value_or(0));
  job.restarts = IntAt(*progress, {"restarts"}).value_or(0);
  job.started = TimeAt(*progress, {"started"});
  job.ended = TimeAt(*progress, {"ended"});
  job.changed = TimeAt(*progress, {"since"});
  job.over = ended;
  job.succeeded = job.state == "Succeeded";
  job.last_cause.clear();
  if (const Array* const history = ArrayAt(*progress, {"history"}); history != nullptr && !history->empty())
    job.last_cause = StrCat(StringAt(history->back(), {"member"}), " ", StringAt(history->back(), {"cause"}));
  job.progress.emplace_back("attempt", StrCat(IntAt(*progress, {"attempt"}).value_or(1)));
}

bool Terminated(const kube::ContainerStatus& container) {
  return container.state.kind == kube::ContainerState::Kind::kTerminated;
}

// "OOMKilled" says more than "Failed".
void TellEnd(const kube::CompactPod& pod, Member& member) {
  member.state = pod.phase == kube::PodPhase::kSucceeded ? "Completed" : "Failed";
  if (!pod.reason.empty()) member.state = std::string(pod.reason.view());
  for (const kube::ContainerStatus& container : pod.containers) {
    if (!Terminated(container)) continue;
    if (container.state.finished) member.since = std::max(member.since, *container.state.finished);
    if (member.exit_code == 0) member.exit_code = container.state.exit_code;
    const std::string_view reason = container.state.reason.view();
    if (pod.phase == kube::PodPhase::kFailed && pod.reason.empty() && !reason.empty() &&
        reason != "Completed")
      member.state = std::string(reason);
  }
  if (pod.phase == kube::PodPhase::kFailed) member.why = StrCat("it ", kube::DescribeEnd(pod));
}

// Whether it gets a node together with other pods or not at all.
bool IsInGang(const kube::CompactPod& pod) {
  return !pod.meta.labels.Get("scheduling.x-k8s.io/pod-group").empty() ||
         std::ranges::find(pod.scheduling_gates, "trainyard.dev/gang", &kube::SharedText::view) !=
             pod.scheduling_gates.end();
}

// Why a pod that has a node does not run.
void TellWaiting(const kube::CompactPod& pod, Member& member) {
  const auto look = [&](const std::vector<kube::ContainerStatus>& containers) {
    for (const kube::ContainerStatus& container : containers) {
      if (container.state.kind != kube::ContainerState::Kind::kWaiting || container.state.reason.empty())
        continue;
      member.state = std::string(container.state.reason.view());
      member.why = StrCat("container ", container.name.view(), " waits: ", container.state.reason.view());
      if (!container.state.message.empty()) StrAppend(member.why, ": ", container.state.message);
    }
  };
  look(pod.init_containers);
  look(pod.containers);
  if (pod.phase == kube::PodPhase::kPending && member.why.empty())
    member.why = pod.node.empty() ? "it has no node yet"
                                  : StrCat("its containers are being made on ", pod.node.view());
  if (pod.phase == kube::PodPhase::kPending && pod.node.empty() && !pod.unscheduled.empty()) {
    member.state = "Unschedulable";
    member.why = StrCat(member.gang ? "" : "no node takes it: ", pod.unscheduled.view());
  }
  if (pod.node.empty() && !pod.scheduling_gates.empty()) {
    member.state = "SchedulingGated";
    member.why = member.gang
                     ? "its gates are lifted when there is room for all of its gang"
                     : StrCat("the scheduling gate ", pod.scheduling_gates.front().view(), " is not lifted");
  }
}

std::string Amount(std::string_view resource, std::int64_t milli) {
  if (resource == "memory" || resource == "ephemeral-storage") {
    return PrintBytes(static_cast<double>(milli) / 1000);
  }
  return milli % 1000 == 0 ? StrCat(milli / 1000) : fmt::format("{:.2f}", static_cast<double>(milli) / 1000);
}

// What pods that are not done have of one node, by resource.
using Taken = std::map<std::string_view, std::int64_t>;

NodeRefusal ExplainNode(const kube::CompactPod& waiting, const kube::CompactNode& node, const Taken& taken) {
  using enum NodeRefusal::Lack;
  const auto refuse = [&](NodeRefusal::Lack lack, const auto&... text) {
    return NodeRefusal{.lack = lack, .text = StrCat(node.meta.name, " ", text...)};
  };
  if (!node.IsReady())
    return refuse(kReadiness, "is not ready",
                  node.ready.reason.empty() ? "" : StrCat(" (", node.ready.reason.view(), ")"));
  if (node.unschedulable) return refuse(kReadiness, "is cordoned: it takes no new pods");
  for (const auto& [key, value] : waiting.node_selector.entries()) {
    if (node.meta.labels.Get(key.view()) != value.view())
      return refuse(kLabel, "has not the label ", key.view(), "=", value.view(), " that the pod asks for");
  }
  for (const kube::ResourceAmount& wanted : waiting.requests) {
    if (wanted.milli == 0) continue;
    const std::int64_t all = kube::FindAmount(node.allocatable, wanted.name.view());
    const auto found = taken.find(wanted.name.view());
    const std::int64_t left = all - (found == taken.end() ? 0 : found->second);
    if (wanted.milli <= left) continue;
    return refuse(kRoom, "has ", Amount(wanted.name.view(), std::max<std::int64_t>(left, 0)), " of ",
                  Amount(wanted.name.view(), all), " ", wanted.name.view(), " free, and it asks for ",
                  Amount(wanted.name.view(), wanted.milli));
  }
  for (const kube::Taint& taint : node.taints) {
    if (taint.effect.view() != "PreferNoSchedule")
      return refuse(kToleration, "has the taint ", taint.key.view(), taint.value.empty() ? "" : "=",
                    taint.value.view(), ":", taint.effect.view(), ", unless it tolerates that");
  }
  if (!IsInGang(waiting)) return refuse(kNothing, "has room for it now");
  std::string free;
  for (const kube::ResourceAmount& wanted : waiting.requests) {
    const std::int64_t all = kube::FindAmount(node.allocatable, wanted.name.view());
    const auto found = taken.find(wanted.name.view());
    const std::int64_t left = all - (found == taken.end() ? 0 : found->second);
    StrAppend(free, free.empty() ? "" : ", ", Amount(wanted.name.view(), left), " of ",
              Amount(wanted.name.view(), all), " ", wanted.name.view());
  }
  return refuse(kNothing, "has ", free.empty() ? "room for one of the gang" : StrCat(free, " free"));
}

}  // namespace

Job ParseJob(Kind kind, Document object) {
  Job job{.kind = kind,
          .ns = TextAt(object, {"metadata", "namespace"}),
          .name = TextAt(object, {"metadata", "name"}),
          .uid = TextAt(object, {"metadata", "uid"}),
          .created = TimeAt(object, {"metadata", "creationTimestamp"}),
          .object = std::move(object)};
  switch (kind) {
    case Kind::kTfJob:
    case Kind::kPyTorchJob:
    case Kind::kAiTrainingJob:
    case Kind::kElastic:
      ParseCustom(job);
      break;
    case Kind::kTask:
      ParseTask(job);
      break;
  }
  if (const Document* const progress = Find(job.object, {"status", "progress"});
      progress != nullptr && kind == Kind::kElastic)
    ParseProgress(*progress, job);
  if (Find(job.object, {"metadata", "deletionTimestamp"}) != nullptr) job.state = "Terminating";
  return job;
}

std::optional<Member> ParseMember(Kind kind, const kube::CompactPod& pod) {
  const KindFacts& facts = FactsOf(kind);
  const std::string_view role = pod.meta.labels.Get(facts.role_label);
  if (role.empty()) return std::nullopt;
  const std::string_view index = facts.index_label.empty() ? "" : pod.meta.labels.Get(facts.index_label);
  Member member{.name = index.empty() ? std::string(role) : StrCat(role, "-", index),
                .pod = pod.meta.name,
                .uid = pod.meta.uid,
                .node = std::string(pod.node.view()),
                .state = std::string(kube::PrintPhase(pod.phase)),
                .gang = IsInGang(pod),
                .created = pod.meta.created,
                .since = pod.start_time.value_or(pod.meta.created),
                .requests = pod.requests};
  for (const kube::ContainerStatus& container : pod.containers) {
    member.restarts += container.restart_count;
    if (member.container.empty()) member.container = std::string(container.name.view());
    if (container.last_termination) member.has_previous = true;
    if (container.state.started) member.since = std::max(member.since, *container.state.started);
  }
  if (pod.IsFinished()) {
    TellEnd(pod, member);
  } else {
    member.runs = pod.phase == kube::PodPhase::kRunning;
    TellWaiting(pod, member);
    if (!member.why.empty()) member.runs = false;
    member.waits = !member.runs;
  }
  if (pod.IsBeingDeleted()) {
    member.state = "Terminating";
    member.why = "it is being deleted";
    member.runs = member.waits = false;
  }
  return member;
}

Places PutInPlace(Kind kind, const std::vector<kube::CompactPod>& pods) {
  Places places;
  std::vector<std::pair<Member, const kube::CompactPod*>> all;
  for (const kube::CompactPod& pod : pods) {
    if (auto member = ParseMember(kind, pod)) all.emplace_back(*std::move(member), &pod);
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) {
    if (a.first.name != b.first.name) return NameLess(a.first.name, b.first.name);
    return a.first.created > b.first.created ||
           (a.first.created == b.first.created && NameLess(b.first.pod, a.first.pod));
  });
  for (auto& [member, pod] : all) {
    if (places.members.empty() || places.members.back().name != member.name) {
      places.members.push_back(std::move(member));
      continue;
    }
    kube::GonePod gone{.pod = member.pod,
                       .uid = member.uid,
                       .member = member.name,
                       .node = member.node,
                       .cause = pod->IsFinished() ? kube::DescribeEnd(*pod) : member.why,
                       .began = member.created,
                       .ended = member.since};
    if (!pod->containers.empty() && Terminated(pod->containers.front())) {
      gone.exit_code = pod->containers.front().state.exit_code;
      gone.signal = pod->containers.front().state.signal;
    }
    places.followed.push_back(std::move(gone));
  }
  return places;
}

Event ParseEvent(const Document& event) {
  Event out{.time = TimeAt(event, {"lastTimestamp"}),
            .count = static_cast<int>(IntAt(event, {"count"}).value_or(1)),
            .warning = StringAt(event, {"type"}) == "Warning",
            .reason = TextAt(event, {"reason"}),
            .message = TextAt(event, {"message"})};
  if (out.time == absl::InfinitePast()) out.time = TimeAt(event, {"eventTime"});
  if (out.time == absl::InfinitePast()) out.time = TimeAt(event, {"firstTimestamp"});
  if (out.time == absl::InfinitePast()) out.time = TimeAt(event, {"metadata", "creationTimestamp"});
  out.object = StrCat(LowerCase(StringAt(event, {"involvedObject", "kind"})), "/",
                      StringAt(event, {"involvedObject", "name"}));
  return out;
}

std::vector<NodeRefusal> ExplainNodes(const kube::CompactPod& waiting,
                                      const std::vector<kube::CompactNode>& nodes,
                                      const std::vector<kube::CompactPod>& pods) {
  std::map<std::string_view, Taken> taken;
  for (const kube::CompactPod& pod : pods) {
    if (pod.node.empty() || pod.IsFinished()) continue;
    Taken& of_node = taken[pod.node.view()];
    for (const kube::ResourceAmount& amount : pod.requests) of_node[amount.name.view()] += amount.milli;
  }
  std::vector<NodeRefusal> out;
  out.reserve(nodes.size());
  for (const kube::CompactNode& node : nodes)
    out.push_back(ExplainNode(waiting, node, taken[node.meta.name]));
  return out;
}

}  // namespace trainyard::view
