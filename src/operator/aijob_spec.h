// The spec of an AITrainingJob, read and judged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "job/job_spec.h"

namespace trainyard::ops {

// Containers whose names begin so do the work, and ports whose names do are how members reach each other.
inline constexpr std::string_view kAiPrefix = "aitj-";

// The accelerators of the vendors; an operator may be told of others.
inline constexpr std::string_view kKnownAccelerators[] = {"nvidia.com/gpu", "amd.com/gpu"};

struct AiJobSpec {
  job::JobSpec spec;
  std::string invalid;  // the first thing that is wrong, with the field's path; empty: nothing
};

// Total: any document has a result. Of the job's metadata the name and the annotations count. `accelerators`
// are names of resources.
AiJobSpec ParseAiJobSpec(const Document& job, const std::vector<std::string>& accelerators);

// The member of spec.replicaSpecs of that name; null: there is none.
const Document* FindAiReplicaSpec(const Document& spec, std::string_view name);

// What the variables of a role begin with: upper case, with _ for what a variable's name cannot have.
std::string VariablePrefix(std::string_view role);

// Numbers of the ports that count, of a container, or of all containers that count of a replica spec; each
// once, in the order in which they stand.
std::vector<int> FindAiPorts(const Document& container);
std::vector<int> FindAllAiPorts(const Document& replica_spec);

}  // namespace trainyard::ops
