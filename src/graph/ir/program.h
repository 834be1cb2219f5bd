// Programs as plain values: a program is blocks, a block is variables and operators, an operator names the
// variables that it reads and writes.
//
// Block 0 is the whole program's; others are inside it by `parent` and are run by operators that have a
// BlockRef attribute. A name means the variable of the operator's own block, or of the nearest one around it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/ir/types.h"

namespace trainyard::graph {

struct BlockRef {
  int block = 0;
  bool operator==(const BlockRef&) const = default;
};

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;
using Attr = std::variant<bool, std::int64_t, double, std::string, Ints, Floats, Strings, BlockRef,
                          std::vector<BlockRef>>;
using Attrs = std::map<std::string, Attr, std::less<>>;
// The names of the variables in each slot of an operator.
using Slots = std::map<std::string, std::vector<std::string>, std::less<>>;

// What an operator is for; the transpiler goes by it.
enum class Role : std::uint8_t { kForward, kLoss, kBackward, kOptimize, kSchedule, kRpc };
std::string_view Name(Role role);

struct Op {
  std::string type;
  Slots inputs;
  Slots outputs;
  Attrs attrs;
  Role role = Role::kForward;
  // Of an operator that works on one parameter's gradient (clipping, decay, update): that parameter's name.
  std::string parameter;

  // The names of a slot; none if the operator does not use it.
  const std::vector<std::string>& In(std::string_view slot) const;
  const std::vector<std::string>& Out(std::string_view slot) const;
  // The only name of a slot, or "".
  std::string_view OneIn(std::string_view slot) const;
  std::string_view OneOut(std::string_view slot) const;
  bool Reads(std::string_view name) const;
  bool Writes(std::string_view name) const;

  // The attribute's value if it is there and of the kind, else what stands in for it.
  std::int64_t Int(std::string_view name, std::int64_t otherwise = 0) const;
  double Float(std::string_view name, double otherwise = 0) const;
  bool Bool(std::string_view name, bool otherwise = false) const;
  const std::string& String(std::string_view name) const;
  const Ints& IntList(std::string_view name) const;
  const Floats& FloatList(std::string_view name) const;
  const Strings& StringList(std::string_view name) const;
  std::optional<int> Block(std::string_view name) const;
  std::vector<int> Blocks(std::string_view name) const;

  bool operator==(const Op&) const = default;
};

// Of a variable that is some rows of a larger one: which.
struct Slice {
  std::string of;           // the whole variable's name
  Dims whole;               // its dims
  std::int64_t offset = 0;  // elements of it that come before this slice
  bool operator==(const Slice&) const = default;
};

struct Var {
  std::string name;
  VarType type;
  bool persistable = false;    // lives as long as its scope, and is in checkpoints
  bool parameter = false;      // is learnt
  bool stop_gradient = false;  // no gradient is computed for it
  std::optional<Slice> slice;
  bool operator==(const Var&) const = default;
};

inline constexpr int kNoParent = -1;

struct Block {
  int parent = kNoParent;
  std::vector<Var> vars;
  std::vector<Op> ops;

  const Var* Find(std::string_view name) const;
  Var* Find(std::string_view name);
  bool operator==(const Block&) const = default;
};

// The number that this code writes and the only one that it reads.
inline constexpr std::uint32_t kProgramVersion = 1;

struct Program {
  std::string id;
  std::uint64_t seed = 0;  // of every random operator that has none of its own
  std::vector<Block> blocks = {Block()};

  Block& main() { return blocks.front(); }
  const Block& main() const { return blocks.front(); }
  // A new block inside `parent`; its number.
  int AddBlock(int parent);
  // The variable that `name` means in `block`.
  const Var* Find(int block, std::string_view name) const;
  bool operator==(const Program&) const = default;
};

}  // namespace trainyard::graph
