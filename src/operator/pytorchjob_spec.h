// The spec of a PyTorchJob, read and judged.
#pragma once

#include <string>

#include "base/document.h"
#include "kube/resource.h"
#include "operator/kubeflow_spec.h"

namespace trainyard::ops {

const Dialect& PyTorchDialect();

ParsedSpec ParsePyTorchJobSpec(const kube::ObjectKey& job, const Document* spec);

// Processes of each pod, as torchrun reads it: "auto", "cpu", "gpu" or a number.
std::string ProcessesPerNode(const Document& spec);

}  // namespace trainyard::ops
