#include "kv/key_index.h"

#include "base/check.h"

namespace trainyard::kv {

const Version* KeyIndex::Find(std::string_view key, Revision at) const {
  const auto it = keys_.find(key);
  return it == keys_.end() ? nullptr : At(it->second, at);
}

void KeyIndex::Add(std::string_view key, const Version& version) {
  auto it = keys_.find(key);
  if (it == keys_.end()) it = keys_.emplace(std::string(key), Versions()).first;
  TY_CHECK(it->second.empty() || it->second.back().mod_revision < version.mod_revision, "versions only grow");
  it->second.push_back(version);
}

void KeyIndex::RemoveNewest(std::string_view key) {
  const auto it = keys_.find(key);
  TY_CHECK(it != keys_.end(), "only what was added can be taken back");
  it->second.pop_back();
  if (it->second.empty()) keys_.erase(it);
}

std::vector<Version> KeyIndex::Compact(Revision at) {
  std::vector<Version> forgotten;
  for (auto it = keys_.begin(); it != keys_.end();) {
    Versions& versions = it->second;
    // The last one that a reader at `at` can see stays, unless it is an end that is past by then.
    auto keep = std::ranges::find_if(versions, [&](const Version& v) { return v.mod_revision > at; });
    if (keep != versions.begin()) --keep;
    if (keep != versions.end() && keep->deleted && keep->mod_revision < at) ++keep;
    forgotten.insert(forgotten.end(), versions.begin(), keep);
    if (keep == versions.end()) {
      it = keys_.erase(it);
    } else {
      versions.erase(versions.begin(), keep);
      ++it;
    }
  }
  return forgotten;
}

bool KeyIndex::Relocate(std::string_view key, Revision mod_revision, const Location& location) {
  const auto it = keys_.find(key);
  if (it == keys_.end()) return false;
  const auto version = std::ranges::find(it->second, mod_revision, &Version::mod_revision);
  if (version == it->second.end()) return false;
  version->location = location;
  return true;
}

}  // namespace trainyard::kv
