#include "controllers/watches.h"

#include <algorithm>
#include <set>

namespace trainyard::controllers {
namespace {

// In the same process nothing is lost on the way, so that a watch need not end to prove that it lives.
constexpr absl::Duration kServerTimeout = absl::Hours(1);

// Events are about objects, and nobody depends on one.
bool IsWatched(const apiserver::ResourceInfo& resource) {
  return resource.readable && !resource.versions.empty() &&
         (resource.custom || resource.plural != kube::Resource::Events().plural);
}

kube::Resource ResourceOf(const apiserver::ResourceInfo& info) {
  return {.group = info.group,
          .version = info.versions.front().name,
          .plural = info.plural,
          .kind = info.kind,
          .namespaced = info.namespaced};
}

}  // namespace

template <typename T>
class Watches::TypedWatch final : public Watch {
 public:
  TypedWatch(Watches& all, const kube::Resource& resource, typename kube::Watcher<T>::Decode decode)
      : Watch(resource),
        informer_(all.api_, all.clock_, IdSource(all.random_.Next()),
                  {.resource = resource, .server_timeout = kServerTimeout}, std::move(decode)) {
    by_uid_ = informer_.AddIndex(
        [](const T& object, std::vector<std::string>& values) { values.push_back(object.meta.uid); });
    by_owner_ = informer_.AddIndex([](const T& object, std::vector<std::string>& values) {
      for (const kube::OwnerReference& owner : object.meta.owners) values.emplace_back(owner.uid.view());
    });
    informer_.OnChange([this, &all](const kube::Change<T>& change) {
      all.Tell(*this, change.before != nullptr ? &change.before->meta : nullptr,
               change.after != nullptr ? &change.after->meta : nullptr);
    });
  }

  MetaPtr Find(const kube::ObjectKey& key) const override { return MetaOf(informer_.cache().Get(key)); }
  MetaPtr FindUid(std::string_view uid) const override {
    const auto found = informer_.cache().ListBy(by_uid_, uid);
    return found.empty() ? nullptr : MetaOf(found.front());
  }
  std::vector<MetaPtr> ListNamespace(std::string_view ns) const override {
    return MetasOf(informer_.cache().ListNamespace(ns));
  }
  std::vector<MetaPtr> ListAll() const override { return MetasOf(informer_.cache().List()); }
  std::vector<MetaPtr> ListDependents(std::string_view uid) const override {
    return MetasOf(informer_.cache().ListBy(by_owner_, uid));
  }

  kube::InformerBase& informer() override { return informer_; }
  kube::Informer<T>* typed() { return &informer_; }

 private:
  static MetaPtr MetaOf(const std::shared_ptr<const T>& object) {
    return object == nullptr ? nullptr : MetaPtr(object, &object->meta);
  }
  static std::vector<MetaPtr> MetasOf(const std::vector<std::shared_ptr<const T>>& objects) {
    std::vector<MetaPtr> metas;
    metas.reserve(objects.size());
    for (const auto& object : objects) metas.push_back(MetaOf(object));
    return metas;
  }

  kube::Informer<T> informer_;
  typename kube::Cache<T>::Index by_uid_;
  typename kube::Cache<T>::Index by_owner_;
};

Watches::Watches(kube::Api& api, Clock& clock, IdSource random)
    : api_(api),
      clock_(clock),
      random_(std::move(random)),
      pods_(Add<ObservedPod>(kube::Resource::Pods(), ObservePod)),
      services_(Add<kube::CompactService>(kube::Resource::Services(), ObserveService)),
      endpoints_(Add<ObservedEndpoints>(kube::Resource::Endpoints(), ObserveEndpoints)),
      nodes_(Add<ObservedNode>(kube::Resource::Nodes(), ObserveNode)),
      leases_(Add<ObservedLease>(kube::Resource::Leases(), ObserveLease)) {}

Watches::~Watches() = default;

template <typename T>
kube::Informer<T>* Watches::Add(const kube::Resource& resource, typename kube::Watcher<T>::Decode decode) {
  auto watch = std::make_unique<TypedWatch<T>>(*this, resource, std::move(decode));
  kube::Informer<T>* informer = watch->typed();
  watches_[{resource.group, resource.plural}] = std::move(watch);
  return informer;
}

bool Watches::Follow(const apiserver::ResourceTable& table) {
  bool changed = false;
  for (auto at = watches_.begin(); at != watches_.end();) {
    const auto info = table.Find(at->first.first, at->first.second);
    const kube::Resource& resource = at->second->resource();
    if (info != nullptr && info->Version(resource.version) != nullptr && info->kind == resource.kind) {
      ++at;
      continue;
    }
    const std::unique_ptr<Watch> gone = std::move(at->second);
    at = watches_.erase(at);
    changed = true;
    // Of a version that is no longer served, the objects go on in another.
    if (info != nullptr && IsWatched(*info)) continue;
    for (const MetaPtr& object : gone->ListAll()) Tell(*gone, object.get(), nullptr);
  }
  for (const auto& info : table.all()) {
    if (!IsWatched(*info) || watches_.contains({info->group, info->plural})) continue;
    Add<ObservedObject>(ResourceOf(*info), ObserveObject);
    changed = true;
  }
  if (changed) unfinished_ = true;
  return changed;
}

void Watches::Tell(const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after) {
  for (const OnChange& handler : handlers_) handler(watch, before, after);
}

void Watches::Pump(int most_steps) {
  // Once around without news: what one watch told before the others were looked at is then not newer than
  // what they have told.
  while (StepAll(most_steps)) {
    if (most_steps <= 0) return;
  }
}

// True: there was something to be told.
bool Watches::StepAll(int& steps_left) {
  bool moved = false;
  const SteadyTime now = clock_.Steady();
  for (auto& [name, watch] : watches_) {
    if (now < watch->resume_) continue;
    watch->current_ = false;
    while (steps_left > 0) {
      --steps_left;
      const kube::InformerBase::Progress progress = watch->informer().Step(absl::ZeroDuration());
      if (progress.wait > absl::ZeroDuration()) {
        watch->resume_ = clock_.Steady() + progress.wait;
        break;
      }
      if (progress.idle) {
        watch->current_ = true;
        break;
      }
      moved = true;
    }
  }
  unfinished_ = steps_left <= 0;
  return moved;
}

SteadyTime Watches::NextTime() const {
  if (unfinished_) return clock_.Steady();
  SteadyTime next = SteadyTime::Never();
  for (const auto& [name, watch] : watches_) {
    if (!watch->current_) next = std::min(next, watch->resume_);
  }
  return next;
}

bool Watches::IsCurrent() const {
  return !unfinished_ &&
         std::ranges::all_of(watches_, [](const auto& watch) { return watch.second->current_; });
}

const Watch* Watches::Find(std::string_view group, std::string_view plural) const {
  const auto found = watches_.find({std::string(group), std::string(plural)});
  return found == watches_.end() ? nullptr : found->second.get();
}

const Watch* Watches::FindKind(std::string_view api_version, std::string_view kind) const {
  const std::size_t slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? "" : api_version.substr(0, slash);
  for (const auto& [name, watch] : watches_) {
    if (name.first == group && watch->resource().kind == kind) return watch.get();
  }
  return nullptr;
}

std::vector<const Watch*> Watches::All() const {
  std::vector<const Watch*> all;
  all.reserve(watches_.size());
  for (const auto& [name, watch] : watches_) all.push_back(watch.get());
  return all;
}

}  // namespace trainyard::controllers
