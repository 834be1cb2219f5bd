#include "view/parse.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/text.h"
#include "job/telling.h"
#include "kube/pod_end.h"
#include "view/reader.h"

namespace trainyard::view {
namespace {

constexpr absl::Time kNever = absl::InfinitePast();

absl::Time TimeAt(const Document& document, Path path) {
  return job::TimeAt(document, path).value_or(kNever);
}

std::string TextAt(const Document& document, Path path) { return std::string(StringAt(document, path)); }

void TakeStatus(const job::JobStatus& status, Job& job) {
  const job::Condition* current = status.Current();
  // A TFJob is in no state until all its pods exist; its condition Created says why they do not.
  const bool creating = current == nullptr && (current = status.Find(job::State::kCreated)) != nullptr;
  if (current != nullptr) {
    job.state = creating ? job::State::kCreating : current->type;
    job.shown = job::StateName(FactsOf(job.kind).status.telling, *job.state);
    job.reason = current->reason;
    job.message = current->message;
    job.changed = current->changed;
  }
  if (status.spec_problem) job.spec_problem = status.spec_problem->message;
  job.ready = status.ready;
  job.wanted = status.wanted;
  job.restarts = status.CountRestarts();
  job.started = status.start_time.value_or(kNever);
  job.ended = status.completion_time.value_or(kNever);
  job.over = status.IsFinished();
  job.succeeded = status.Is(job::State::kSucceeded);
  absl::Time newest = kNever;
  for (const auto& [name, role] : status.roles) {
    if (role.last_cause.empty() || role.last_time.value_or(kNever) < newest) continue;
    newest = role.last_time.value_or(kNever);
    job.last_cause = role.last_cause;
  }
}

void TakeSpec(Job& job) {
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

// What the master of an elastic job does says more than how its pods are, unless the operator restarts or
// ends the job.
void TakeTraining(const job::Progress& progress, Job& job) {
  if (job.succeeded || job.state == job::State::kPending || job.state == job::State::kCreating ||
      job.state == job::State::kRunning)
    job.shown = Print(progress.phase);
  if (!progress.reason.empty()) {
    job.message = progress.reason;
  } else if (!job.over && !progress.waiting.empty()) {
    job.message = progress.waiting;
  }
  const auto add = [&](std::string name, std::string text) {
    job.progress.emplace_back(std::move(name), std::move(text));
  };
  add("epoch", StrCat(progress.epoch, "/", progress.epochs));
  add("records", StrCat(progress.records, "/", progress.epoch_records));
  add("version", StrCat(progress.version));
  if (progress.loss) add("loss", fmt::format("{:.4f}", *progress.loss));
  if (!progress.last_nonfinite.empty())
    add("non-finite", StrCat(progress.nonfinite, ", last: ", progress.last_nonfinite));
  for (const auto& [name, value] : progress.metrics) add(name, fmt::format("{:.4f}", value));
  if (!progress.checkpoint.empty()) add("checkpoint", progress.checkpoint);
}

// What the launcher reports goes before what the operator says of the pods, until the operator ends the job.
void TakeScripts(const job::Progress& progress, Job& job) {
  if (job.over && !progress.ended) return;
  job.shown = Print(progress.phase);
  job.reason.clear();
  job.message = progress.reason;
  job.ready = progress.running;
  job.restarts = progress.restarts;
  job.started = progress.started.value_or(kNever);
  job.ended = progress.ended.value_or(kNever);
  job.changed = progress.since;
  job.over = progress.ended.has_value();
  job.succeeded = progress.phase == job::WorkPhase::kSucceeded;
  job.last_cause.clear();
  if (!progress.history.empty())
    job.last_cause = StrCat(progress.history.back().member, " ", progress.history.back().cause);
  job.progress.emplace_back("attempt", StrCat(progress.attempt));
}

void TakeProgress(Job& job) {
  const std::optional<job::Reporter> reporter = FactsOf(job.kind).reporter;
  const Document* const progress = Find(job.object, {"status", "progress"});
  if (!reporter) return;
  const bool launched = *reporter == job::Reporter::kLauncher;
  if (progress == nullptr) {
    if (launched && !job.over && job.state) job.shown = "Pending";  // its scripts have not begun
    return;
  }
  job.reported = job::ParseProgress(*reporter, *progress);
  launched ? TakeScripts(*job.reported, job) : TakeTraining(*job.reported, job);
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
  TakeStatus(job::ParseStatus(Find(job.object, {"status"}), FactsOf(kind).status), job);
  TakeSpec(job);
  TakeProgress(job);
  if (Find(job.object, {"metadata", "deletionTimestamp"}) != nullptr)
    job.shown = job::Print(job::State::kTerminating);
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
  Event out{.uid = TextAt(event, {"involvedObject", "uid"}),
            .time = TimeAt(event, {"lastTimestamp"}),
            .count = static_cast<int>(IntAt(event, {"count"}).value_or(1)),
            .warning = StringAt(event, {"type"}) == "Warning",
            .reason = TextAt(event, {"reason"}),
            .message = TextAt(event, {"message"})};
  if (out.time == kNever) out.time = TimeAt(event, {"eventTime"});
  if (out.time == kNever) out.time = TimeAt(event, {"firstTimestamp"});
  if (out.time == kNever) out.time = TimeAt(event, {"metadata", "creationTimestamp"});
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
