// A set of fields of an object, as metadata.managedFields keeps one for each manager (FieldsV1): a tree of
// steps, in which a node may be in the set itself, have nodes below it that are, or both.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"

namespace trainyard::apiserver {

struct FieldNode;

struct FieldSet {
  // In the order of StepLess, no step twice, none that has neither.
  std::vector<FieldNode> nodes;

  bool empty() const { return nodes.empty(); }
  bool operator==(const FieldSet& other) const;
};

struct FieldNode {
  std::string step;
  bool member = false;
  FieldSet below;

  bool operator==(const FieldNode& other) const = default;
};

inline bool FieldSet::operator==(const FieldSet& other) const { return nodes == other.nodes; }

// Null if the set has no node for the step.
const FieldNode* FindNode(const FieldSet& set, std::string_view step);

FieldSet Union(const FieldSet& a, const FieldSet& b);
FieldSet Intersection(const FieldSet& a, const FieldSet& b);
// What is in a and not in b. What lies below a field of b stays.
FieldSet Difference(const FieldSet& a, const FieldSet& b);

// Puts nodes that were added in any order into the right one.
void SortNodes(FieldSet& set);

// FieldsV1. Steps of a kind that is not known are left out.
FieldSet ParseFieldSet(const Object& fields);
Object PrintFieldSet(const FieldSet& set);

// On FieldsV1 as it stands in an object, without reading it whole.
// Takes out what is in `taken`; true if anything was.
bool TakeFields(Object& fields, const FieldSet& taken);
bool HasFields(const Object& fields, const FieldSet& wanted);

// Calls `visit` with the path of each field, as people write it: ".spec.containers[name="x"].image".
void ForEachField(const FieldSet& set, const std::function<void(const std::string&)>& visit);

}  // namespace trainyard::apiserver
