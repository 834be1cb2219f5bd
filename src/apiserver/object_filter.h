// Which objects a list or a watch is of: by labels and by the few fields that each kind can be asked for.
// Looks into the stored text without building a document.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/request_info.h"
#include "apiserver/resources.h"
#include "kube/selector.h"

namespace trainyard::apiserver {

// An object's labels, read once for all who choose by them.
using ObjectLabels = std::vector<std::pair<std::string, std::string>>;
ObjectLabels LabelsOf(std::string_view stored);

class ObjectFilter {
 public:
  // An ApiError 400 for a selector that cannot be parsed, or a field that this resource cannot be asked for
  // (the message lists those that it can).
  static absl::StatusOr<ObjectFilter> Parse(const ResourceInfo& resource, const Query& query);

  // Every object: no selector was given.
  bool MatchesAll() const { return labels_.MatchesAll() && fields_.MatchesAll(); }
  bool Matches(std::string_view stored) const;
  // The same, if the labels are at hand: `labels` gives them.
  bool Matches(std::string_view stored, const std::function<const ObjectLabels&()>& labels) const;
  // The one name that an object must have, if the fields ask for one.
  std::optional<std::string_view> Name() const { return fields_.RequiredValue("metadata.name"); }
  std::optional<std::string_view> Namespace() const { return fields_.RequiredValue("metadata.namespace"); }

 private:
  bool LabelsMatch(const ObjectLabels& labels) const;
  bool FieldsMatch(std::string_view stored) const;

  kube::LabelSelector labels_;
  kube::FieldSelector fields_;
};

// The fields by which objects of the resource can be chosen.
const std::vector<std::string_view>& SelectableFields(const ResourceInfo& resource);

}  // namespace trainyard::apiserver
