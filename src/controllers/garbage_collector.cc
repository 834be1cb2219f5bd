#include "controllers/garbage_collector.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::controllers {
namespace {

constexpr std::size_t kDeadRemembered = 16384;
constexpr std::size_t kOrphansAtOnce = 256;
constexpr absl::Duration kCollectAgain = absl::Milliseconds(200);

// The queue's keys name a resource as well: {"apps/deployments", "namespace/name"}.
kube::ObjectKey KeyOf(const Watch& watch, const kube::ObjectMeta& meta) {
  return {.ns = StrCat(watch.resource().group, "/", watch.resource().plural), .name = meta.Key().Str()};
}

struct ParsedKey {
  std::string_view group;
  std::string_view plural;
  kube::ObjectKey object;
};
ParsedKey ParseKey(const kube::ObjectKey& key) {
  const std::string_view resource = key.ns;
  const std::size_t slash = resource.find('/');
  const std::size_t split = key.name.find('/');
  ParsedKey parsed{.group = resource.substr(0, slash), .plural = resource.substr(slash + 1)};
  if (split == std::string::npos) {
    parsed.object = {.ns = "", .name = key.name};
  } else {
    parsed.object = {.ns = key.name.substr(0, split), .name = key.name.substr(split + 1)};
  }
  return parsed;
}

bool HasFinalizer(const kube::ObjectMeta& meta, std::string_view finalizer) {
  return std::ranges::any_of(meta.finalizers, [&](const kube::SharedText& f) { return f == finalizer; });
}

bool IsWaiting(const kube::ObjectMeta& meta) { return IsHeldBy(meta, kForegroundFinalizer); }

const kube::OwnerReference* FindReference(const kube::ObjectMeta& dependent, std::string_view owner_uid) {
  const auto found =
      std::ranges::find_if(dependent.owners, [&](const auto& owner) { return owner.uid == owner_uid; });
  return found == dependent.owners.end() ? nullptr : &*found;
}

// A namespaced owner is of use only in its own namespace.
bool CanOwn(const kube::ObjectMeta& owner, const kube::ObjectMeta& dependent) {
  return owner.ns.empty() || owner.ns == dependent.ns;
}

}  // namespace

GarbageCollector::GarbageCollector(kube::Api& api, Watches& watches, Clock& clock, IdSource random, Tell tell)
    : api_(api),
      watches_(watches),
      tell_(std::move(tell)),
      loop_("garbage", clock, std::move(random),
            [this](const std::vector<kube::ObjectKey>& keys) { return Pass(keys); }) {
  watches_.AddHandler([this](const Watch& watch, const kube::ObjectMeta* before,
                             const kube::ObjectMeta* after) { Observe(watch, before, after); });
}

void GarbageCollector::ResourcesChanged() {
  for (const kube::ObjectKey& key : std::exchange(unresolved_, {})) loop_.Add(key);
}

// ---- what is worth a look

void GarbageCollector::Observe(const Watch& watch, const kube::ObjectMeta* before,
                               const kube::ObjectMeta* after) {
  if (before != nullptr) AddWaitingOwners(*before);
  if (after == nullptr) {
    MarkDead(before->uid);
    AddDependents(before->uid);
    return;
  }
  const bool waits = IsWaiting(*after);
  if (!after->owners.empty() || waits || IsHeldBy(*after, kOrphanFinalizer)) loop_.Add(KeyOf(watch, *after));
  if (waits && (before == nullptr || !IsWaiting(*before))) AddDependents(after->uid);
}

void GarbageCollector::AddDependents(std::string_view uid) {
  for (const Watch* watch : watches_.All()) {
    for (const MetaPtr& dependent : watch->ListDependents(uid)) loop_.Add(KeyOf(*watch, *dependent));
  }
}

// An owner that waits for this object may wait no longer.
void GarbageCollector::AddWaitingOwners(const kube::ObjectMeta& meta) {
  for (const kube::OwnerReference& reference : meta.owners) {
    const Watch* watch = watches_.FindKind(reference.api_version, reference.kind);
    if (watch == nullptr) continue;
    const MetaPtr owner = watch->FindUid(reference.uid);
    if (owner != nullptr && IsWaiting(*owner)) loop_.Add(KeyOf(*watch, *owner));
  }
}

void GarbageCollector::MarkDead(std::string_view uid) {
  if (!dead_.emplace(uid).second) return;
  dead_in_order_.emplace_back(uid);
  if (dead_in_order_.size() <= kDeadRemembered) return;
  dead_.erase(dead_in_order_.front());
  dead_in_order_.pop_front();
}

// ---- the pass

std::vector<kube::Outcome> GarbageCollector::Pass(const std::vector<kube::ObjectKey>& keys) {
  std::vector<kube::Outcome> outcomes(keys.size(), kube::Done{});
  std::vector<Item> items = ReadItems(keys, outcomes);
  ResolveOwners(items);
  Act(items, outcomes);
  return outcomes;
}

// By the caches alone: most objects have an owner that lives, and cost nothing more.
bool GarbageCollector::MayBeGarbage(const kube::ObjectMeta& meta) const {
  if (meta.deletion_time) return IsWaiting(meta) || HasFinalizer(meta, kOrphanFinalizer);
  return std::ranges::any_of(meta.owners, [&](const kube::OwnerReference& reference) {
    const Watch* watch = watches_.FindKind(reference.api_version, reference.kind);
    if (watch == nullptr) return true;
    const std::string ns = watch->resource().namespaced ? std::string(meta.ns.view()) : "";
    const MetaPtr owner = watch->Find({.ns = ns, .name = std::string(reference.name.view())});
    return owner == nullptr || owner->uid != reference.uid.view() || IsWaiting(*owner);
  });
}

std::vector<GarbageCollector::Item> GarbageCollector::ReadItems(const std::vector<kube::ObjectKey>& keys,
                                                                std::vector<kube::Outcome>& outcomes) {
  std::vector<Item> candidates;
  std::vector<ObjectRef> refs;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ParsedKey key = ParseKey(keys[i]);
    const Watch* watch = watches_.Find(key.group, key.plural);
    const MetaPtr known = watch == nullptr ? nullptr : watch->Find(key.object);
    if (known == nullptr || !MayBeGarbage(*known)) continue;
    candidates.push_back({.place = i, .ref = {watch->resource(), key.object}});
    refs.push_back(candidates.back().ref);
  }
  const auto found = ReadAll(api_, refs);
  std::vector<Item> items;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Item& item = candidates[i];
    if (!found[i].ok()) {
      outcomes[item.place] = kube::Failed{found[i].status()};
      continue;
    }
    if (!*found[i]) continue;  // the watch is about to say so
    item.live = **found[i];
    auto meta = kube::ParseObjectMeta(PrintJson(item.live), {.owners = true});
    if (!meta.ok()) {
      outcomes[item.place] = kube::Failed{meta.status(), /*terminal=*/true};
      continue;
    }
    item.meta = *std::move(meta);
    items.push_back(std::move(item));
  }
  return items;
}

void GarbageCollector::ResolveOwners(std::vector<Item>& items) {
  std::map<ObjectRef, std::size_t> wanted;
  std::vector<ObjectRef> refs;
  std::vector<std::vector<Place>> places(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].meta.deletion_time) continue;
    for (const kube::OwnerReference& owner : items[i].meta.owners) {
      Place place = PlaceOf(items[i], owner);
      if (place.ref && wanted.try_emplace(*place.ref, refs.size()).second) refs.push_back(*place.ref);
      places[i].push_back(std::move(place));
    }
  }
  const auto found = ReadAll(api_, refs);
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t at = 0; at < places[i].size(); ++at) {
      const kube::OwnerReference& owner = items[i].meta.owners[at];
      OwnerState state = places[i][at].otherwise;
      if (places[i][at].ref) {
        const auto& answer = found[wanted[*places[i][at].ref]];
        if (!answer.ok()) {
          state = OwnerState::kUnknown;
          items[i].trouble = answer.status();
        } else if (!*answer || UidOf(**answer) != owner.uid.view()) {
          state = OwnerState::kAbsent;
          NoteMisplaced(items[i], owner);
        } else {
          const auto meta = kube::ParseObjectMeta(PrintJson(**answer));
          state = meta.ok() && IsWaiting(*meta) ? OwnerState::kWaiting : OwnerState::kAlive;
        }
      }
      items[i].owners.push_back(state);
    }
  }
}

GarbageCollector::Place GarbageCollector::PlaceOf(Item& item, const kube::OwnerReference& owner) {
  if (dead_.contains(owner.uid.view())) return {.otherwise = OwnerState::kAbsent};
  const Watch* watch = watches_.FindKind(owner.api_version, owner.kind);
  if (watch == nullptr) return {};
  const kube::Resource& resource = watch->resource();
  if (resource.namespaced && item.meta.ns.empty()) {
    // In which namespace, nobody can say.
    item.hopeless = true;
    item.notes.push_back(
        {.resource = item.ref.resource,
         .key = item.ref.key,
         .uid = item.meta.uid,
         .warning = true,
         .reason = "OwnerRefInvalidNamespace",
         .message =
             StrCat("the owner ", owner.kind.view(), " ", owner.name.view(), " (uid ", owner.uid.view(),
                    ") is of a kind that lives in namespaces, and cannot own an object "
                    "of the whole cluster")});
    return {};
  }
  const std::string ns = resource.namespaced ? std::string(item.meta.ns.view()) : "";
  return {.ref = ObjectRef{resource, {.ns = ns, .name = std::string(owner.name.view())}}};
}

// The owner lives in another namespace: it counts as absent, and somebody should know why.
void GarbageCollector::NoteMisplaced(Item& item, const kube::OwnerReference& owner) const {
  const Watch* watch = watches_.FindKind(owner.api_version, owner.kind);
  const MetaPtr elsewhere = watch == nullptr ? nullptr : watch->FindUid(owner.uid);
  if (elsewhere == nullptr || CanOwn(*elsewhere, item.meta)) return;
  item.notes.push_back({.resource = item.ref.resource,
                        .key = item.ref.key,
                        .uid = item.meta.uid,
                        .warning = true,
                        .reason = "OwnerRefInvalidNamespace",
                        .message = StrCat("the owner ", owner.kind.view(), " ", owner.name.view(), " (uid ",
                                          owner.uid.view(), ") is in namespace ", elsewhere->ns.view(),
                                          ", and not in ", item.meta.ns.view(), ": it counts as absent")});
}

GarbageView GarbageCollector::ViewOf(const Item& item) const {
  GarbageView view{.being_deleted = item.meta.deletion_time.has_value(),
                   .foreground = HasFinalizer(item.meta, kForegroundFinalizer),
                   .orphan = HasFinalizer(item.meta, kOrphanFinalizer),
                   .owners = item.owners,
                   .dependents_known = watches_.IsCurrent()};
  for (const Watch* watch : watches_.All()) {
    for (const MetaPtr& dependent : watch->ListDependents(item.meta.uid)) {
      if (!CanOwn(item.meta, *dependent)) continue;
      ++view.dependents;
      if (FindReference(*dependent, item.meta.uid)->blocks) ++view.blocking;
      if (IsWaiting(*dependent)) view.dependent_waits = true;
    }
  }
  return view;
}

void GarbageCollector::Act(std::vector<Item>& items, std::vector<kube::Outcome>& outcomes) {
  std::vector<Action> actions;
  std::vector<std::size_t> places;  // of the actions
  for (Item& item : items) {
    for (const Note& note : item.notes) tell_(note);
    const GarbageDecision decision = DecideGarbage(ViewOf(item));
    const auto replace = [&] {
      actions.emplace_back(Replace{.ref = item.ref, .object = std::move(item.live)});
      places.push_back(item.place);
    };
    switch (decision.verdict) {
      case GarbageVerdict::kKeep:
        break;
      case GarbageVerdict::kLookAgain:
        outcomes[item.place] = PutOff(item);
        break;
      case GarbageVerdict::kDelete:
        if (decision.unblock && UnblockOwners(item.live)) {
          replace();  // and is deleted in the pass that follows from the change
          break;
        }
        actions.emplace_back(Delete{.ref = item.ref,
                                    .uid = item.meta.uid,
                                    .resource_version = item.meta.resource_version,
                                    .propagation = decision.propagation});
        places.push_back(item.place);
        break;
      case GarbageVerdict::kDropReferences:
        if (DropReferences(item.live, item.owners)) replace();
        break;
      case GarbageVerdict::kAwaitDependents:
        AddBlocking(item.meta);
        break;
      case GarbageVerdict::kEndForeground:
        if (RemoveFinalizer(item.live, kForegroundFinalizer)) replace();
        break;
      case GarbageVerdict::kOrphanDependents:
        outcomes[item.place] = Orphan(item);
        break;
    }
  }
  const std::vector<absl::Status> results = Perform(api_, actions);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (results[i].ok()) {
      log::Info("garbage", {{"action", Print(actions[i])}});
    } else {
      outcomes[places[i]] = kube::Failed{results[i]};
    }
  }
}

// When an object is looked at again of which too little is known.
kube::Outcome GarbageCollector::PutOff(const Item& item) {
  if (!item.trouble.ok()) return kube::Failed{item.trouble};
  const bool served = std::ranges::all_of(item.meta.owners, [&](const kube::OwnerReference& owner) {
    return watches_.FindKind(owner.api_version, owner.kind) != nullptr;
  });
  if (!served) {
    unresolved_.insert(KeyOf(*watches_.Find(item.ref.resource.group, item.ref.resource.plural), item.meta));
    return kube::Done{};
  }
  if (item.hopeless) return kube::Done{};
  return kube::Again{kCollectAgain};
}

void GarbageCollector::AddBlocking(const kube::ObjectMeta& owner) {
  for (const Watch* watch : watches_.All()) {
    for (const MetaPtr& dependent : watch->ListDependents(owner.uid)) {
      if (!dependent->deletion_time && FindReference(*dependent, owner.uid)->blocks) {
        loop_.Add(KeyOf(*watch, *dependent));
      }
    }
  }
}

kube::Outcome GarbageCollector::Orphan(Item& item) {
  std::vector<ObjectRef> refs;
  for (const Watch* watch : watches_.All()) {
    for (const MetaPtr& dependent : watch->ListDependents(item.meta.uid)) {
      refs.push_back({watch->resource(), dependent->Key()});
    }
  }
  for (std::size_t from = 0; from < refs.size(); from += kOrphansAtOnce) {
    const auto to = std::min(refs.size(), from + kOrphansAtOnce);
    const std::vector<ObjectRef> some(refs.begin() + static_cast<std::ptrdiff_t>(from),
                                      refs.begin() + static_cast<std::ptrdiff_t>(to));
    std::vector<Action> actions;
    auto found = ReadAll(api_, some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!found[i].ok()) return kube::Failed{found[i].status()};
      if (!*found[i] || !DropReference(**found[i], item.meta.uid)) continue;
      actions.emplace_back(Replace{.ref = some[i], .object = **std::move(found[i])});
    }
    for (const absl::Status& result : Perform(api_, actions)) {
      if (!result.ok() && !kube::IsNotFound(result)) return kube::Failed{result};
    }
  }
  RemoveFinalizer(item.live, kOrphanFinalizer);
  return OutcomeOf(Perform(api_, Replace{.ref = item.ref, .object = std::move(item.live)}));
}

}  // namespace trainyard::controllers
