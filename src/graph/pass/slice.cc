#include "graph/pass/slice.h"

#include <algorithm>

#include "base/text.h"
#include "graph/kernel/random.h"

namespace trainyard::graph {
namespace {

std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<VarBlock> SliceVariable(std::string_view variable, const Dims& dims, int servers,
                                    std::int64_t least) {
  const std::int64_t elements = dims.Count();
  const std::int64_t limit = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, least));
  const std::int64_t wanted = std::min<std::int64_t>(servers, limit);
  std::int64_t size = std::max<std::int64_t>(1, DivideUp(elements, wanted));
  if (dims.rank() >= 2) {
    const std::int64_t width = std::max<std::int64_t>(1, dims.Count(1, dims.rank()));
    size = DivideUp(size, width) * width;
  }
  std::vector<VarBlock> blocks;
  for (std::int64_t offset = 0; offset < elements || blocks.empty(); offset += size) {
    blocks.push_back({.variable = std::string(variable),
                      .index = static_cast<int>(blocks.size()),
                      .offset = offset,
                      .count = std::min(size, elements - offset)});
  }
  return blocks;
}

Dims BlockDims(const Dims& whole, const VarBlock& block) {
  if (whole.rank() == 0) return whole;
  Dims dims = whole;
  dims[0] = block.count / std::max<std::int64_t>(1, whole.Count(1, whole.rank()));
  return dims;
}

std::string BlockName(const VarBlock& block, std::size_t blocks) {
  return blocks == 1 ? block.variable : StrCat(block.variable, ".block", block.index);
}

std::vector<int> DispatchBlocks(const std::vector<std::string>& names, int servers, Dispatch dispatch) {
  std::vector<int> places;
  for (const std::string& name : names) {
    const std::uint64_t number =
        dispatch == Dispatch::kRoundRobin ? places.size() : StreamOf(name.data(), name.size());
    places.push_back(static_cast<int>(number % static_cast<std::uint64_t>(servers)));
  }
  return places;
}

}  // namespace trainyard::graph
