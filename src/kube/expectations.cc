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
  Add(owner, {.kind = Kind::kCreation, .object = object});
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
  if (seen) Remove(owner, [&](const Pending& p) { return &p == pending; });
}

void Expectations::CreationFailed(const ObjectKey& owner, const ObjectKey& object) {
  MutexLock lock(mu_);
  const Pending* pending = Find(owner, Kind::kCreation, object);
  if (pending != nullptr) Remove(owner, [&](const Pending& p) { return &p == pending; });
}

void Expectations::ExpectDeletion(const ObjectKey& owner, const ObjectKey& object, std::string_view uid) {
  MutexLock lock(mu_);
  Add(owner, {.kind = Kind::kDeletion, .object = object, .uid = std::string(uid)});
}

void Expectations::DeletionFailed(const ObjectKey& owner, const ObjectKey& object, std::string_view uid) {
  MutexLock lock(mu_);
  Remove(owner,
         [&](const Pending& p) { return p.kind == Kind::kDeletion && p.object == object && p.uid == uid; });
}

void Expectations::ExpectVersion(const ObjectKey& owner, const ObjectKey& object, std::string_view version) {
  MutexLock lock(mu_);
  if (!IsNumber(version) || IsVersionAtLeast(newest_, version)) return;
  Add(owner, {.kind = Kind::kVersion, .object = object, .version = std::string(version)});
}

// ---- sights

bool Expectations::IsFulfilledBy(Pending& pending, const Sight& sight) {
  if (pending.object != sight.object) return false;
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
    Remove(owner, [&](Pending& pending) { return IsFulfilledBy(pending, sight); });
  }
}

void Expectations::SeenUpTo(std::string_view version) {
  MutexLock lock(mu_);
  Raise(version);
  std::vector<ObjectKey> owners;
  owners.reserve(owners_.size());
  for (const auto& [owner, pendings] : owners_) owners.push_back(owner);
  for (const ObjectKey& owner : owners) {
    Remove(owner, [&](const Pending& pending) {
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
  Remove(owner, [&](const Pending& pending) {
    if (now - pending.since < patience_) return false;
    constexpr std::string_view kWords[] = {"creation of ", "deletion of ", "update of "};
    verdict.given_up.push_back(StrCat(kWords[static_cast<std::size_t>(pending.kind)], pending.object.Str()));
    return true;
  });
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return verdict;
  verdict.caught_up = false;
  verdict.wait = patience_;
  for (const Pending& pending : found->second) {
    verdict.wait = std::min(verdict.wait, pending.since + patience_ - now);
  }
  return verdict;
}

void Expectations::Forget(const ObjectKey& owner) {
  MutexLock lock(mu_);
  Remove(owner, [](const Pending&) { return true; });
}

std::size_t Expectations::CountPending() const {
  MutexLock lock(mu_);
  std::size_t count = 0;
  for (const auto& [owner, pendings] : owners_) count += pendings.size();
  return count;
}

// ---- the table

void Expectations::Add(const ObjectKey& owner, Pending pending) {
  pending.since = clock_.Steady();
  owners_of_[pending.object].insert(owner);
  owners_[owner].push_back(std::move(pending));
}

Expectations::Pending* Expectations::Find(const ObjectKey& owner, Kind kind, const ObjectKey& object) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return nullptr;
  for (Pending& pending : found->second) {
    if (pending.kind == kind && pending.object == object) return &pending;
  }
  return nullptr;
}

template <typename F>
void Expectations::Remove(const ObjectKey& owner, F&& done) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  Pendings kept;
  std::set<ObjectKey> objects;
  for (Pending& pending : found->second) {
    objects.insert(pending.object);
    if (!done(pending)) kept.push_back(std::move(pending));
  }
  if (kept.size() == found->second.size()) {
    found->second = std::move(kept);
    return;
  }
  for (const Pending& pending : kept) objects.erase(pending.object);
  for (const ObjectKey& object : objects) {
    const auto owners = owners_of_.find(object);
    owners->second.erase(owner);
    if (owners->second.empty()) owners_of_.erase(owners);
  }
  if (kept.empty()) {
    owners_.erase(found);
  } else {
    found->second = std::move(kept);
  }
}

}  // namespace trainyard::kube
