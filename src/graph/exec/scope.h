// Variables by name while programs run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/kernel/kernel.h"

namespace trainyard::graph {

// Variables stay where they are as long as the scope lives. One thread at a time, but for the variables
// themselves, which are whoever's that runs what uses them.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The variable of that name, made if there is none.
  Variable& Get(std::string_view name);
  Variable* Find(std::string_view name);
  const Variable* Find(std::string_view name) const;
  // The dense value of that name, or null.
  const Tensor* FindTensor(std::string_view name) const;
  void Put(std::string_view name, Tensor tensor);
  // In order.
  std::vector<std::string> Names() const;

 private:
  std::map<std::string, std::unique_ptr<Variable>, std::less<>> variables_;
};

}  // namespace trainyard::graph
