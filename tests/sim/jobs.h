// Specs of jobs, as users may write them: everything in them is chance.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/document.h"
#include "base/ids.h"

namespace trainyard::sim {

class JobMaker {
 public:
  explicit JobMaker(IdSource& random) : random_(random) {}

  // With `gangs`, some of them start all of their pods together.
  Object MakeAiSpec(bool gangs);
  Object MakeTfSpec(bool v1);
  Object MakePyTorchSpec(bool gangs);
  // A gang of so many pods that need a cpu each, which ends well if nothing goes wrong.
  Object MakeGangSpec(int pods);

 private:
  Object MakeRole(int replicas, std::string_view container = "tensorflow");
  Object MakeAiRole();
  Object MakePolicies();

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }
  bool Chance(int percent) { return Below(100) < static_cast<std::uint64_t>(percent); }
  template <typename T>
  const auto& OneOf(const T& values) {
    return values[Below(values.size())];
  }

  IdSource& random_;
};

}  // namespace trainyard::sim
