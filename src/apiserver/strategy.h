// Where kinds differ: what the server itself writes into an object of a kind, and how long its deletion
// takes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "apiserver/resources.h"
#include "base/document.h"
#include "kube/error.h"

namespace trainyard::apiserver {

// Before defaults and checks: the status that an object begins with, and what is not the client's to set.
void PrepareKindForCreate(const ResourceInfo& resource, Document& object, absl::Time now);
void PrepareKindForUpdate(const ResourceInfo& resource, const Document& live, Document& object);

// Defaults that depend on other fields.
void ApplyKindDefaults(const ResourceInfo& resource, Document& object);

// What the schema cannot say, also of the metadata. `live` is null for a new object.
std::vector<kube::Cause> ValidateKind(const ResourceInfo& resource, const Document* live,
                                      const Document& object);

// How long a deletion waits for the object's own end: a pod that runs somewhere is given its grace period.
std::int64_t GraceOf(const ResourceInfo& resource, const Document& live, std::optional<std::int64_t> asked);
// What a deletion that waits writes into the object beside its metadata.
void MarkKindDeleted(const ResourceInfo& resource, Document& object);
// A namespace is held by spec.finalizers too.
bool HoldsInSpec(const Document& object);

// The address of a service: whether it needs one, and the n-th to try.
bool NeedsClusterIp(const Document& service);
std::string ClusterIpCandidate(std::string_view uid, std::uint32_t attempt);

}  // namespace trainyard::apiserver
