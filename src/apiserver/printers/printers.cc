#include "apiserver/printers/printers.h"

#include <map>

#include "base/rfc3339.h"

namespace trainyard::apiserver {

const Printer* FindPrinter(std::string_view kind) {
  static const std::map<std::string_view, const Printer* (*)()> printers = {
      {"Pod", [] { return &PodPrinter(); }},
      {"Node", [] { return &NodePrinter(); }},
      {"Service", [] { return &ServicePrinter(); }},
      {"Endpoints", [] { return &EndpointsPrinter(); }},
      {"Event", [] { return &EventPrinter(); }},
      {"Namespace", [] { return &NamespacePrinter(); }},
      {"ConfigMap", [] { return &ConfigMapPrinter(); }},
      {"Secret", [] { return &SecretPrinter(); }},
      {"ServiceAccount", [] { return &ServiceAccountPrinter(); }},
      {"Lease", [] { return &LeasePrinter(); }},
      {"PodGroup", [] { return &PodGroupPrinter(); }},
      {"CustomResourceDefinition", [] { return &DefinitionPrinter(); }},
  };
  const auto found = printers.find(kind);
  return found == printers.end() ? nullptr : found->second();
}

Column NameColumn() { return {.name = "Name", .format = "name", .description = "The object's name."}; }
Column AgeColumn() { return {.name = "Age", .description = "The time since it was made."}; }

std::string PrintSince(std::string_view time, absl::Time now) {
  const auto parsed = ParseTime(time);
  return parsed.ok() ? PrintAge(now - *parsed) : "<unknown>";
}

std::string PrintAgeOf(const Document& object, absl::Time now) {
  return PrintSince(StringAt(object, {"metadata", "creationTimestamp"}), now);
}

}  // namespace trainyard::apiserver
