#include "graph/ir/dump.h"

#include "base/text.h"

namespace trainyard::graph {
namespace {

// Each item by `print`, with commas between.
template <typename Range, typename PrintItem>
std::string Joined(const Range& items, PrintItem print) {
  std::string text;
  for (const auto& item : items) StrAppend(text, text.empty() ? "" : ", ", print(item));
  return text;
}

struct AttrPrinter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return StrCat(value); }
  std::string operator()(double value) const { return PrintNumber(value); }
  std::string operator()(const std::string& value) const { return StrCat("\"", Escaped(value), "\""); }
  std::string operator()(const BlockRef& value) const { return StrCat("block ", value.block); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return StrCat("[", Joined(values, *this), "]");
  }
};

std::string PrintSlots(const Slots& slots) {
  return Joined(slots, [](const auto& slot) {
    const std::string names = Joined(slot.second, [](const std::string& name) { return name; });
    return slot.second.size() == 1 ? StrCat(slot.first, "=", names) : StrCat(slot.first, "=[", names, "]");
  });
}

}  // namespace

std::string Print(const Attr& attr) { return std::visit(AttrPrinter{}, attr); }

std::string Print(const Op& op) {
  std::string line = StrCat(Name(op.role), " ", op.type, "(", PrintSlots(op.inputs), ")");
  if (!op.outputs.empty()) StrAppend(line, " -> ", PrintSlots(op.outputs));
  if (!op.attrs.empty()) {
    StrAppend(line, " {",
              Joined(op.attrs, [](const auto& attr) { return StrCat(attr.first, "=", Print(attr.second)); }),
              "}");
  }
  if (!op.parameter.empty()) StrAppend(line, " for ", op.parameter);
  return line;
}

std::string Print(const Var& var) {
  std::string line = StrCat(var.parameter     ? "param "
                            : var.persistable ? "keep "
                                              : "var ",
                            var.name, " ", Print(var.type));
  if (var.stop_gradient) line += " stop_gradient";
  if (var.slice)
    StrAppend(line, " slice of ", var.slice->of, Print(var.slice->whole), " from ", var.slice->offset);
  return line;
}

std::string Print(const Program& program) {
  std::string text = StrCat("program ", program.id.empty() ? "-" : program.id, " seed ", program.seed, "\n");
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    const Block& block = program.blocks[i];
    StrAppend(text, "block ", i);
    if (block.parent != kNoParent) StrAppend(text, " in ", block.parent);
    text += "\n";
    for (const Var& var : block.vars) StrAppend(text, "  ", Print(var), "\n");
    for (const Op& op : block.ops) StrAppend(text, "  ", Print(op), "\n");
  }
  return text;
}

}  // namespace trainyard::graph
