// What the two kinds of Parameters share.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/parameter_blocks.h"
#include "ps/parameters.h"

namespace trainyard::ps {

std::unique_ptr<Parameters> MakeSyncParameters(std::unique_ptr<ParameterBlocks> blocks, int threads);
std::unique_ptr<Parameters> MakeAsyncParameters(std::unique_ptr<ParameterBlocks> blocks);

// A part of a tensor's own memory. NotFound: there is none. InvalidArgument: it has no such bytes.
absl::StatusOr<std::vector<Payload>> CutPart(const graph::Tensor* tensor, std::string_view name,
                                             std::int64_t offset, std::int64_t length);

absl::StatusOr<graph::Tensor> LookUp(ParameterBlocks& blocks, std::string_view table,
                                     const graph::Tensor& ids);

}  // namespace trainyard::ps
