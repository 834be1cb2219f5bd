#include "kube/lease.h"

#include <utility>

#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

// A time that is missing or that nobody can read is one long ago; nothing is decided by it.
absl::Time SpecTimeAt(const Document& object, std::string_view field) {
  return ParseTime(StringAt(object, {"spec", field})).value_or(absl::UnixEpoch());
}

}  // namespace

absl::StatusOr<Lease> ParseLease(std::string_view json) {
  Lease lease;
  TY_ASSIGN_OR_RETURN(lease.object, ParseJson(json));
  lease.resource_version = StringAt(lease.object, {"metadata", "resourceVersion"});
  if (lease.resource_version.empty()) {
    return absl::InvalidArgumentError("not a Lease: it has no metadata.resourceVersion");
  }
  lease.record.holder = StringAt(lease.object, {"spec", "holderIdentity"});
  lease.record.duration = absl::Seconds(IntAt(lease.object, {"spec", "leaseDurationSeconds"}).value_or(0));
  lease.record.acquired = SpecTimeAt(lease.object, "acquireTime");
  lease.record.renewed = SpecTimeAt(lease.object, "renewTime");
  lease.record.transitions = IntAt(lease.object, {"spec", "leaseTransitions"}).value_or(0);
  return lease;
}

Document NewLeaseObject(const ObjectKey& key) {
  return Object{{"apiVersion", Resource::Leases().ApiVersion()},
                {"kind", Resource::Leases().kind},
                {"metadata", {{"name", key.name}, {"namespace", key.ns}}}};
}

std::string PrintLease(Document object, const LeaseRecord& record) {
  Object& spec = MakeObjectAt(object, {"spec"});
  if (record.holder.empty()) {
    Remove(spec, "holderIdentity");  // servers may refuse an empty one
  } else {
    spec["holderIdentity"] = record.holder;
  }
  spec["leaseDurationSeconds"] = absl::ToInt64Seconds(absl::Ceil(record.duration, absl::Seconds(1)));
  spec["acquireTime"] = PrintMicroTime(record.acquired);
  spec["renewTime"] = PrintMicroTime(record.renewed);
  spec["leaseTransitions"] = record.transitions;
  return PrintJson(object);
}

}  // namespace trainyard::kube
