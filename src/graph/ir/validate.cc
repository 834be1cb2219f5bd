#include "graph/ir/validate.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"

namespace trainyard::graph {
namespace {

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

// A name as it can be shown: a hostile one is cut and stripped.
std::string Shown(std::string_view name) {
  std::string text(name.substr(0, 64));
  std::replace_if(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
  return StrCat("\"", text, "\"");
}

absl::Status CheckDims(const Dims& dims, const Var& var) {
  if (dims.rank() > kMaxRank)
    return Broken("variable ", var.name, " has ", dims.rank(), " dims, more than ", kMaxRank);
  std::int64_t count = 1;
  for (const std::int64_t size : dims) {
    if (size < kUnknownDim || size > kMaxElements)
      return Broken("variable ", var.name, " has a dim of ", size);
    if (size > 0 && count > kMaxElements / size)
      return Broken("variable ", var.name, " has too many elements: ", Print(dims));
    if (size > 0) count *= size;
  }
  return absl::OkStatus();
}

absl::Status CheckSlice(const Var& var) {
  const Slice& slice = *var.slice;
  if (!IsName(slice.of))
    return Broken("variable ", var.name, " is a slice of ", Shown(slice.of), ", which is no name");
  if (absl::Status checked = CheckDims(slice.whole, var); !checked.ok()) return checked;
  if (!slice.whole.Known() || !var.type.dims.Known())
    return Broken("variable ", var.name, " is a slice of unknown size");
  const std::int64_t whole = slice.whole.Count();
  const std::int64_t own = var.type.dims.Count();
  if (slice.offset < 0 || slice.offset > whole || own > whole - slice.offset) {
    return Broken("variable ", var.name, " is a slice beyond the end of ", slice.of, ": ", own,
                  " elements from ", slice.offset, " of ", whole);
  }
  return absl::OkStatus();
}

absl::Status CheckVars(const Block& block) {
  absl::flat_hash_set<std::string_view> names;
  for (const Var& var : block.vars) {
    if (!IsName(var.name)) return Broken("a variable is called ", Shown(var.name), ", which is no name");
    if (!names.insert(var.name).second) return Broken("variable ", var.name, " comes twice");
    if (absl::Status checked = CheckDims(var.type.dims, var); !checked.ok()) return checked;
    if (var.type.kind == VarKind::kSparseRows && var.type.dims.rank() < 1) {
      return Broken("variable ", var.name, " is sparse and has no rows: it needs at least one dim");
    }
    if (var.slice) {
      if (absl::Status checked = CheckSlice(var); !checked.ok()) return checked;
    }
  }
  return absl::OkStatus();
}

// What an operator may name, block by block, found fast however large the program is.
class Names {
 public:
  explicit Names(const Program& program) : program_(program), sets_(program.blocks.size()) {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      for (const Var& var : program.blocks[i].vars) sets_[i].insert(var.name);
    }
  }
  bool Has(int block, std::string_view name) const {
    for (; block != kNoParent; block = program_.blocks[static_cast<std::size_t>(block)].parent) {
      if (sets_[static_cast<std::size_t>(block)].contains(name)) return true;
    }
    return false;
  }

 private:
  const Program& program_;
  std::vector<absl::flat_hash_set<std::string_view>> sets_;
};

absl::Status CheckSlots(const Slots& slots, int block, const Names& names) {
  for (const auto& [slot, variables] : slots) {
    if (!IsName(slot)) return Broken("a slot is called ", Shown(slot), ", which is no name");
    for (const std::string& name : variables) {
      if (!names.Has(block, name))
        return Broken("slot ", slot, " names ", Shown(name), ", and there is no such variable");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBlockRef(const BlockRef& ref, int block, const Program& program) {
  const bool exists = ref.block > 0 && static_cast<std::size_t>(ref.block) < program.blocks.size();
  if (!exists) return Broken("it runs block ", ref.block, ", and there is no such block");
  // Only blocks inside the operator's own: no block can then run itself.
  for (int at = program.blocks[static_cast<std::size_t>(ref.block)].parent; at != kNoParent;
       at = program.blocks[static_cast<std::size_t>(at)].parent) {
    if (at == block) return absl::OkStatus();
  }
  return Broken("it runs block ", ref.block, ", which is not inside block ", block);
}

bool HasNaN(const Attr& value) {
  if (const auto* number = std::get_if<double>(&value)) return std::isnan(*number);
  const auto* list = std::get_if<Floats>(&value);
  return list != nullptr &&
         std::any_of(list->begin(), list->end(), [](double number) { return std::isnan(number); });
}

absl::Status CheckOp(const Op& op, int block, const Program& program, const Names& names) {
  if (!IsName(op.type)) return Broken("an operator's type is ", Shown(op.type), ", which is no name");
  if (absl::Status checked = CheckSlots(op.inputs, block, names); !checked.ok()) return checked;
  if (absl::Status checked = CheckSlots(op.outputs, block, names); !checked.ok()) return checked;
  if (!op.parameter.empty() && !IsName(op.parameter)) return Broken("its parameter is ", Shown(op.parameter));
  for (const auto& [name, value] : op.attrs) {
    if (!IsName(name)) return Broken("an attribute is called ", Shown(name), ", which is no name");
    // Nothing is meant by one, and a program would not be equal to itself.
    if (HasNaN(value)) return Broken("its attribute ", name, " is not a number");
    std::vector<BlockRef> refs;
    if (const auto* ref = std::get_if<BlockRef>(&value)) refs = {*ref};
    if (const auto* list = std::get_if<std::vector<BlockRef>>(&value)) refs = *list;
    for (const BlockRef& ref : refs) {
      if (absl::Status checked = CheckBlockRef(ref, block, program); !checked.ok()) return checked;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTree(const Program& program) {
  std::vector<int> depths;
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    const int parent = program.blocks[i].parent;
    if (i == 0 && parent != kNoParent) return Broken("block 0 has a parent");
    if (i > 0 && (parent < 0 || static_cast<std::size_t>(parent) >= i)) {
      return Broken("block ", i, " has the parent ", parent, ", which does not come before it");
    }
    depths.push_back(i == 0 ? 0 : depths[static_cast<std::size_t>(parent)] + 1);
    if (depths.back() > kMaxBlockDepth)
      return Broken("block ", i, " is more than ", kMaxBlockDepth, " blocks deep");
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const Program& program) {
  if (program.blocks.empty()) return Broken("it has no block");
  if (program.blocks.size() > kMaxBlocks) return Broken("it has more than ", kMaxBlocks, " blocks");
  std::size_t ops = 0;
  std::size_t vars = 0;
  for (const Block& block : program.blocks) {
    ops += block.ops.size();
    vars += block.vars.size();
  }
  if (ops > kMaxOps) return Broken("it has more than ", kMaxOps, " operators");
  if (vars > kMaxVars) return Broken("it has more than ", kMaxVars, " variables");
  return absl::OkStatus();
}

}  // namespace

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\' && c != '/';
  });
}

absl::Status Validate(const Program& program) {
  const std::string where =
      StrCat("program ", program.id.empty() ? "without a name" : Shown(program.id), ": ");
  if (!program.id.empty() && !IsName(program.id)) return Broken(where, "that is no name");
  if (absl::Status checked = CheckSizes(program); !checked.ok()) return Broken(where, checked.message());
  if (absl::Status checked = CheckTree(program); !checked.ok()) return Broken(where, checked.message());
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    if (absl::Status checked = CheckVars(program.blocks[i]); !checked.ok()) {
      return Broken(where, "block ", i, ": ", checked.message());
    }
  }
  const Names names(program);
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    const std::vector<Op>& ops = program.blocks[i].ops;
    for (std::size_t k = 0; k < ops.size(); ++k) {
      if (absl::Status checked = CheckOp(ops[k], static_cast<int>(i), program, names); !checked.ok()) {
        return Broken(where, "block ", i, ", operator ", k, " (", ops[k].type.substr(0, 64),
                      "): ", checked.message());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace trainyard::graph
