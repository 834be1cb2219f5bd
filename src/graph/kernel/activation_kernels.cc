// Activations and dropout.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/random.h"
#include "graph/kernel/random_block.h"
#include "graph/kernel/vector_math.h"

namespace trainyard::graph {
namespace {

// Out = f(X).
template <typename F>
absl::Status Forward(OpRun& run) {
  Map(run.Out("Out"), F(), run.In("X"));
  return absl::OkStatus();
}

// X@GRAD = f(Out, Out@GRAD).
template <typename F>
absl::Status Backward(OpRun& run) {
  if (run.HasOut("X@GRAD")) Map(run.Out("X@GRAD"), F(), run.In("Out"), run.In("Out@GRAD"));
  return absl::OkStatus();
}

// A NaN stays one: a network that has gone wrong must not look well.
struct Relu {
  float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct ReluGradient {
  float operator()(float out, float d) const { return out > 0 ? d : 0; }
};
struct SigmoidOf {
  float operator()(float x) const { return Sigmoid(x); }
};
struct SigmoidGradient {
  float operator()(float out, float d) const { return d * out * (1 - out); }
};
struct TanhOf {
  float operator()(float x) const { return Tanh(x); }
};
struct TanhGradient {
  float operator()(float out, float d) const { return d * (1 - out * out); }
};

absl::Status LeakyRelu(OpRun& run) {
  const auto alpha = static_cast<float>(run.op().Float("alpha"));
  Map(run.Out("Out"), [alpha](float x) { return x < 0 ? alpha * x : x; }, run.In("X"));
  return absl::OkStatus();
}

absl::Status LeakyReluGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const auto alpha = static_cast<float>(run.op().Float("alpha"));
  const auto pass = [alpha](float x, float d) { return x < 0 ? alpha * d : d; };
  Map(run.Out("X@GRAD"), pass, run.In("X"), run.In("Out@GRAD"));
  return absl::OkStatus();
}

// Every bit of the result depends on every bit of `x`.
std::uint64_t Mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Of this operator in this step of this worker.
std::uint64_t MaskStream(const OpRun& run) {
  const std::string_view name = run.op().OneOut("Out");
  const std::uint64_t of_worker = Mixed(StreamOf(name.data(), name.size()) + run.services().worker);
  return Mixed(of_worker + static_cast<std::uint64_t>(run.services().step));
}

struct MaskRule {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint64_t dropped;  // of 2^32 numbers
  float kept;             // what stands in the mask for an element that is kept
};

constexpr std::int64_t kMaskBlock = std::int64_t{4} * kPhiloxLanes;

TY_VECTOR void WriteMask(const std::uint32_t* words, const MaskRule& rule, std::int64_t count, float* mask) {
  const float kept = rule.kept;
  const auto dropped = static_cast<std::uint32_t>(rule.dropped);
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) mask[i] = words[i] >= dropped ? kept : 0;
}

// Blocks [begin, end) of the mask. A block is made of counters of its own, so that it does not matter which
// thread makes it.
void MakeMask(const MaskRule& rule, std::int64_t begin, std::int64_t end, absl::Span<float> mask) {
  PhiloxBlock random;
  for (std::int64_t block = begin; block < end; ++block) {
    const RandomRun counters = {rule.seed, rule.stream, static_cast<std::uint64_t>(block * kPhiloxLanes)};
    MakePhiloxBlock(counters, kPhiloxLanes, random);
    const absl::Span<float> part = mask.subspan(static_cast<std::size_t>(block * kMaskBlock), kMaskBlock);
    for (std::size_t word = 0; word < 4 && word * kPhiloxLanes < part.size(); ++word) {
      const absl::Span<float> quarter = part.subspan(word * kPhiloxLanes, kPhiloxLanes);
      WriteMask(random.words[word], rule, static_cast<std::int64_t>(quarter.size()), quarter.data());
    }
  }
}

absl::Status Dropout(OpRun& run) {
  Tensor& mask = run.Out("Mask");
  if (run.op().Bool("is_test")) {
    Map(mask, [] { return 1.0F; });
    Map(run.Out("Out"), [](float x) { return x; }, run.In("X"));
    return absl::OkStatus();
  }
  const double probability = run.op().Float("dropout_prob");
  const std::int64_t seed = run.op().Int("seed");
  const MaskRule rule = {
      .seed = seed != 0 ? static_cast<std::uint64_t>(seed) : run.services().seed,
      .stream = MaskStream(run),
      .dropped = static_cast<std::uint64_t>(std::min(probability * 0x1.0p32, 0x1.0p32 - 1)),
      .kept = static_cast<float>(1 / (1 - probability))};
  const std::int64_t blocks = (mask.count() + kMaskBlock - 1) / kMaskBlock;
  ParallelFor(blocks, kGrain / kMaskBlock,
              [&](std::int64_t begin, std::int64_t end) { MakeMask(rule, begin, end, mask.span<float>()); });
  Map(run.Out("Out"), [](float x, float factor) { return x * factor; }, run.In("X"), mask);
  return absl::OkStatus();
}

absl::Status DropoutGradient(OpRun& run) {
  if (!run.HasOut("X@GRAD")) return absl::OkStatus();
  const auto pass = [](float factor, float d) { return factor * d; };
  Map(run.Out("X@GRAD"), pass, run.In("Mask"), run.In("Out@GRAD"));
  return absl::OkStatus();
}

}  // namespace

void AddActivationKernels(KernelTable& table) {
  table.Add("relu", Forward<Relu>);
  table.Add("relu_grad", Backward<ReluGradient>);
  table.Add("sigmoid", Forward<SigmoidOf>);
  table.Add("sigmoid_grad", Backward<SigmoidGradient>);
  table.Add("tanh", Forward<TanhOf>);
  table.Add("tanh_grad", Backward<TanhGradient>);
  table.Add("leaky_relu", LeakyRelu);
  table.Add("leaky_relu_grad", LeakyReluGradient);
  table.Add("dropout", Dropout);
  table.Add("dropout_grad", DropoutGradient);
}

}  // namespace trainyard::graph
