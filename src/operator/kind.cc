#include "operator/kind.h"

namespace trainyard::ops {

Object OwnerReference(const kube::Resource& kind, const kube::ObjectMeta& job) {
  return {{"apiVersion", kind.ApiVersion()},
          {"kind", kind.kind},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

}  // namespace trainyard::ops
