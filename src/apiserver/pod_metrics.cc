#include "apiserver/pod_metrics.h"

#include <cmath>
#include <cstdint>

#include "base/document.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::apiserver {

std::string PrintPodMetrics(const std::vector<PodUsage>& all, std::string_view ns, absl::Time now) {
  Array items;
  for (const PodUsage& usage : all) {
    if (!ns.empty() && usage.ns != ns) continue;
    const auto nanos = static_cast<std::int64_t>(std::llround(usage.processors * 1e9));
    const auto kibis = static_cast<std::int64_t>(std::llround(usage.memory_bytes / 1024));
    items.push_back(Object{
        {"metadata", Object{{"name", usage.pod}, {"namespace", usage.ns}}},
        {"timestamp", PrintTime(now)},
        {"window", absl::FormatDuration(usage.window)},
        {"containers",
         Array{Object{{"name", "all"},
                      {"usage", Object{{"cpu", StrCat(nanos, "n")}, {"memory", StrCat(kibis, "Ki")}}}}}}});
  }
  return PrintJson(Object{{"kind", "PodMetricsList"},
                          {"apiVersion", "metrics.k8s.io/v1beta1"},
                          {"metadata", Object{}},
                          {"items", std::move(items)}});
}

}  // namespace trainyard::apiserver
