#include "view/reader.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/quantity.h"
#include "kube/selector.h"
#include "view/parse.h"

namespace trainyard::view {
namespace {

constexpr std::size_t kMostEventsRead = 100;
constexpr std::size_t kMostExplained = 20;  // nodes

std::string ObjectName(const KindFacts& facts, std::string_view job) {
  return StrCat(job, facts.object_suffix);
}

// Which kind an object of the kind's resource really is: some are marked by a label, the others are plain.
Kind ActualKind(Kind kind, const Document& object) {
  Kind plain = kind;
  for (const Kind other : kKinds) {
    const KindFacts& facts = FactsOf(other);
    if (!(facts.resource == FactsOf(kind).resource)) continue;
    const bool marked = !facts.object_selector.empty() && facts.object_selector.front() != '!';
    if (!marked) plain = other;
    if (marked && Find(object, {"metadata", "labels", facts.object_selector}) != nullptr) return other;
  }
  return plain;
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

constexpr double kMilli = 1000;

// 0 for what cannot be read.
double AmountAt(const Document& container, std::string_view resource) {
  const auto amount = kube::Quantity::Parse(StringAt(container, {"usage", resource}));
  return amount.ok() ? static_cast<double>(amount->Milli().value_or(0)) / kMilli : 0;
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

bool IsOf(const Event& event, const JobPage& page) {
  return event.uid == page.job.uid ||
         std::ranges::find(page.members, event.uid, &Member::uid) != page.members.end() ||
         std::ranges::find(page.history, event.uid, &kube::GonePod::uid) != page.history.end();
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

// A client that may not see events gets none.
void AddEvents(kube::Api& api, JobPage& page) {
  auto events = ListEvents(api, page.job.ns);
  if (!events.ok()) return;
  std::ranges::copy_if(*events, std::back_inserter(page.events),
                       [&](const Event& event) { return IsOf(event, page); });
  if (page.events.size() > kMostEventsRead)
    page.events.erase(page.events.begin(), page.events.end() - static_cast<std::ptrdiff_t>(kMostEventsRead));
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
  AddEvents(api, page);
  ExplainWaiting(api, pods, page);
  return page;
}

absl::StatusOr<std::map<std::string, Usage>> ReadUsage(kube::Api& api, const std::string& ns) {
  std::map<std::string, Usage> all;
  TY_ASSIGN_OR_RETURN(
      const std::string text,
      api.Do(kube::Operation{.request = {.target = StrCat("/apis/metrics.k8s.io/v1beta1/namespaces/",
                                                          kube::PercentEncoded(ns), "/pods")}}));
  TY_ASSIGN_OR_RETURN(const Document list, ParseJson(text));
  const Array* const items = ArrayAt(list, {"items"});
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    Usage& usage = all[std::string(StringAt((*items)[i], {"metadata", "name"}))];
    const Array* const containers = ArrayAt((*items)[i], {"containers"});
    for (std::size_t c = 0; containers != nullptr && c < containers->size(); ++c) {
      usage.processors += AmountAt((*containers)[c], "cpu");
      usage.memory_bytes += AmountAt((*containers)[c], "memory");
    }
  }
  return all;
}

std::string PrintBytes(double bytes) {
  constexpr double kMebi = 1 << 20;
  return bytes >= 1024 * kMebi ? fmt::format("{:.1f}Gi", bytes / kMebi / 1024)
                               : fmt::format("{:.0f}Mi", bytes / kMebi);
}

}  // namespace trainyard::view
