#include "apiserver/object_filter.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "apiserver/errors.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

namespace ondemand = simdjson::ondemand;

// Room that the parser may read beyond the text's end.
simdjson::padded_string_view Padded(std::string_view text, std::string& room) {
  room.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  room.assign(text);
  return simdjson::padded_string_view(room.data(), room.size(), room.capacity());
}

// One parser and one buffer for each thread: they grow to the largest object and are used again.
struct Scratch {
  ondemand::parser parser;
  std::string room;
};
Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

// The value at "spec.nodeName" as text; "" if it is missing, the number or word as it is written if it is no
// text.
std::string FieldTextOf(ondemand::document& document, std::string_view field) {
  document.rewind();
  ondemand::value value;
  bool first = true;
  for (const std::string_view step : Split(field, '.')) {
    const auto error =
        first ? document.find_field_unordered(step).get(value) : value.find_field_unordered(step).get(value);
    if (error) return "";
    first = false;
  }
  std::string_view text;
  if (!value.get_string().get(text)) return std::string(text);
  if (value.raw_json_token().empty()) return "";
  text = value.raw_json_token();
  text = text.substr(0, text.find_first_of(" \t\r\n,}"));
  return std::string(text == "null" ? "" : text);
}

}  // namespace

const std::vector<std::string_view>& SelectableFields(const ResourceInfo& resource) {
  static const std::vector<std::string_view> every = {"metadata.name", "metadata.namespace"};
  static const std::map<std::string_view, std::vector<std::string_view>> by_plural = [] {
    std::map<std::string_view, std::vector<std::string_view>> fields = {
        {"pods",
         {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
          "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"}},
        {"events",
         {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
          "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
          "reportingComponent", "source", "type"}},
        {"nodes", {"spec.unschedulable"}},
        {"namespaces", {"status.phase"}},
        {"secrets", {"type"}},
        {"services", {"spec.clusterIP", "spec.type"}},
    };
    for (auto& [plural, list] : fields) list.insert(list.begin(), every.begin(), every.end());
    return fields;
  }();
  if (resource.custom) return every;
  const auto found = by_plural.find(resource.plural);
  return found == by_plural.end() ? every : found->second;
}

absl::StatusOr<ObjectFilter> ObjectFilter::Parse(const ResourceInfo& resource, const Query& query) {
  ObjectFilter filter;
  auto labels = kube::LabelSelector::Parse(query.Get("labelSelector"));
  if (!labels.ok()) return kube::ToStatus(BadRequest(StrCat("labelSelector: ", Message(labels.status()))));
  auto fields = kube::FieldSelector::Parse(query.Get("fieldSelector"));
  if (!fields.ok()) return kube::ToStatus(BadRequest(StrCat("fieldSelector: ", Message(fields.status()))));
  const std::vector<std::string_view>& known = SelectableFields(resource);
  for (const kube::FieldRequirement& requirement : fields->requirements()) {
    if (std::find(known.begin(), known.end(), requirement.field) != known.end()) continue;
    std::string list;
    for (const std::string_view field : known) StrAppend(list, list.empty() ? "" : ", ", field);
    return kube::ToStatus(BadRequest(StrCat("field label not supported: ", Escaped(requirement.field), "; ",
                                            resource.plural, " can be chosen by ", list)));
  }
  filter.labels_ = *std::move(labels);
  filter.fields_ = *std::move(fields);
  return filter;
}

bool ObjectFilter::Matches(std::string_view stored) const {
  return (fields_.MatchesAll() || FieldsMatch(stored)) &&
         (labels_.MatchesAll() || LabelsMatch(LabelsOf(stored)));
}

bool ObjectFilter::Matches(std::string_view stored,
                           const std::function<const ObjectLabels&()>& labels) const {
  return (labels_.MatchesAll() || LabelsMatch(labels())) && (fields_.MatchesAll() || FieldsMatch(stored));
}

ObjectLabels LabelsOf(std::string_view stored) {
  Scratch& scratch = ThreadScratch();
  ondemand::document document;
  ObjectLabels labels;
  if (scratch.parser.iterate(Padded(stored, scratch.room)).get(document)) return labels;
  ondemand::object object;
  if (document["metadata"]["labels"].get_object().get(object)) return labels;
  for (auto field : object) {
    std::string_view key;
    std::string_view value;
    if (field.unescaped_key().get(key) || field.value().get_string().get(value)) break;
    labels.emplace_back(key, value);
  }
  return labels;
}

bool ObjectFilter::LabelsMatch(const ObjectLabels& labels) const {
  return labels_.Matches([&](std::string_view key) -> std::optional<std::string_view> {
    for (const auto& [name, value] : labels) {
      if (name == key) return value;
    }
    return std::nullopt;
  });
}

bool ObjectFilter::FieldsMatch(std::string_view stored) const {
  Scratch& scratch = ThreadScratch();
  ondemand::document document;
  if (scratch.parser.iterate(Padded(stored, scratch.room)).get(document)) return false;
  std::string value;
  return fields_.Matches([&](std::string_view field) -> std::optional<std::string_view> {
    value = FieldTextOf(document, field == "source" ? "source.component" : field);
    // An unset boolean is what it is when it is left out.
    if (value.empty() && (field == "spec.unschedulable" || field == "spec.hostNetwork")) value = "false";
    return value;
  });
}

}  // namespace trainyard::apiserver
