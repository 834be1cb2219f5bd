#include "view/reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/selector.h"
#include "view/parse.h"

namespace trainyard::view {
namespace {

constexpr std::size_t kMostEventsRead = 100;
constexpr std::size_t kMostExplained = 20;  // nodes

std::string ObjectName(const KindFacts& facts, std::string_view job) {
  return StrCat(job, facts.object_suffix);
}

// Which kind an object of the kind's resource really is: a label marks those that are another one.
Kind ActualKind(Kind kind, const Document& object) {
  for (const Kind other : kKinds) {
    const KindFacts& facts = FactsOf(other);
    if (facts.resource == FactsOf(kind).resource && !facts.object_selector.empty() &&
        Find(object, {"metadata", "labels", facts.object_selector}) != nullptr)
      return other;
  }
  return kind;
}

absl::Status ListKind(kube::Api& api, const JobFilter& filter, Kind kind, std::vector<Job>& jobs) {
  const KindFacts& facts = FactsOf(kind);
  std::string selector(facts.object_selector);
  if (!filter.selector.empty()) StrAppend(selector, selector.empty() ? "" : ",", filter.selector);
  const auto page = api.ListAll(facts.resource, filter.ns, {.label_selector = selector});
  if (kube::IsNotFound(page.status())) return absl::OkStatus();
  TY_RETURN_IF_ERROR(page.status());
  for (const std::string& item : page->items) {
    TY_ASSIGN_OR_RETURN(Document object, ParseJson(item));
    // The items of a list do not say what they are.
    if (Object* const fields = object.if_object()) {
      (*fields)["apiVersion"] = facts.resource.ApiVersion();
      (*fields)["kind"] = facts.resource.kind;
    }
    jobs.push_back(ParseJob(kind, std::move(object)));
  }
  return absl::OkStatus();
}

// Nothing: there is none of that kind and name. One that was asked for by the kind of its resource is found
// too.
absl::StatusOr<std::optional<Job>> GetJob(kube::Api& api, const std::string& ns, Kind kind,
                                          std::string_view name, bool asked) {
  const KindFacts& facts = FactsOf(kind);
  const auto text = api.Get(facts.resource, {ns, ObjectName(facts, name)});
  if (kube::IsNotFound(text.status())) return std::nullopt;
  TY_RETURN_IF_ERROR(text.status());
  TY_ASSIGN_OR_RETURN(Document object, ParseJson(*text));
  const Kind actual = ActualKind(kind, object);
  if (actual != kind && !(asked && kind == Kind::kAiTrainingJob)) return std::nullopt;
  return ParseJob(actual, std::move(object));
}

std::string ListNames() {
  std::string list;
  for (const Kind kind : kKinds) StrAppend(list, list.empty() ? "" : ", ", FactsOf(kind).name);
  return list;
}

template <typename T, typename Parse>
absl::StatusOr<std::vector<T>> ListParsed(kube::Api& api, const kube::Resource& resource, std::string_view ns,
                                          const std::string& selector, Parse parse) {
  TY_ASSIGN_OR_RETURN(kube::ListPage page, api.ListAll(resource, ns, {.label_selector = selector}));
  std::vector<T> all;
  for (std::string& item : page.items) {
    auto parsed = parse(std::move(item));
    if (parsed.ok()) all.push_back(*std::move(parsed));
  }
  return all;
}

absl::StatusOr<std::vector<kube::CompactPod>> PodsWith(kube::Api& api, std::string_view ns,
                                                       const std::string& selector) {
  return ListParsed<kube::CompactPod>(api, kube::Resource::Pods(), ns, selector,
                                      [](std::string json) { return kube::ParsePod(std::move(json)); });
}

// Whether a pod with the job's label is this job's, and not that of one before it.
bool HasOwner(const kube::CompactPod& pod, const Job& job) {
  return !pod.meta.controller || pod.meta.controller->uid.view() == job.uid;
}

}  // namespace

absl::StatusOr<std::vector<Job>> ListJobs(kube::Api& api, const JobFilter& filter) {
  std::vector<Job> jobs;
  for (const Kind kind : kKinds) {
    if (!filter.kinds.empty() && std::ranges::find(filter.kinds, kind) == filter.kinds.end()) continue;
    TY_RETURN_IF_ERROR(ListKind(api, filter, kind, jobs));
  }
  std::ranges::stable_sort(jobs, {}, &Job::ns);
  return jobs;
}

absl::StatusOr<JobName> ParseJobName(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return JobName{.name = std::string(text)};
  const auto kind = ParseKind(text.substr(0, slash));
  if (!kind)
    return absl::InvalidArgumentError(
        StrCat("'", Escaped(text.substr(0, slash)), "' is no kind of job: there are ", ListNames()));
  if (slash + 1 == text.size())
    return absl::InvalidArgumentError(StrCat("'", Escaped(text), "' has no name"));
  return JobName{.kind = kind, .name = std::string(text.substr(slash + 1))};
}

absl::StatusOr<Job> FindJob(kube::Api& api, const std::string& ns, const JobName& name) {
  std::vector<Job> found;
  for (const Kind kind : kKinds) {
    if (name.kind && *name.kind != kind) continue;
    TY_ASSIGN_OR_RETURN(std::optional<Job> job, GetJob(api, ns, kind, name.name, name.kind.has_value()));
    if (job) found.push_back(*std::move(job));
  }
  if (found.empty()) {
    const std::string what = name.kind ? StrCat(FactsOf(*name.kind).name, " ") : "job ";
    return absl::NotFoundError(StrCat("there is no ", what, "'", Escaped(name.name), "' in namespace ", ns,
                                      "; `trainyard get -A` lists what there is"));
  }
  if (found.size() > 1) {
    std::string ids;
    for (const Job& job : found) StrAppend(ids, ids.empty() ? "" : " or ", job.Id());
    return absl::InvalidArgumentError(StrCat("there are several jobs of that name: write ", ids));
  }
  return std::move(found.front());
}

absl::StatusOr<std::vector<kube::CompactPod>> ListPods(kube::Api& api, const Job& job) {
  TY_ASSIGN_OR_RETURN(auto pods, PodsWith(api, job.ns, StrCat(FactsOf(job.kind).job_label, "=", job.name)));
  // Those of a job of the same name that was before this one are not its own.
  std::erase_if(pods, [&](const kube::CompactPod& pod) { return !HasOwner(pod, job); });
  return pods;
}

bool IsOf(const kube::CompactPod& pod, const Job& job) {
  return pod.meta.labels.Get(FactsOf(job.kind).job_label) == job.name && HasOwner(pod, job);
}

absl::StatusOr<std::vector<Event>> ListEvents(kube::Api& api, const std::string& ns) {
  TY_ASSIGN_OR_RETURN(const kube::ListPage page, api.ListAll(kube::Resource::Events(), ns, {}));
  std::vector<Event> events;
  for (const std::string& item : page.items) {
    if (const auto event = ParseJson(item); event.ok()) events.push_back(ParseEvent(*event));
  }
  std::ranges::stable_sort(events, {}, &Event::time);
  return events;
}

bool IsOf(const Event& event, const Job& job) {
  const KindFacts& facts = FactsOf(job.kind);
  const std::string kind = LowerCase(facts.resource.kind);
  if (event.object == StrCat(kind, "/", ObjectName(facts, job.name))) return true;
  // "mnist-worker-0", "mnist-worker-0-r2": a role comes behind the name, and a number.
  const std::string begin = StrCat("pod/", job.name, "-");
  if (!event.object.starts_with(begin)) return false;
  const std::vector<std::string_view> rest = Split(std::string_view(event.object).substr(begin.size()), '-');
  const auto number = [](std::string_view word) { return ParseNumber<int>(word).has_value(); };
  return !number(rest.front()) && (rest.size() == 1 || std::ranges::any_of(rest, number));
}

namespace {

// The job with its members and its history.
absl::StatusOr<JobPage> PageOf(kube::Api& api, Job job, const std::vector<kube::CompactPod>& pods) {
  JobPage page;
  Places places = PutInPlace(job.kind, pods);
  page.members = std::move(places.members);
  TY_ASSIGN_OR_RETURN(page.history,
                      kube::ReadHistory(api, job.ns, FactsOf(job.kind).history, job.name, job.uid));
  // What is still there is shown as it is.
  std::erase_if(page.history, [&](const kube::GonePod& gone) {
    return std::ranges::find(page.members, gone.uid, &Member::uid) != page.members.end();
  });
  std::set<std::string> known;
  for (const kube::GonePod& gone : page.history) known.insert(gone.uid);
  for (kube::GonePod& gone : places.followed) {
    if (!known.contains(gone.uid)) page.history.push_back(std::move(gone));
  }
  std::ranges::stable_sort(page.history, {}, &kube::GonePod::ended);
  page.job = std::move(job);
  return page;
}

// Whoever may not see events is not told of them.
void AddEvents(kube::Api& api, const std::vector<kube::CompactPod>& pods, JobPage& page) {
  if (auto events = ListEvents(api, page.job.ns); events.ok()) {
    std::set<std::string> own;
    for (const kube::CompactPod& pod : pods) own.insert(StrCat("pod/", pod.meta.name));
    for (const kube::GonePod& gone : page.history) own.insert(StrCat("pod/", gone.pod));
    for (Event& event : *events) {
      if (own.contains(event.object) || (IsOf(event, page.job) && !event.object.starts_with("pod/")))
        page.events.push_back(std::move(event));
    }
    if (page.events.size() > kMostEventsRead)
      page.events.erase(page.events.begin(),
                        page.events.end() - static_cast<std::ptrdiff_t>(kMostEventsRead));
  }
}

// Of a member that finds no node: what each of them lacks.
void ExplainWaiting(kube::Api& api, const std::vector<kube::CompactPod>& pods, JobPage& page) {
  const auto waiting = std::ranges::find_if(pods, [](const kube::CompactPod& pod) {
    return pod.phase == kube::PodPhase::kPending && pod.node.empty() && !pod.IsBeingDeleted();
  });
  if (waiting != pods.end()) {
    // Whoever may not see nodes or all pods is not told of them.
    const auto nodes =
        ListParsed<kube::CompactNode>(api, kube::Resource::Nodes(), "", "",
                                      [](std::string json) { return kube::ParseNode(std::move(json)); });
    const auto all = PodsWith(api, "", "");
    if (nodes.ok() && all.ok()) page.why_nodes = ExplainNodes(*waiting, *nodes, *all);
    if (page.why_nodes.size() > kMostExplained) {
      const std::size_t more = page.why_nodes.size() - kMostExplained;
      page.why_nodes.resize(kMostExplained);
      page.why_nodes.push_back({.text = StrCat("and ", more, " other nodes")});
    }
  }
}

}  // namespace

absl::StatusOr<JobPage> ReadMembers(kube::Api& api, Job job) {
  TY_ASSIGN_OR_RETURN(const std::vector<kube::CompactPod> pods, ListPods(api, job));
  return PageOf(api, std::move(job), pods);
}

absl::StatusOr<JobPage> ReadPage(kube::Api& api, Job job) {
  TY_ASSIGN_OR_RETURN(const std::vector<kube::CompactPod> pods, ListPods(api, job));
  TY_ASSIGN_OR_RETURN(JobPage page, PageOf(api, std::move(job), pods));
  AddEvents(api, pods, page);
  ExplainWaiting(api, pods, page);
  return page;
}

}  // namespace trainyard::view
