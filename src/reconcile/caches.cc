#include "reconcile/caches.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "job/members.h"
#include "job/names.h"
#include "reconcile/labels.h"

namespace trainyard::reconcile {
namespace {

// What is nobody's is found by the name of the job in its labels.
std::string OrphanIndex(std::string_view ns, std::string_view job) { return StrCat("orphan:", ns, "/", job); }

template <typename T>
typename kube::Cache<T>::IndexBy IndexByOwner(const Kind& kind) {
  return [&kind](const T& object, std::vector<std::string>& values) {
    if (object.meta.controller) {
      values.emplace_back(object.meta.controller->uid.view());
    } else if (const auto place = kind.FindPlace(object.meta)) {
      values.push_back(OrphanIndex(object.meta.ns, place->job));
    }
  };
}

// One that another job of the same name has left behind is not ours to take.
bool MayAdopt(const kube::ObjectMeta& meta, const CompactJob& job) {
  const std::string_view uid = meta.labels.Get(kJobUidLabel);
  return (uid.empty() || uid == job.meta.uid) && !meta.deletion_time;
}

// Which of the job's an object is. Its name says so as long as it lives; labels may be changed.
struct Seating {
  Place place;
  bool mislabelled = false;
};
std::optional<Seating> FindSeat(const Kind& kind, const CompactJob& job, const kube::ObjectMeta& meta) {
  auto labelled = kind.FindPlace(meta);
  if (!meta.controller) return labelled ? std::optional(Seating{*std::move(labelled)}) : std::nullopt;
  auto named = job::ParsePodName(NamingOf(job), meta.name);
  const bool known =
      named && std::ranges::find(job.spec.roles, named->role, &job::RoleSpec::slug) != job.spec.roles.end();
  if (!known && !labelled) return std::nullopt;  // of a role that is no more
  Place place =
      known ? Place{.job = job.meta.name, .role = std::move(named->role), .index = named->index} : *labelled;
  const bool mislabelled = labelled != place || meta.labels.Get(kJobUidLabel) != job.meta.uid;
  return Seating{.place = std::move(place), .mislabelled = mislabelled};
}

bool IsAltered(const Kind& kind, const CompactJob& job, const Place& place, const CompactService& service) {
  if (!service.selects_by_its_labels || service.selector_size != kind.place_labels().size() + 2) return true;
  const auto role = std::ranges::find(job.spec.roles, place.role, &job::RoleSpec::slug);
  return role != job.spec.roles.end() && service.ports != role->ports;
}

// Whether the job is the same but for the time of the last look.
bool IsOwnWrite(const kube::Change<CompactJob>& change) {
  if (change.before == nullptr || change.after == nullptr) return false;
  const CompactJob& before = *change.before;
  const CompactJob& after = *change.after;
  job::JobStatus status = after.status;
  status.last_reconcile_time = before.status.last_reconcile_time;
  return before.meta.generation == after.meta.generation &&
         before.meta.deletion_time == after.meta.deletion_time && before.spec == after.spec &&
         before.invalid == after.invalid && before.edit_problem == after.edit_problem &&
         before.status == status;
}

// A spec that would make the job too large to store is not stored a second time in its status.
std::string StorableSpec(const std::string& text) {
  constexpr std::size_t kMost = std::size_t{512} << 10;
  return text.size() > kMost ? "" : text;
}

// Of ten thousand pods and services, what is not looked at is not kept.
kube::MetaOptions KeptOf(const Kind& kind) {
  std::vector<std::string> labels = kind.place_labels();
  labels.emplace_back(kJobUidLabel);
  return {.annotations = {std::string(job::kAttemptAnnotation), std::string(kStoppedAnnotation),
                          std::string(kFencedAnnotation), std::string(kAvoidsAnnotation)},
          .labels = std::move(labels)};
}

kube::WatcherOptions Watching(const kube::Resource& resource, std::string ns, std::string_view labels = "") {
  return {.resource = resource, .ns = std::move(ns), .label_selector = std::string(labels)};
}

}  // namespace

Caches::Caches(kube::Api& api, Clock& clock, const Kind& kind, Surroundings& surroundings,
               const Options& options, std::function<void(const kube::ObjectKey&, News)> wake)
    : kind_(kind),
      surroundings_(surroundings),
      seeds_(options.seed ? IdSource(*options.seed) : IdSource::Random()),
      wake_(std::move(wake)),
      job_writes_(clock),
      pod_writes_(clock),
      service_writes_(clock),
      config_map_writes_(clock),
      pod_group_writes_(clock),
      jobs_(api, clock, IdSource(NextSeed()), Watching(kind.resource(), options.ns),
            [this](const std::string& json) {
              return DecodeJob(kind_, json,
                               [this](const kube::ObjectKey& key) { return jobs_.cache().Get(key); });
            }),
      pods_(api, clock, IdSource(NextSeed()),
            Watching(kube::Resource::Pods(), options.ns, kind.label_selector()),
            [kept = KeptOf(kind)](std::string json) { return kube::ParsePod(std::move(json), kept); }),
      services_(api, clock, IdSource(NextSeed()),
                Watching(kube::Resource::Services(), options.ns, kind.label_selector()),
                [kept = KeptOf(kind)](std::string json) { return ParseService(std::move(json), kept); }),
      config_maps_(api, clock, IdSource(NextSeed()),
                   Watching(kube::Resource::ConfigMaps(), options.ns, kind.label_selector()), ParseConfigMap),
      pod_groups_(job::UsesPodGroups(options.gang)
                      ? std::make_unique<kube::Informer<placement::PodGroup>>(
                            api, clock, IdSource(NextSeed()),
                            Watching(PodGroupsOf(options.gang), options.ns, kind.label_selector()),
                            placement::ParsePodGroup)
                      : nullptr),
      pods_by_owner_(pods_.AddIndex(IndexByOwner<kube::CompactPod>(kind))),
      pods_by_node_(pods_.AddIndex([](const kube::CompactPod& pod, std::vector<std::string>& values) {
        if (!pod.node.empty()) values.emplace_back(pod.node.view());
      })),
      services_by_owner_(services_.AddIndex(IndexByOwner<CompactService>(kind))) {
  // Writes are seen before anybody is woken, or a pass could run that does not believe its own eyes.
  jobs_.OnChange([this](const auto& change) { JobChanged(change); });
  jobs_.OnVersion([this](std::string_view version) { job_writes_.SeenUpTo(version); });
  informers_ = {&jobs_, &pods_, &services_, &config_maps_};
  if (pod_groups_ != nullptr) informers_.push_back(pod_groups_.get());
  WatchChild(pods_, pod_writes_);
  WatchChild(services_, service_writes_);
  WatchChild(config_maps_, config_map_writes_);
  if (pod_groups_ != nullptr) WatchChild(*pod_groups_, pod_group_writes_);
  surroundings.OnNodeChange([this](std::string_view name) { NodeChanged(name); });
}

template <typename T>
void Caches::WatchChild(kube::Informer<T>& informer, kube::Expectations& writes) {
  informer.OnChange([this, &writes](const kube::Change<T>& change) {
    writes.Seen(change);
    ChildChanged(change);
  });
  informer.OnVersion([&writes](std::string_view version) { writes.SeenUpTo(version); });
}

std::uint64_t Caches::NextSeed() { return seeds_.Next(); }

void Caches::Start() {
  for (kube::InformerBase* informer : informers_) informer->Start();
}

void Caches::Stop() {
  for (kube::InformerBase* informer : informers_) informer->Stop();
}

absl::Status Caches::WaitForSync(absl::Duration timeout) {
  for (kube::InformerBase* informer : informers_) TY_RETURN_IF_ERROR(informer->WaitForSync(timeout));
  return absl::OkStatus();
}

bool Caches::HasSynced() const { return std::ranges::all_of(informers_, &kube::InformerBase::HasSynced); }

bool Caches::Step() {
  bool came = false;
  for (kube::InformerBase* informer : informers_) came |= informer->StepNow();
  return came;
}

kube::Expectations::Verdict Caches::Check(const kube::ObjectKey& job) {
  kube::Expectations::Verdict verdict = job_writes_.Check(job);
  for (kube::Expectations* writes :
       {&pod_writes_, &service_writes_, &config_map_writes_, &pod_group_writes_}) {
    kube::Expectations::Verdict other = writes->Check(job);
    if (!other.caught_up) {
      verdict.wait = verdict.caught_up ? other.wait : std::min(verdict.wait, other.wait);
      verdict.caught_up = false;
    }
    for (std::string& write : other.given_up) verdict.given_up.push_back(std::move(write));
  }
  return verdict;
}

job::JobView Caches::Observe(const CompactJob& job) {
  job::JobView view{.name = job.meta.name,
                    .ns = std::string(job.meta.ns.view()),
                    .uid = job.meta.uid,
                    .generation = job.meta.generation,
                    .leaving = job.meta.deletion_time.has_value(),
                    .spec = job.spec,
                    .invalid = job.invalid,
                    .edit_problem = job.edit_problem,
                    .last_valid = job.edit_problem.empty() ? "" : StorableSpec(job.spec_text),
                    .status = job.status};
  const std::string orphan = OrphanIndex(view.ns, view.name);
  const auto find_node = [this](const kube::CompactPod& pod) { return surroundings_.FindNode(pod); };
  for (const std::string_view owner : {std::string_view(job.meta.uid), std::string_view(orphan)}) {
    for (const auto& pod : pods_.cache().ListBy(pods_by_owner_, owner)) {
      if (owner == orphan && !MayAdopt(pod->meta, job)) continue;
      auto seat = FindSeat(kind_, job, pod->meta);
      if (!seat) continue;
      view.pods.push_back(ObservePod(*pod, std::move(seat->place), kind_, find_node));
      view.pods.back().mislabelled = seat->mislabelled;
    }
    for (const auto& service : services_.cache().ListBy(services_by_owner_, owner)) {
      if (owner == orphan && !MayAdopt(service->meta, job)) continue;
      auto seat = FindSeat(kind_, job, service->meta);
      if (!seat) continue;
      const bool altered = seat->mislabelled || IsAltered(kind_, job, seat->place, *service);
      view.services.push_back(ObserveService(*service, std::move(seat->place)));
      view.services.back().altered = altered;
    }
  }
  view.members = FindConfigMap(job, job::MembersName(job.meta.name));
  view.config = FindConfigMap(job, ConfigName(job));
  view.pod_group = FindPodGroup(job);
  if (job.spec.config_in_file && !job.spec_text.empty()) {
    view.wanted_config = FingerprintOf(kind_.NewMaker(job)->MakeConfigData());
  }
  const bool accelerated = std::ranges::any_of(job.spec.roles, &job::RoleSpec::accelerated);
  if (accelerated) view.avoid_nodes = surroundings_.ListMarkedNodes();
  return view;
}

std::optional<job::ConfigMapView> Caches::FindConfigMap(const CompactJob& job,
                                                        const std::string& name) const {
  const auto found = config_maps_.cache().Get({std::string(job.meta.ns.view()), name});
  if (found == nullptr || !found->meta.controller || found->meta.controller->uid != job.meta.uid)
    return std::nullopt;
  return ObserveConfigMap(*found);
}

std::optional<job::PodGroupView> Caches::FindPodGroup(const CompactJob& job) const {
  if (pod_groups_ == nullptr) return std::nullopt;
  const auto found = pod_groups_->cache().Get(
      {std::string(job.meta.ns.view()), PodGroupName(kind_.resource().kind, job.meta.name)});
  if (found == nullptr || !found->meta.controller || found->meta.controller->uid != job.meta.uid)
    return std::nullopt;
  return job::PodGroupView{.version = found->meta.resource_version,
                           .minimum = found->minimum,
                           .leaving = found->meta.deletion_time.has_value()};
}

void Caches::JobChanged(const kube::Change<CompactJob>& change) {
  job_writes_.Seen(change);
  const kube::ObjectKey key = change.Any().meta.Key();
  if (change.after == nullptr) {  // one of the same name that follows is another
    for (kube::Expectations* writes :
         {&job_writes_, &pod_writes_, &service_writes_, &config_map_writes_, &pod_group_writes_})
      writes->Forget(key);
  }
  wake_(key, IsOwnWrite(change) ? News::kOwnWrite : News::kChange);
}

template <typename T>
void Caches::ChildChanged(const kube::Change<T>& change) {
  if (change.before != nullptr) WakeOwner(*change.before);
  if (change.after != nullptr) WakeOwner(*change.after);
}

template <typename T>
void Caches::WakeOwner(const T& object) {
  const auto& owner = object.meta.controller;
  const std::string ns(object.meta.ns.view());
  if (owner) {
    if (owner->kind == std::string_view(kind_.resource().kind))
      wake_({ns, std::string(owner->name.view())}, News::kChange);
  } else if (const auto place = kind_.FindPlace(object.meta)) {
    wake_({ns, place->job}, News::kChange);
  }
}

void Caches::NodeChanged(std::string_view name) {
  for (const auto& pod : pods_.cache().ListBy(pods_by_node_, name)) WakeOwner(*pod);
}

}  // namespace trainyard::reconcile
