#include "apiserver/strategy.h"

#include "apiserver/crd.h"
#include "apiserver/schema/builtin_validation.h"
#include "apiserver/schema/computed_defaults.h"
#include "base/crc32c.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::int64_t kDefaultGrace = 30;

// 127.96.0.0/12 is for services; the first addresses are for the cluster's own.
constexpr std::uint32_t kServiceNetwork = (127U << 24) | (96U << 16);
constexpr std::uint32_t kServiceHosts = 1U << 20;
constexpr std::uint32_t kReservedHosts = 16;

bool Is(const ResourceInfo& resource, std::string_view kind) {
  return !resource.custom && resource.kind == kind;
}

// A pod that comes with a node has been scheduled by whoever made it.
void MarkScheduled(Document& pod, absl::Time now) {
  if (StringAt(pod, {"spec", "nodeName"}).empty()) return;
  MakeObjectAt(pod, {"status"})["conditions"] = Array{Object{{"type", "PodScheduled"},
                                                             {"status", "True"},
                                                             {"lastProbeTime", nullptr},
                                                             {"lastTransitionTime", PrintTime(now)}}};
}

}  // namespace

void PrepareKindForCreate(const ResourceInfo& resource, Document& object, absl::Time now) {
  if (resource.custom) return;
  PrepareForCreate(resource.names, object);
  if (Is(resource, "Pod")) MarkScheduled(object, now);
  if (Is(resource, "CustomResourceDefinition")) PrepareDefinition(object, now);
}

void PrepareKindForUpdate(const ResourceInfo& resource, const Document& live, Document& object) {
  if (resource.custom) return;
  PrepareForUpdate(resource.names, live, object);
  if (Is(resource, "CustomResourceDefinition")) RefreshDefinition(live, object);
}

void ApplyKindDefaults(const ResourceInfo& resource, Document& object) {
  if (!resource.custom) ApplyComputedDefaults(resource.names, object);
}

std::vector<kube::Cause> ValidateKind(const ResourceInfo& resource, const Document* live,
                                      const Document& object) {
  std::vector<kube::Cause> causes = live == nullptr ? ValidateCreate(resource.names, object)
                                                    : ValidateUpdate(resource.names, *live, object);
  if (causes.empty() && Is(resource, "CustomResourceDefinition")) causes = ValidateDefinition(live, object);
  return causes;
}

std::int64_t GraceOf(const ResourceInfo& resource, const Document& live, std::optional<std::int64_t> asked) {
  if (!Is(resource, "Pod")) return 0;
  const std::string_view phase = StringAt(live, {"status", "phase"});
  if (StringAt(live, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") return 0;
  return asked.value_or(IntAt(live, {"spec", "terminationGracePeriodSeconds"}).value_or(kDefaultGrace));
}

void MarkKindDeleted(const ResourceInfo& resource, Document& object) {
  if (Is(resource, "Namespace")) MakeObjectAt(object, {"status"})["phase"] = "Terminating";
}

bool HoldsInSpec(const Document& object) {
  if (StringAt(object, {"kind"}) != "Namespace" || StringAt(object, {"apiVersion"}) != "v1") return false;
  const Array* finalizers = ArrayAt(object, {"spec", "finalizers"});
  return finalizers != nullptr && !finalizers->empty();
}

bool NeedsClusterIp(const Document& service) {
  return StringAt(service, {"spec", "type"}) != "ExternalName" &&
         StringAt(service, {"spec", "clusterIP"}).empty();
}

std::string ClusterIpCandidate(std::string_view uid, std::uint32_t attempt) {
  const std::uint32_t host = kReservedHosts + (Crc32c(uid) + attempt) % (kServiceHosts - kReservedHosts - 1);
  const std::uint32_t address = kServiceNetwork + host;
  return StrCat(address >> 24, ".", (address >> 16) & 255, ".", (address >> 8) & 255, ".", address & 255);
}

}  // namespace trainyard::apiserver
