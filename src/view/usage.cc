#include "view/usage.h"

#include <fmt/format.h>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/quantity.h"

namespace trainyard::view {
namespace {

constexpr double kMilli = 1000;

// 0 for what cannot be read.
double AmountAt(const Document& container, std::string_view resource) {
  const auto amount = kube::Quantity::Parse(StringAt(container, {"usage", resource}));
  return amount.ok() ? static_cast<double>(amount->Milli().value_or(0)) / kMilli : 0;
}

}  // namespace

absl::StatusOr<std::map<std::string, Usage>> ReadUsage(kube::Api& api, const std::string& ns) {
  std::map<std::string, Usage> all;
  TY_ASSIGN_OR_RETURN(
      const std::string text,
      api.Do(kube::Operation{.request = {.target = StrCat("/apis/metrics.k8s.io/v1beta1/namespaces/",
                                                          kube::PercentEncoded(ns), "/pods")}}));
  TY_ASSIGN_OR_RETURN(const Document list, ParseJson(text));
  const Array* const items = ArrayAt(list, {"items"});
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    Usage& usage = all[std::string(StringAt((*items)[i], {"metadata", "name"}))];
    const Array* const containers = ArrayAt((*items)[i], {"containers"});
    for (std::size_t c = 0; containers != nullptr && c < containers->size(); ++c) {
      usage.processors += AmountAt((*containers)[c], "cpu");
      usage.memory_bytes += AmountAt((*containers)[c], "memory");
    }
  }
  return all;
}

std::string PrintBytes(double bytes) {
  constexpr double kMebi = 1 << 20;
  return bytes >= 1024 * kMebi ? fmt::format("{:.1f}Gi", bytes / kMebi / 1024)
                               : fmt::format("{:.0f}Mi", bytes / kMebi);
}

}  // namespace trainyard::view
