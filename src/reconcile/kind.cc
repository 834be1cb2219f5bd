#include "reconcile/kind.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "base/text.h"
#include "job/members.h"

namespace trainyard::reconcile {

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

std::string ConfigName(const CompactJob& job) {
  constexpr std::size_t kSuffix = 5;
  return job.spec.names_with_uid
             ? StrCat(job.meta.name, "-config-", std::string_view(job.meta.uid).substr(0, kSuffix))
             : StrCat(job.meta.name, "-config");
}

std::string PodGroupName(std::string_view kind, std::string_view job) {
  constexpr std::size_t kMost = 63;  // pods name it by a label
  std::string name = StrCat(job, "-", absl::AsciiStrToLower(std::string(kind)));
  if (name.size() <= kMost) return name;
  const std::string fingerprint = job::Fingerprint(name);
  return StrCat(name.substr(0, kMost - fingerprint.size() - 1), "-", fingerprint);
}

absl::StatusOr<CompactJob> DecodeJob(const Kind& kind, const std::string& json, FindKnownJob find) {
  TY_ASSIGN_OR_RETURN(CompactJob job, kind.Decode(json));
  if (job.invalid.empty() || job.status.IsFinished()) return job;
  std::string valid = job.status.spec_problem ? job.status.spec_problem->last_valid : "";
  if (valid.empty()) {
    const auto known = find(job.meta.Key());
    if (known != nullptr && known->meta.uid == job.meta.uid) valid = known->spec_text;
  }
  if (valid.empty()) return job;
  // Everything but the spec is as it is now: annotations end jobs, too.
  TY_ASSIGN_OR_RETURN(Document document, ParseJson(json));
  absl::StatusOr<Document> spec = ParseJson(valid);
  if (!spec.ok() || !document.is_object()) return job;
  document.get_object()["spec"] = *std::move(spec);
  TY_ASSIGN_OR_RETURN(CompactJob before, kind.Decode(PrintJson(document)));
  if (!before.invalid.empty()) return job;  // the operator did not write this status
  before.edit_problem = std::move(job.invalid);
  return before;
}

}  // namespace trainyard::reconcile
