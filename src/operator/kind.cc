#include "operator/kind.h"

#include "base/check.h"

namespace trainyard::ops {

Object OwnerReference(const kube::Resource& kind, const kube::ObjectMeta& job) {
  return {{"apiVersion", kind.ApiVersion()},
          {"kind", kind.kind},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

job::NameRule NamingOf(const CompactJob& job) {
  return {.job = job.meta.name, .uid = job.spec.names_with_uid ? job.meta.uid : std::string_view()};
}

std::string ObjectMaker::MakeMembers(const job::WriteMembers&) const {
  TY_CHECK(false, "the kind has no members");
}

}  // namespace trainyard::ops
