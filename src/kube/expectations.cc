#include "kube/expectations.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::kube {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool IsVersionAtLeast(std::string_view seen, std::string_view wanted) {
  if (!IsNumber(seen) || !IsNumber(wanted)) return !wanted.empty() && seen == wanted;
  while (seen.starts_with('0')) seen.remove_prefix(1);
  while (wanted.starts_with('0')) wanted.remove_prefix(1);
  return seen.size() != wanted.size() ? seen.size() > wanted.size() : seen >= wanted;
}

// ---- writes

void Expectations::ExpectCreation(const ObjectKey& owner, const ObjectKey& object) {
  MutexLock lock(mu_);
  Add(owner, object, {.kind = Kind::kCreation});
}

void Expectations::CreationDone(const ObjectKey& owner, const ObjectKey& object, std::string_view uid,
                                std::string_view version) {
  MutexLock lock(mu_);
  Pending* pending = Find(owner, Kind::kCreation, object);
  if (pending == nullptr) return;  // given up or forgotten meanwhile
  // The event may have been faster than the answer.
  const bool seen = pending->seen_uids.contains(std::string(uid)) || IsVersionAtLeast(newest_, version);
  pending->uid = uid;
  pending->version = version;
  pending->seen_uids.clear();
  if (seen) Remove(owner, object, [&](const Pending& p) { return &p == pending; });
}

void Expectations::CreationFailed(const ObjectKey& owner, const ObjectKey& object) {
  MutexLock lock(mu_);
  const Pending* pending = Find(owner, Kind::kCreation, object);
  if (pending != nullptr) Remove(owner, object, [&](const Pending& p) { return &p == pending; });
}

void Expectations::ExpectDeletion(const ObjectKey& owner, const ObjectKey& object, std::string_view uid) {
  MutexLock lock(mu_);
  Add(owner, object, {.kind = Kind::kDeletion, .uid = std::string(uid)});
}

void Expectations::DeletionFailed(const ObjectKey& owner, const ObjectKey& object, std::string_view uid) {
  MutexLock lock(mu_);
  Remove(owner, object, [&](const Pending& p) { return p.kind == Kind::kDeletion && p.uid == uid; });
}

void Expectations::ExpectVersion(const ObjectKey& owner, const ObjectKey& object, std::string_view version) {
  MutexLock lock(mu_);
  if (!IsNumber(version) || IsVersionAtLeast(newest_, version)) return;
  Add(owner, object, {.kind = Kind::kVersion, .version = std::string(version)});
}

// ---- sights

bool Expectations::IsFulfilledBy(Pending& pending, const Sight& sight) {
  switch (pending.kind) {
    case Kind::kCreation:
      if (pending.uid.empty()) {
        pending.seen_uids.emplace(sight.uid);
        return false;
      }
      return pending.uid == sight.uid;
    case Kind::kDeletion:
      return sight.leaving && pending.uid == sight.uid;
    case Kind::kVersion:
      return IsVersionAtLeast(sight.version, pending.version);
  }
  return false;
}

void Expectations::Seen(const Sight& sight) {
  MutexLock lock(mu_);
  Raise(sight.version);
  const auto found = owners_of_.find(sight.object);
  if (found == owners_of_.end()) return;
  const std::set<ObjectKey> owners = found->second;  // Remove() changes it
  for (const ObjectKey& owner : owners) {
    Remove(owner, sight.object, [&](Pending& pending) { return IsFulfilledBy(pending, sight); });
  }
}

void Expectations::SeenUpTo(std::string_view version) {
  MutexLock lock(mu_);
  Raise(version);
  std::vector<ObjectKey> owners;
  owners.reserve(owners_.size());
  for (const auto& [owner, objects] : owners_) owners.push_back(owner);
  for (const ObjectKey& owner : owners) {
    RemoveAll(owner, [&](const ObjectKey&, const Pending& pending) {
      return !pending.version.empty() && IsVersionAtLeast(version, pending.version);
    });
  }
}

void Expectations::Raise(std::string_view version) {
  if (!IsVersionAtLeast(newest_, version)) newest_ = version;
}

// ---- before a pass

Expectations::Verdict Expectations::Check(const ObjectKey& owner) {
  MutexLock lock(mu_);
  Verdict verdict;
  const SteadyTime now = clock_.Steady();
  RemoveAll(owner, [&](const ObjectKey& object, const Pending& pending) {
    if (now - pending.since < patience_) return false;
    constexpr std::string_view kWords[] = {"creation of ", "deletion of ", "update of "};
    verdict.given_up.push_back(StrCat(kWords[static_cast<std::size_t>(pending.kind)], object.Str()));
    return true;
  });
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return verdict;
  verdict.caught_up = false;
  verdict.wait = patience_;
  for (const auto& [object, pendings] : found->second) {
    for (const Pending& pending : pendings) {
      verdict.wait = std::min(verdict.wait, pending.since + patience_ - now);
    }
  }
  return verdict;
}

void Expectations::Forget(const ObjectKey& owner) {
  MutexLock lock(mu_);
  RemoveAll(owner, [](const ObjectKey&, const Pending&) { return true; });
}

// ---- the table

void Expectations::Add(const ObjectKey& owner, const ObjectKey& object, Pending pending) {
  pending.since = clock_.Steady();
  owners_of_[object].insert(owner);
  owners_[owner][object].push_back(std::move(pending));
}

Expectations::Pending* Expectations::Find(const ObjectKey& owner, Kind kind, const ObjectKey& object) {
  const auto objects = owners_.find(owner);
  if (objects == owners_.end()) return nullptr;
  const auto pendings = objects->second.find(object);
  if (pendings == objects->second.end()) return nullptr;
  const auto found = std::ranges::find(pendings->second, kind, &Pending::kind);
  return found == pendings->second.end() ? nullptr : &*found;
}

template <typename F>
void Expectations::Remove(const ObjectKey& owner, const ObjectKey& object, F&& done) {
  const auto objects = owners_.find(owner);
  if (objects == owners_.end()) return;
  const auto pendings = objects->second.find(object);
  if (pendings == objects->second.end()) return;
  std::erase_if(pendings->second, done);
  if (!pendings->second.empty()) return;
  const auto owners = owners_of_.find(object);
  owners->second.erase(owner);
  if (owners->second.empty()) owners_of_.erase(owners);
  objects->second.erase(pendings);
  if (objects->second.empty()) owners_.erase(objects);
}

template <typename F>
void Expectations::RemoveAll(const ObjectKey& owner, F&& done) {
  const auto objects = owners_.find(owner);
  if (objects == owners_.end()) return;
  std::vector<ObjectKey> keys;
  keys.reserve(objects->second.size());
  for (const auto& [object, pendings] : objects->second) keys.push_back(object);
  for (const ObjectKey& object : keys) {
    Remove(owner, object, [&](const Pending& pending) { return done(object, pending); });
  }
}

}  // namespace trainyard::kube
