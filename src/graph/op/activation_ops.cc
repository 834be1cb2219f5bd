// Activations: what makes a network more than one product.
#include "base/status.h"
#include "base/text.h"
#include "graph/op/infer.h"
#include "graph/op/schema.h"

namespace trainyard::graph {
namespace {

absl::Status InferActivation(Typing& typing) {
  TY_RETURN_IF_ERROR(ExpectDense(typing, "X"));
  typing.SetOut("Out", typing.In("X"));
  return absl::OkStatus();
}

absl::Status InferSoftmax(Typing& typing) {
  if (typing.In("X").dims.rank() < 1) return absl::InvalidArgumentError("X must have at least one dim");
  return InferActivation(typing);
}

absl::Status InferDropout(Typing& typing) {
  const double probability = typing.op().Float("dropout_prob");
  if (!(probability >= 0 && probability < 1)) {
    return absl::InvalidArgumentError(
        StrCat("dropout_prob must be in [0, 1) and is ", PrintNumber(probability)));
  }
  typing.SetOut("Mask", typing.In("X"));
  return InferActivation(typing);
}

OpSchema Activation(std::string type, std::vector<AttrSpec> attrs = {}) {
  return {.type = std::move(type),
          .inputs = {{"X"}},
          .outputs = {{"Out"}},
          .attrs = std::move(attrs),
          .infer = InferActivation};
}

}  // namespace

void AddActivationOps(OpTable& table) {
  for (const char* type : {"relu", "sigmoid", "tanh"}) {
    table.AddWithGradient(Activation(type), {.of = {"X"}, .reads = {"Out"}});
  }
  table.AddWithGradient(Activation("leaky_relu", {{"alpha", 0.02}}), {.of = {"X"}});
  OpSchema softmax = Activation("softmax");
  softmax.infer = InferSoftmax;
  table.AddWithGradient(std::move(softmax), {.of = {"X"}, .reads = {"Out"}});
  // What is kept is scaled by 1 / (1 - dropout_prob), so that nothing need be scaled when it is off
  // (is_test).
  table.AddWithGradient({.type = "dropout",
                         .inputs = {{"X"}},
                         .outputs = {{"Out"}, {"Mask"}},
                         .attrs = {{"dropout_prob", 0.5}, {"is_test", false}, {"seed", std::int64_t{0}}},
                         .infer = InferDropout},
                        {.of = {"X"}, .reads = {"Mask"}});
}

}  // namespace trainyard::graph
