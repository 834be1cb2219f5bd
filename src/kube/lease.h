// A coordination.k8s.io/v1 Lease: who holds something, and for how long unless it is renewed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "kube/resource.h"

namespace trainyard::kube {

struct LeaseRecord {
  std::string holder;  // empty: nobody
  absl::Duration duration;
  absl::Time acquired = absl::UnixEpoch();
  absl::Time renewed = absl::UnixEpoch();
  std::int64_t transitions = 0;  // how often the holder has changed
  bool operator==(const LeaseRecord&) const = default;
};

struct Lease {
  LeaseRecord record;
  std::string resource_version;
  Document object;  // all of it, so that what others wrote into it stays
};

// InvalidArgument: the text is no lease.
absl::StatusOr<Lease> ParseLease(std::string_view json);
// A new lease's object, without a record.
Document NewLeaseObject(const ObjectKey& key);
// The object with the record in the place of its own; its resourceVersion stays, as the precondition. The
// duration is rounded up to whole seconds.
std::string PrintLease(Document object, const LeaseRecord& record);

}  // namespace trainyard::kube
