#include "dashboard/pages.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "base/rfc3339.h"
#include "base/text.h"
#include "view/diagnosis.h"
#include "view/parse.h"

namespace trainyard::dashboard {
namespace {

constexpr double kMilli = 1000;

void PutTime(Object& object, std::string_view key, absl::Time time) {
  if (time != absl::InfinitePast()) object[key] = PrintMicroTime(time);
}

Array PointsOf(const Series& series) {
  Array points;
  for (const auto& [time, value] : series.points()) points.push_back(Array{time, value});
  return points;
}

Object Summary(const view::Job& job, const SeenJob* seen) {
  Object out{{"kind", view::FactsOf(job.kind).name},
             {"namespace", job.ns},
             {"name", job.name},
             {"uid", job.uid},
             {"state", job.shown},
             {"over", job.over},
             {"succeeded", job.succeeded},
             {"ready", job.ready},
             {"wanted", job.wanted},
             {"restarts", job.restarts},
             {"message", job.message.empty() ? job.reason : job.message}};
  PutTime(out, "created", job.created);
  PutTime(out, "started", job.started);
  PutTime(out, "ended", job.ended);
  if (seen != nullptr) out["size"] = PointsOf(seen->size);
  return out;
}

Array Texts(const std::vector<std::string>& texts) {
  Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

std::string_view BarState(const view::Member& member) {
  if (member.runs) return "running";
  if (member.waits) return "waiting";
  if (member.state == "Completed") return "completed";
  return member.state == "Terminating" ? "deleted" : "failed";
}

// A pod that ended by itself has failed or is complete; one that was told to go is deleted.
std::string_view BarState(const kube::GonePod& gone) {
  if (!gone.exit_code && gone.signal == 0) return "deleted";
  if (gone.signal == 0) return gone.exit_code.value_or(0) == 0 ? "completed" : "failed";
  constexpr int kTerminate = 15;
  return gone.signal == kTerminate ? "deleted" : "failed";
}

Array Timeline(const view::JobPage& page) {
  Array bars;
  for (const kube::GonePod& gone : page.history) {
    Object bar{{"member", gone.member},
               {"pod", gone.pod},
               {"state", BarState(gone)},
               {"cause", gone.cause},
               {"node", gone.node}};
    PutTime(bar, "began", gone.began == absl::InfinitePast() ? gone.ended : gone.began);
    PutTime(bar, "ended", gone.ended);
    if (gone.exit_code) bar["exitCode"] = *gone.exit_code;
    if (gone.signal != 0) bar["signal"] = gone.signal;
    if (!gone.log.empty()) bar["log"] = gone.log;
    bars.push_back(std::move(bar));
  }
  std::set<std::string> gone;
  for (const kube::GonePod& one : page.history) gone.insert(one.uid);
  for (const view::Member& member : page.members) {
    if (gone.contains(member.uid)) continue;
    Object bar{{"member", member.name},
               {"pod", member.pod},
               {"state", BarState(member)},
               {"cause", member.why},
               {"node", member.node}};
    PutTime(bar, "began", member.created);
    if (!member.runs && !member.waits) PutTime(bar, "ended", member.since);
    bars.push_back(std::move(bar));
  }
  return bars;
}

void AddReported(const job::Progress& progress, absl::Time now, Plots& plots) {
  const double seconds = absl::ToDoubleSeconds(now - absl::UnixEpoch());
  const auto add = [&](const std::string& name, double value) {
    if (std::isfinite(value)) plots[name].Add(seconds, value);
  };
  if (progress.loss) add("loss", *progress.loss);
  for (const auto& [name, value] : progress.metrics) add(name, value);
}

Object PodOnNode(const kube::CompactPod& pod) {
  Object out{
      {"namespace", pod.meta.ns.view()}, {"pod", pod.meta.name}, {"state", kube::PrintPhase(pod.phase)}};
  // The last kinds first: their pods carry the labels of an AITrainingJob too.
  for (const view::Kind kind : std::views::reverse(view::kKinds)) {
    const std::string_view job = pod.meta.labels.Get(view::FactsOf(kind).job_label);
    const auto member = job.empty() ? std::nullopt : view::ParseMember(kind, pod);
    if (!member) continue;
    out["job"] = Object{{"kind", view::FactsOf(kind).name}, {"name", job}};
    out["member"] = member->name;
    out["state"] = member->state;
    break;
  }
  return out;
}

// What the node has, and how much of it its pods ask for.
Array ResourcesOf(const kube::CompactNode& node, const std::vector<const kube::CompactPod*>& pods) {
  std::map<std::string_view, std::int64_t> used;
  for (const kube::CompactPod* const pod : pods) {
    for (const kube::ResourceAmount& amount : pod->requests) used[amount.name.view()] += amount.milli;
  }
  used["pods"] = static_cast<std::int64_t>(pods.size()) * static_cast<std::int64_t>(kMilli);
  Array resources;
  for (const kube::ResourceAmount& amount : node.allocatable) {
    resources.push_back(Object{{"name", amount.name.view()},
                               {"used", static_cast<double>(used[amount.name.view()]) / kMilli},
                               {"of", static_cast<double>(amount.milli) / kMilli}});
  }
  return resources;
}

}  // namespace

Document JobsPage(const Snapshot& snapshot, const std::string& cluster, absl::Time now) {
  Array jobs;
  for (const auto& seen : snapshot.jobs) jobs.push_back(Summary(seen->job, seen.get()));
  return Object{{"cluster", cluster}, {"now", PrintMicroTime(now)}, {"jobs", std::move(jobs)}};
}

Document JobPage(const view::JobPage& page, JobExtras extras, absl::Time now) {
  const view::Diagnosis diagnosis = view::Diagnose(page, now);
  if (!page.job.over && page.job.reported) AddReported(*page.job.reported, now, extras.plots);
  Object job = Summary(page.job, extras.seen);
  Array progress;
  for (const auto& [name, value] : page.job.progress) progress.push_back(Array{name, value});
  job["progress"] = std::move(progress);
  Array members;
  for (const view::Member& member : page.members) {
    Object one{{"name", member.name},   {"pod", member.pod}, {"node", member.node},
               {"state", member.state}, {"why", member.why}, {"restarts", member.restarts}};
    PutTime(one, "created", member.created);
    PutTime(one, "since", member.since);
    if (const auto found = extras.usage.find(member.pod); found != extras.usage.end()) {
      one["cpu"] = found->second.processors;
      one["memory"] = found->second.memory_bytes;
    }
    members.push_back(std::move(one));
  }
  Array plots;
  for (const auto& [name, series] : extras.plots)
    plots.push_back(Object{{"name", name}, {"points", PointsOf(series)}});
  Array events;
  for (const view::Event& event : page.events) events.push_back(PrintEvent(event, page.job.ns));
  return Object{
      {"now", PrintMicroTime(now)},      {"job", std::move(job)},     {"sentence", diagnosis.sentence},
      {"waits", Texts(diagnosis.waits)}, {"next", diagnosis.next},    {"members", std::move(members)},
      {"timeline", Timeline(page)},      {"plots", std::move(plots)}, {"events", std::move(events)}};
}

Document NodesPage(const std::vector<kube::CompactNode>& nodes, const std::vector<kube::CompactPod>& pods,
                   absl::Time now) {
  std::map<std::string_view, std::vector<const kube::CompactPod*>> running;
  for (const kube::CompactPod& pod : pods) {
    if (!pod.node.empty() && !pod.IsFinished()) running[pod.node.view()].push_back(&pod);
  }
  Array out;
  for (const kube::CompactNode& node : nodes) {
    const std::vector<const kube::CompactPod*>& here = running[node.meta.name];
    Array shown;
    for (const kube::CompactPod* const pod : here) shown.push_back(PodOnNode(*pod));
    out.push_back(Object{{"name", node.meta.name},
                         {"ready", node.IsReady()},
                         {"cordoned", node.unschedulable},
                         {"resources", ResourcesOf(node, here)},
                         {"pods", std::move(shown)}});
  }
  return Object{{"now", PrintMicroTime(now)}, {"nodes", std::move(out)}};
}

Document PrintEvent(const view::Event& event, const std::string& ns) {
  Object out{{"namespace", ns},        {"count", event.count},   {"warning", event.warning},
             {"object", event.object}, {"reason", event.reason}, {"message", event.message}};
  PutTime(out, "time", event.time);
  return out;
}

Document EventsPage(const std::vector<ClusterEvent>& events, absl::Time now) {
  Array out;
  for (auto event = events.rbegin(); event != events.rend(); ++event)
    out.push_back(PrintEvent(event->event, event->ns));
  return Object{{"now", PrintMicroTime(now)}, {"events", std::move(out)}};
}

}  // namespace trainyard::dashboard
