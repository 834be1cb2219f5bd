// Which part of which variable lies on which pserver. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/types.h"

namespace trainyard::graph {

// One block of a variable: whole rows, where it has rows.
struct VarBlock {
  std::string variable;
  int index = 0;
  std::int64_t offset = 0;  // elements of the variable before it
  std::int64_t count = 0;   // its elements
  bool operator==(const VarBlock&) const = default;
};

// Cuts a variable into at most `servers` blocks of at least `least` elements, but for the last, each of whole
// rows.
std::vector<VarBlock> SliceVariable(std::string_view variable, const Dims& dims, int servers,
                                    std::int64_t least);

// The dims of a block: [its rows, the other dims...].
Dims BlockDims(const Dims& whole, const VarBlock& block);

// "w.block1", or "w" if it is the only one.
std::string BlockName(const VarBlock& block, std::size_t blocks);

enum class Dispatch : std::uint8_t {
  kRoundRobin,  // one after the other, over the blocks of all variables
  kHash,        // by a hash of the block's name, which does not change when other variables come and go
};

// The pserver of each block, in the order of `names`.
std::vector<int> DispatchBlocks(const std::vector<std::string>& names, int servers, Dispatch dispatch);

}  // namespace trainyard::graph
