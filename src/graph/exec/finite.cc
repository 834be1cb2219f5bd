#include "graph/exec/finite.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "graph/kernel/finite.h"

namespace trainyard::graph {
namespace {

constexpr std::pair<std::string_view, OnNonFinite> kPolicies[] = {
    {"fail", OnNonFinite::kFail}, {"warn", OnNonFinite::kWarn}, {"skip", OnNonFinite::kSkip}};

std::string FindIn(std::string_view name, const float* elements, std::int64_t first, std::int64_t count) {
  if (AllFinite(absl::MakeSpan(elements + first, static_cast<std::size_t>(count)))) return "";
  const float* const bad =
      std::find_if_not(elements + first, elements + first + count, [](float x) { return std::isfinite(x); });
  return StrCat("element ", bad - elements, " of ", name, " is ", PrintNonFinite(*bad));
}

std::string FindInRows(std::string_view name, const Tensor& tensor, const SparseRows& rows) {
  const std::int64_t width = rows.height == 0 ? 0 : tensor.count() / rows.height;
  if (width * rows.height != tensor.count()) return FindNonFinite(name, tensor);
  for (const std::int64_t row : rows.rows) {
    if (std::string found = FindIn(name, tensor.data<float>(), row * width, width); !found.empty())
      return found;
  }
  return "";
}

}  // namespace

std::string_view PrintNonFinite(double number) {
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

std::string_view Name(OnNonFinite policy) {
  for (const auto& [name, meant] : kPolicies) {
    if (meant == policy) return name;
  }
  return "";
}

std::optional<OnNonFinite> ParseOnNonFinite(std::string_view name) {
  for (const auto& [known, policy] : kPolicies) {
    if (known == name) return policy;
  }
  return std::nullopt;
}

std::string FindNonFinite(std::string_view name, const Tensor& tensor) {
  if (tensor.type() != DataType::kFloat32) return "";
  return FindIn(name, tensor.data<float>(), 0, tensor.count());
}

std::string FindNonFinite(const std::map<std::string, Tensor>& variables) {
  for (const auto& [name, tensor] : variables) {
    if (std::string found = FindNonFinite(name, tensor); !found.empty()) return found;
  }
  return "";
}

UpdateGuard::UpdateGuard(const Program& program, int block, PreparedBlock& prepared, OnNonFinite policy)
    : policy_(policy) {
  for (const Op& op : program.blocks[static_cast<std::size_t>(block)].ops) {
    Update update;
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        const Var* const var = program.Find(block, name);
        if (var != nullptr && var->persistable && var->type.data_type == DataType::kFloat32)
          update.written.emplace_back(name, prepared.Find(name));
      }
    }
    if (update.written.empty()) continue;
    if (const auto gradient = op.inputs.find("Grad"); gradient != op.inputs.end())
      update.gradient = prepared.Find(gradient->second.front());
    updates_.push_back(std::move(update));
  }
}

void UpdateGuard::Remember() {
  if (policy_ != OnNonFinite::kSkip) return;
  for (Update& update : updates_) {
    update.before.clear();
    for (const auto& [name, variable] : update.written)
      update.before.push_back(std::get<Tensor>(variable->value).Clone());
  }
}

std::string UpdateGuard::Check() {
  std::string first;
  for (Update& update : updates_) {
    const SparseRows* const rows =
        update.gradient == nullptr ? nullptr : std::get_if<SparseRows>(&update.gradient->value);
    std::string found;
    for (const auto& [name, variable] : update.written) {
      const auto& tensor = std::get<Tensor>(variable->value);
      found = rows == nullptr ? FindNonFinite(name, tensor) : FindInRows(name, tensor, *rows);
      if (!found.empty()) break;
    }
    if (!found.empty() && policy_ == OnNonFinite::kSkip) {
      for (std::size_t i = 0; i < update.written.size(); ++i)
        update.written[i].second->value = std::move(update.before[i]);
    }
    update.before.clear();
    if (first.empty()) first = std::move(found);
  }
  return first;
}

}  // namespace trainyard::graph
