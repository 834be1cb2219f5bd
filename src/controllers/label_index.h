// Finds the selectors that labels match, and the labels that a selector matches, without looking at all of
// them: a job of a thousand pods has a thousand services, and every change of a pod asks which are its own.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/object_meta.h"
#include "kube/resource.h"

namespace trainyard::controllers {

// Every pair of the selector is among the labels. An empty selector selects nothing.
bool Selects(const kube::TextMap& selector, const kube::TextMap& labels);

// Selectors by the objects that have them; only objects of one namespace match each other.
class SelectorIndex {
 public:
  void Set(const kube::ObjectKey& key, const kube::TextMap& selector);
  void Remove(const kube::ObjectKey& key);
  // The keys in that namespace whose selector selects the labels, in order.
  std::vector<kube::ObjectKey> Match(std::string_view ns, const kube::TextMap& labels) const;

 private:
  struct Entry {
    kube::TextMap selector;
    std::string under;  // the pair of it that fewest others are filed under
  };
  std::map<kube::ObjectKey, Entry> entries_;
  std::map<std::string, std::set<kube::ObjectKey>, std::less<>> by_pair_;
};

// Objects by their labels.
class LabelIndex {
 public:
  void Set(const kube::ObjectKey& key, const kube::TextMap& labels);
  void Remove(const kube::ObjectKey& key);
  // The keys in that namespace whose labels the selector selects, in order.
  std::vector<kube::ObjectKey> Match(std::string_view ns, const kube::TextMap& selector) const;

 private:
  std::map<kube::ObjectKey, kube::TextMap> labels_;
  std::map<std::string, std::set<kube::ObjectKey>, std::less<>> by_pair_;
};

}  // namespace trainyard::controllers
