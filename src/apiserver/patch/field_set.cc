#include "apiserver/patch/field_set.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "apiserver/patch/field_path.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kSelf = ".";

void AddUnlessEmpty(FieldSet& set, FieldNode node) {
  if (node.member || !node.below.empty()) set.nodes.push_back(std::move(node));
}

// In FieldsV1 a node without anything below it is a member; one with something says so by ".".
bool IsMember(const Object& node) { return node.empty() || node.contains(kSelf); }

void PrintNodes(const FieldSet& set, Object& out) {
  for (const FieldNode& node : set.nodes) {
    Object& printed = out[node.step].emplace_object();
    if (node.below.empty()) continue;
    printed.reserve(node.below.nodes.size() + 1);
    if (node.member) printed[kSelf].emplace_object();
    PrintNodes(node.below, printed);
  }
}

void Visit(const FieldSet& set, std::string& path, const std::function<void(const std::string&)>& visit) {
  const std::size_t length = path.size();
  for (const FieldNode& node : set.nodes) {
    if (!node.member) continue;
    path += ShowStep(node.step);
    visit(path);
    path.resize(length);
  }
  for (const FieldNode& node : set.nodes) {
    if (node.below.empty()) continue;
    path += ShowStep(node.step);
    Visit(node.below, path, visit);
    path.resize(length);
  }
}

}  // namespace

const FieldNode* FindNode(const FieldSet& set, std::string_view step) {
  const auto found = std::ranges::lower_bound(set.nodes, step, StepLess, &FieldNode::step);
  return found != set.nodes.end() && found->step == step ? &*found : nullptr;
}

FieldSet Union(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  out.nodes.reserve(std::max(a.nodes.size(), b.nodes.size()));
  auto left = a.nodes.begin();
  auto right = b.nodes.begin();
  while (left != a.nodes.end() && right != b.nodes.end()) {
    if (left->step == right->step) {
      out.nodes.push_back({left->step, left->member || right->member, Union(left->below, right->below)});
      ++left;
      ++right;
    } else {
      out.nodes.push_back(StepLess(left->step, right->step) ? *left++ : *right++);
    }
  }
  out.nodes.insert(out.nodes.end(), left, a.nodes.end());
  out.nodes.insert(out.nodes.end(), right, b.nodes.end());
  return out;
}

FieldSet Intersection(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  for (const FieldNode& node : a.nodes) {
    const FieldNode* other = FindNode(b, node.step);
    if (other == nullptr) continue;
    AddUnlessEmpty(out, {node.step, node.member && other->member, Intersection(node.below, other->below)});
  }
  return out;
}

FieldSet Difference(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  for (const FieldNode& node : a.nodes) {
    const FieldNode* other = FindNode(b, node.step);
    if (other == nullptr) {
      out.nodes.push_back(node);
    } else {
      AddUnlessEmpty(out, {node.step, node.member && !other->member, Difference(node.below, other->below)});
    }
  }
  return out;
}

void SortNodes(FieldSet& set) { std::ranges::sort(set.nodes, StepLess, &FieldNode::step); }

FieldSet ParseFieldSet(const Object& fields) {
  FieldSet set;
  for (const auto& member : fields) {
    if (Key(member) == kSelf || !member.value().is_object()) continue;
    auto step = CanonicalStep(Key(member));
    if (!step) continue;
    const Object& node = member.value().get_object();
    AddUnlessEmpty(set, {*std::move(step), IsMember(node), ParseFieldSet(node)});
  }
  SortNodes(set);
  // Two spellings of one step are one step.
  const auto same = std::ranges::unique(set.nodes, {}, &FieldNode::step);
  set.nodes.erase(same.begin(), same.end());
  return set;
}

Object PrintFieldSet(const FieldSet& set) {
  Object out;
  out.reserve(set.nodes.size());
  PrintNodes(set, out);
  return out;
}

bool TakeFields(Object& fields, const FieldSet& taken) {
  bool any = false;
  absl::flat_hash_set<std::string_view> empty;
  for (const FieldNode& node : taken.nodes) {
    Document* found = fields.if_contains(node.step);
    if (found == nullptr || !found->is_object()) continue;
    Object& own = found->get_object();
    const bool was_member = IsMember(own);
    const bool stays_member = was_member && !node.member;
    any |= was_member != stays_member;
    if (!stays_member) Remove(own, kSelf);
    any |= TakeFields(own, node.below);
    if (own.size() > (own.contains(kSelf) ? 1U : 0U)) continue;
    if (stays_member) {
      own.clear();
    } else {
      empty.insert(node.step);
    }
  }
  if (!empty.empty())
    RemoveIf(fields, [&](std::string_view key, const Document&) { return empty.contains(key); });
  return any;
}

bool HasFields(const Object& fields, const FieldSet& wanted) {
  return std::ranges::all_of(wanted.nodes, [&](const FieldNode& node) {
    const Document* found = fields.if_contains(node.step);
    if (found == nullptr || !found->is_object()) return false;
    const Object& own = found->get_object();
    return (!node.member || IsMember(own)) && HasFields(own, node.below);
  });
}

void ForEachField(const FieldSet& set, const std::function<void(const std::string&)>& visit) {
  std::string path;
  Visit(set, path, visit);
}

}  // namespace trainyard::apiserver
