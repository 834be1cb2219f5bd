// Small networks for the tests of passes.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "graph/build/builder.h"

namespace trainyard::graph {

inline std::vector<std::string> TypesOf(const Block& block) {
  std::vector<std::string> types;
  for (const Op& op : block.ops) types.push_back(op.type);
  return types;
}

// x[1000] -> fc 1000 -> mean of the square error to y[1000]: one weight of 1,000,000 elements and one bias of
// 1,000.
inline Programs OneFc(const Optimizer& optimizer, const ParameterOptions& weight = {}) {
  Builder net("net", {.seed = 3});
  const Ref x = net.Data("x", {1000});
  const Ref y = net.Data("y", {1000});
  FcOptions options;
  options.weight = weight;
  options.weight.name = "fc_w";
  options.bias.name = "fc_b";
  const Ref loss = net.Mean(net.SquareErrorCost(net.Fc(x, 1000, options), y));
  net.Minimize(loss, optimizer);
  absl::StatusOr<Programs> programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return *std::move(programs);
}

}  // namespace trainyard::graph
