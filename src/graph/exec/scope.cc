#include "graph/exec/scope.h"

#include <utility>

namespace trainyard::graph {

Variable& Scope::Get(std::string_view name) {
  auto found = variables_.find(name);
  if (found == variables_.end()) found = variables_.emplace(name, std::make_unique<Variable>()).first;
  return *found->second;
}

Variable* Scope::Find(std::string_view name) {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second.get();
}

const Variable* Scope::Find(std::string_view name) const { return const_cast<Scope*>(this)->Find(name); }

const Tensor* Scope::FindTensor(std::string_view name) const {
  const Variable* variable = Find(name);
  return variable == nullptr || variable->absent ? nullptr : std::get_if<Tensor>(&variable->value);
}

void Scope::Put(std::string_view name, Tensor tensor) {
  Variable& variable = Get(name);
  variable.value = std::move(tensor);
  variable.absent = false;
}

std::vector<std::string> Scope::Names() const {
  std::vector<std::string> names;
  names.reserve(variables_.size());
  for (const auto& [name, unused] : variables_) names.push_back(name);
  return names;
}

}  // namespace trainyard::graph
