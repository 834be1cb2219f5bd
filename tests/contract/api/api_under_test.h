// The API servers that the contract is run against: ours in this process, ours over HTTPS, and a real
// kube-apiserver where there is one.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/http.h"

namespace trainyard::testing {

class ApiUnderTest {
 public:
  virtual ~ApiUnderTest() = default;
  virtual kube::Transport& transport() = 0;
};

struct ApiKind {
  std::string name;  // "InProcess", "Https", "Real"
  // Why it cannot be had here; empty: it can.
  std::function<std::string()> missing;
  // Started once for all tests of a process.
  std::function<ApiUnderTest&()> start;

  friend void PrintTo(const ApiKind& kind, std::ostream* out) { *out << kind.name; }
};

std::vector<ApiKind> AllApiKinds();

}  // namespace trainyard::testing
