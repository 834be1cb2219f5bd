#include "graph/ir/program.h"

#include <algorithm>

namespace trainyard::graph {
namespace {

const std::vector<std::string>& NamesOf(const Slots& slots, std::string_view slot) {
  static const std::vector<std::string> kNone;
  const auto found = slots.find(slot);
  return found == slots.end() ? kNone : found->second;
}

std::string_view OnlyName(const Slots& slots, std::string_view slot) {
  const std::vector<std::string>& names = NamesOf(slots, slot);
  return names.size() == 1 ? std::string_view(names.front()) : std::string_view();
}

bool Holds(const Slots& slots, std::string_view name) {
  return std::any_of(slots.begin(), slots.end(), [&](const auto& slot) {
    return std::find(slot.second.begin(), slot.second.end(), name) != slot.second.end();
  });
}

template <typename T>
const T* ValueOf(const Attrs& attrs, std::string_view name) {
  const auto found = attrs.find(name);
  return found == attrs.end() ? nullptr : std::get_if<T>(&found->second);
}

template <typename T>
const T& ListOf(const Attrs& attrs, std::string_view name) {
  static const T kNone;
  const T* value = ValueOf<T>(attrs, name);
  return value == nullptr ? kNone : *value;
}

}  // namespace

std::string_view Name(Role role) {
  switch (role) {
    case Role::kForward:
      return "forward";
    case Role::kLoss:
      return "loss";
    case Role::kBackward:
      return "backward";
    case Role::kOptimize:
      return "optimize";
    case Role::kSchedule:
      return "schedule";
    case Role::kRpc:
      return "rpc";
  }
  return "?";
}

const std::vector<std::string>& Op::In(std::string_view slot) const { return NamesOf(inputs, slot); }
const std::vector<std::string>& Op::Out(std::string_view slot) const { return NamesOf(outputs, slot); }
std::string_view Op::OneIn(std::string_view slot) const { return OnlyName(inputs, slot); }
std::string_view Op::OneOut(std::string_view slot) const { return OnlyName(outputs, slot); }
bool Op::Reads(std::string_view name) const { return Holds(inputs, name); }
bool Op::Writes(std::string_view name) const { return Holds(outputs, name); }

std::int64_t Op::Int(std::string_view name, std::int64_t otherwise) const {
  const auto* value = ValueOf<std::int64_t>(attrs, name);
  return value == nullptr ? otherwise : *value;
}

double Op::Float(std::string_view name, double otherwise) const {
  const auto* value = ValueOf<double>(attrs, name);
  return value == nullptr ? otherwise : *value;
}

bool Op::Bool(std::string_view name, bool otherwise) const {
  const auto* value = ValueOf<bool>(attrs, name);
  return value == nullptr ? otherwise : *value;
}

const std::string& Op::String(std::string_view name) const { return ListOf<std::string>(attrs, name); }
const Ints& Op::IntList(std::string_view name) const { return ListOf<Ints>(attrs, name); }
const Floats& Op::FloatList(std::string_view name) const { return ListOf<Floats>(attrs, name); }
const Strings& Op::StringList(std::string_view name) const { return ListOf<Strings>(attrs, name); }

std::optional<int> Op::Block(std::string_view name) const {
  const auto* value = ValueOf<BlockRef>(attrs, name);
  return value == nullptr ? std::nullopt : std::optional(value->block);
}

std::vector<int> Op::Blocks(std::string_view name) const {
  std::vector<int> blocks;
  for (const BlockRef& ref : ListOf<std::vector<BlockRef>>(attrs, name)) blocks.push_back(ref.block);
  return blocks;
}

const Var* Block::Find(std::string_view name) const {
  const auto found = std::find_if(vars.begin(), vars.end(), [&](const Var& var) { return var.name == name; });
  return found == vars.end() ? nullptr : &*found;
}

Var* Block::Find(std::string_view name) { return const_cast<Var*>(std::as_const(*this).Find(name)); }

int Program::AddBlock(int parent) {
  blocks.push_back(Block{.parent = parent});
  return static_cast<int>(blocks.size()) - 1;
}

const Var* Program::Find(int block, std::string_view name) const {
  for (; block != kNoParent; block = blocks[static_cast<std::size_t>(block)].parent) {
    if (const Var* var = blocks[static_cast<std::size_t>(block)].Find(name)) return var;
  }
  return nullptr;
}

}  // namespace trainyard::graph
