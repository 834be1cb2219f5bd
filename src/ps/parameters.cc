#include "ps/parameters.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "ps/parameters_made.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {

absl::StatusOr<std::unique_ptr<Parameters>> Parameters::Make(const graph::Graph& graph, int threads,
                                                             graph::OnNonFinite on_nonfinite) {
  TY_ASSIGN_OR_RETURN(std::unique_ptr<ParameterBlocks> blocks, ParameterBlocks::Make(graph, on_nonfinite));
  return graph.mode == graph::SyncMode::kSync ? MakeSyncParameters(std::move(blocks), threads)
                                              : MakeAsyncParameters(std::move(blocks));
}

absl::StatusOr<std::vector<Payload>> CutPart(const graph::Tensor* tensor, std::string_view name,
                                             std::int64_t offset, std::int64_t length) {
  if (tensor == nullptr)
    return absl::NotFoundError(StrCat("there is no parameter ", Shortened(name, 128), " here"));
  const auto bytes = static_cast<std::int64_t>(tensor->bytes());
  if (offset < 0 || length < 0 || offset > bytes || length > bytes - offset)
    return absl::InvalidArgumentError(
        StrCat("parameter ", name, " has ", bytes, " bytes and not ", length, " from ", offset, " on"));
  return PartOf(graph::Value(*tensor), static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

absl::StatusOr<graph::Tensor> LookUp(ParameterBlocks& blocks, std::string_view name,
                                     const graph::Tensor& ids) {
  ParameterBlocks::Table* table = blocks.FindTable(name);
  if (table == nullptr)
    return absl::NotFoundError(StrCat("there is no table ", Shortened(name, 128), " here"));
  TY_RETURN_IF_ERROR(table->block->Feed(table->ids, ids));
  graph::Services services;
  TY_RETURN_IF_ERROR(table->block->Run(services));
  TY_ASSIGN_OR_RETURN(const graph::Tensor rows, table->block->Fetch(table->rows));
  return rows.Clone();
}

}  // namespace trainyard::ps
