#include <cmath>
#include <limits>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

OpCall OfX(std::string type, Tensor x, Attrs attrs = {}) {
  return {.type = std::move(type), .in = {{"X", {std::move(x)}}}, .attrs = std::move(attrs)};
}

TEST(ActivationKernels, ComputeTheirFunctions) {
  const Tensor x = F32({5}, {-100, -1, 0, 0.5F, 100});
  ExpectNear(Output(OfX("relu", x)), {0, 0, 0, 0.5F, 100}, 0);
  ExpectNear(Output(OfX("leaky_relu", x, {{"alpha", 0.1}})), {-10, -0.1F, 0, 0.5F, 100}, 0);
  ExpectNear(Output(OfX("sigmoid", x)), {0, 0.26894143F, 0.5F, 0.62245935F, 1}, 1e-6);
  ExpectNear(Output(OfX("tanh", x)), {-1, -0.7615942F, 0, 0.46211717F, 1}, 1e-6);
}

TEST(ActivationKernels, LeaveNotANumberToBeSeen) {
  for (const char* type : {"relu", "leaky_relu", "sigmoid", "tanh"}) {
    const Tensor out = Output(OfX(type, F32({1}, {std::numeric_limits<float>::quiet_NaN()})));
    EXPECT_TRUE(std::isnan(out.data<float>()[0])) << type;
  }
}

TEST(ActivationKernels, HaveTheGradientsOfTheirFunctions) {
  for (const Dims& dims : {Dims{1}, Dims{3, 7}, Dims{2, 1, 5}}) {
    for (const char* type : {"relu", "leaky_relu"}) CheckGradient(OfX(type, Shuffled(dims, 3)));
    for (const char* type : {"sigmoid", "tanh"}) CheckGradient(OfX(type, RandomTensor(dims, 4, -2, 2)));
  }
}

TEST(ActivationKernels, MayWorkInPlace) {
  for (const char* type : {"relu", "sigmoid", "tanh", "leaky_relu"}) {
    OpCall call = OfX(type, RandomTensor({50}, 1));
    const std::vector<float> wanted = ValuesOf<float>(Output(call));
    call.in_place = {{"Out", "X"}};
    EXPECT_EQ(ValuesOf<float>(Output(call)), wanted) << type;
  }
}

struct Dropped {
  std::vector<float> out;
  std::vector<float> mask;
};

Dropped Drop(const OpCall& call, const Services& services = {}) {
  const auto results = RunOp(call, services);
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  return {ValuesOf<float>(std::get<Tensor>(results->at("Out")[0])),
          ValuesOf<float>(std::get<Tensor>(results->at("Mask")[0]))};
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  const Tensor x = RandomTensor({200, 501}, 1, 1, 2);
  const Dropped dropped = Drop(OfX("dropout", x, {{"dropout_prob", 0.2}}));
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < dropped.mask.size(); ++i) {
    ASSERT_TRUE(dropped.mask[i] == 0 || dropped.mask[i] == 1.25F);
    ASSERT_EQ(dropped.out[i], x.span<float>()[i] * dropped.mask[i]);
    zeros += static_cast<std::size_t>(dropped.mask[i] == 0);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(dropped.mask.size()), 0.2, 0.01);
}

TEST(Dropout, DropsNothingAtProbabilityZeroAndNearlyAllNearOne) {
  const Tensor x = RandomTensor({10000}, 1);
  EXPECT_EQ(Drop(OfX("dropout", x, {{"dropout_prob", 0.0}})).out, ValuesOf<float>(x));
  const Dropped most = Drop(OfX("dropout", x, {{"dropout_prob", 0.9999}}));
  EXPECT_LT(std::count_if(most.mask.begin(), most.mask.end(), [](float m) { return m != 0; }), 20);
}

TEST(Dropout, IsOffInTests) {
  const Tensor x = RandomTensor({100}, 1);
  const Dropped dropped = Drop(OfX("dropout", x, {{"is_test", true}}));
  EXPECT_EQ(dropped.out, ValuesOf<float>(x));
  EXPECT_EQ(dropped.mask, std::vector<float>(100, 1));
}

TEST(Dropout, HasAMaskOfItsOwnForEachStepWorkerAndSeed) {
  const OpCall call = OfX("dropout", RandomTensor({256}, 1));
  const std::vector<float> mask = Drop(call, {.seed = 7, .step = 3, .worker = 1}).mask;
  EXPECT_EQ(Drop(call, {.seed = 7, .step = 3, .worker = 1}).mask, mask);
  EXPECT_NE(Drop(call, {.seed = 7, .step = 4, .worker = 1}).mask, mask);
  EXPECT_NE(Drop(call, {.seed = 7, .step = 3, .worker = 2}).mask, mask);
  EXPECT_NE(Drop(call, {.seed = 8, .step = 3, .worker = 1}).mask, mask);
  OpCall seeded = call;
  seeded.attrs["seed"] = std::int64_t{9};
  EXPECT_EQ(Drop(seeded, {.seed = 1}).mask, Drop(seeded, {.seed = 2}).mask);
}

TEST(Dropout, HasTheSameMaskOnAnyNumberOfThreads) {
  OpCall call = OfX("dropout", RandomTensor({100003}, 1));
  const std::vector<float> mask = Drop(call, {.seed = 7}).mask;
  for (const int threads : {2, 3}) {
    call.threads = threads;
    EXPECT_EQ(Drop(call, {.seed = 7}).mask, mask);
  }
}

TEST(Dropout, HasMasksInWhichNeighboursDoNotDependOnEachOther) {
  const std::vector<float> mask = Drop(OfX("dropout", RandomTensor({100000}, 1))).mask;
  for (const std::size_t apart : {1, 2, 64, 256}) {
    int same = 0;
    for (std::size_t i = apart; i < mask.size(); ++i) same += static_cast<int>(mask[i] == mask[i - apart]);
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(mask.size()), 0.5, 0.01) << apart;
  }
}

TEST(Dropout, PassesGradientsThroughItsMask) {
  for (const Dims& dims : {Dims{1}, Dims{17, 23}}) CheckGradient(OfX("dropout", RandomTensor(dims, 1)));
}

}  // namespace
}  // namespace trainyard::graph
