#include "apiserver/scale.h"

#include <cstdint>
#include <optional>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// ".spec.replicas" as its steps.
std::vector<std::string> Steps(std::string_view path) {
  std::vector<std::string> steps;
  for (const std::string_view step : Split(path, '.')) {
    if (!step.empty()) steps.emplace_back(step);
  }
  return steps;
}

const Document* FindAt(const Document& object, std::string_view path) {
  const Document* at = &object;
  for (const std::string& step : Steps(path)) {
    at = Find(*at, {step});
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::int64_t ReplicasAt(const Document& object, std::string_view path) {
  const Document* found = FindAt(object, path);
  return found != nullptr ? IntAt(*found, {}).value_or(0) : 0;
}

}  // namespace

Document ScaleOf(const ScalePaths& paths, const Document& object) {
  Object metadata;
  for (const std::string_view field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Document* value = Find(object, {"metadata", field})) metadata[field] = *value;
  }
  Object status{{"replicas", ReplicasAt(object, paths.status_replicas)}};
  if (const Document* selector =
          paths.label_selector.empty() ? nullptr : FindAt(object, paths.label_selector)) {
    status["selector"] = *selector;
  }
  return Object{{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", std::move(metadata)},
                {"spec", Object{{"replicas", ReplicasAt(object, paths.spec_replicas)}}},
                {"status", std::move(status)}};
}

absl::StatusOr<Document> WithScale(const ScalePaths& paths, Document object, const Document& scale) {
  const std::string_view kind = StringAt(scale, {"kind"});
  if (!kind.empty() && kind != "Scale")
    return absl::InvalidArgumentError(StrCat("the body must be a Scale, not a ", Escaped(kind)));
  const Document* wanted = Find(scale, {"spec", "replicas"});
  const auto replicas = wanted == nullptr ? std::nullopt : IntAt(*wanted, {});
  if (!replicas || *replicas < 0 || *replicas > INT32_MAX) {
    return absl::InvalidArgumentError(
        StrCat("spec.replicas of a Scale must be a whole number from 0 to ", INT32_MAX));
  }
  const std::vector<std::string> steps = Steps(paths.spec_replicas);
  if (steps.empty()) return absl::InvalidArgumentError("the resource's specReplicasPath is empty");
  Object* at = &MakeObjectAt(object, {});
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    Document& next = (*at)[steps[step]];
    if (!next.is_object()) next.emplace_object();
    at = &next.get_object();
  }
  (*at)[steps.back()] = *replicas;
  return object;
}

}  // namespace trainyard::apiserver
