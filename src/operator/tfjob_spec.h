// The spec of a TFJob, read and judged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "job/job_spec.h"
#include "kube/resource.h"

namespace trainyard::ops {

inline constexpr std::string_view kTensorflow = "tensorflow";  // the container that does the work
inline constexpr std::string_view kTfPortName = "tfjob-port";
inline constexpr std::int32_t kTfPort = 2222;

struct TfJobSpec {
  job::JobSpec spec;
  std::string invalid;  // the first thing that is wrong, with the field's path; empty: nothing
};

// Total: any document has a result. The names of the job's pods are made of its own name and its namespace.
TfJobSpec ParseTfJobSpec(const kube::ObjectKey& job, const Document* spec);

// The member of spec.tfReplicaSpecs that holds the role, in whatever letter case; null: none.
const Document* FindReplicaSpec(const Document& spec, std::string_view role);
// Of the container `tensorflow` of a replica spec.
std::int32_t FindTfPort(const Document& replica_spec);

}  // namespace trainyard::ops
