#include "controllers/label_index.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::controllers {
namespace {

// A newline is in none of the three.
std::string Pair(std::string_view ns, const kube::TextMap::Entry& entry) {
  return StrCat(ns, "\n", entry.first.view(), "\n", entry.second.view());
}

template <typename Map>
void Unfile(Map& by_pair, const std::string& pair, const kube::ObjectKey& key) {
  const auto found = by_pair.find(pair);
  if (found == by_pair.end()) return;
  found->second.erase(key);
  if (found->second.empty()) by_pair.erase(found);
}

}  // namespace

bool Selects(const kube::TextMap& selector, const kube::TextMap& labels) {
  if (selector.entries().empty()) return false;
  return std::ranges::all_of(selector.entries(), [&](const kube::TextMap::Entry& entry) {
    return labels.Find(entry.first) == entry.second.view();
  });
}

void SelectorIndex::Set(const kube::ObjectKey& key, const kube::TextMap& selector) {
  if (const auto known = entries_.find(key); known != entries_.end() && known->second.selector == selector) {
    return;
  }
  Remove(key);
  if (selector.entries().empty()) return;
  std::optional<std::pair<std::size_t, std::string>> fewest;
  for (const kube::TextMap::Entry& entry : selector.entries()) {
    std::string pair = Pair(key.ns, entry);
    const auto found = by_pair_.find(pair);
    const std::size_t filed = found == by_pair_.end() ? 0 : found->second.size();
    if (!fewest || filed < fewest->first) fewest = {filed, std::move(pair)};
  }
  by_pair_[fewest->second].insert(key);
  entries_[key] = {.selector = selector, .under = std::move(fewest->second)};
}

void SelectorIndex::Remove(const kube::ObjectKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Unfile(by_pair_, found->second.under, key);
  entries_.erase(found);
}

std::vector<kube::ObjectKey> SelectorIndex::Match(std::string_view ns, const kube::TextMap& labels) const {
  std::vector<kube::ObjectKey> matches;
  for (const kube::TextMap::Entry& entry : labels.entries()) {
    const auto found = by_pair_.find(Pair(ns, entry));
    if (found == by_pair_.end()) continue;
    for (const kube::ObjectKey& key : found->second) {
      if (Selects(entries_.at(key).selector, labels)) matches.push_back(key);
    }
  }
  std::ranges::sort(matches);
  return matches;
}

void LabelIndex::Set(const kube::ObjectKey& key, const kube::TextMap& labels) {
  if (const auto known = labels_.find(key); known != labels_.end() && known->second == labels) return;
  Remove(key);
  for (const kube::TextMap::Entry& entry : labels.entries()) by_pair_[Pair(key.ns, entry)].insert(key);
  labels_[key] = labels;
}

void LabelIndex::Remove(const kube::ObjectKey& key) {
  const auto found = labels_.find(key);
  if (found == labels_.end()) return;
  for (const kube::TextMap::Entry& entry : found->second.entries()) {
    Unfile(by_pair_, Pair(key.ns, entry), key);
  }
  labels_.erase(found);
}

std::vector<kube::ObjectKey> LabelIndex::Match(std::string_view ns, const kube::TextMap& selector) const {
  const std::set<kube::ObjectKey>* fewest = nullptr;
  for (const kube::TextMap::Entry& entry : selector.entries()) {
    const auto found = by_pair_.find(Pair(ns, entry));
    if (found == by_pair_.end()) return {};
    if (fewest == nullptr || found->second.size() < fewest->size()) fewest = &found->second;
  }
  std::vector<kube::ObjectKey> matches;
  if (fewest == nullptr) return matches;
  for (const kube::ObjectKey& key : *fewest) {
    if (Selects(selector, labels_.at(key))) matches.push_back(key);
  }
  return matches;
}

}  // namespace trainyard::controllers
