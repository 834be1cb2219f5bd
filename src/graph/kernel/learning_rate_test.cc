#include "graph/kernel/learning_rate.h"

#include <cmath>

#include "graph/op/check.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

double Rate(Attrs attrs, std::int64_t step) {
  Op op{.type = "learning_rate", .inputs = {{"Step", {"step"}}}, .outputs = {{"Out", {"rate"}}}};
  op.attrs = std::move(attrs);
  const auto complete = Complete(std::move(op));
  EXPECT_TRUE(complete.ok()) << complete.status();
  return RateAt(*complete, step);
}

Attrs Kind(const char* kind, bool staircase = false) {
  return {{"kind", std::string(kind)},
          {"base", 2.0},
          {"decay_steps", std::int64_t{4}},
          {"decay_rate", 0.25},
          {"staircase", staircase}};
}

TEST(RateAt, FallsExponentially) {
  EXPECT_DOUBLE_EQ(Rate(Kind("exponential"), 0), 2);
  EXPECT_DOUBLE_EQ(Rate(Kind("exponential"), 2), 1);
  EXPECT_DOUBLE_EQ(Rate(Kind("exponential"), 8), 0.125);
}

TEST(RateAt, FallsByThePowersOfE) {
  EXPECT_DOUBLE_EQ(Rate(Kind("natural_exp"), 0), 2);
  EXPECT_DOUBLE_EQ(Rate(Kind("natural_exp"), 6), 2 * std::exp(-0.25 * 1.5));
}

TEST(RateAt, FallsByTheInverseOfTime) {
  EXPECT_DOUBLE_EQ(Rate(Kind("inverse_time"), 0), 2);
  EXPECT_DOUBLE_EQ(Rate(Kind("inverse_time"), 16), 1);
}

TEST(RateAt, FallsInStepsIfItIsAStaircase) {
  for (const char* kind : {"exponential", "natural_exp", "inverse_time"}) {
    EXPECT_DOUBLE_EQ(Rate(Kind(kind, true), 3), 2) << kind;
    EXPECT_DOUBLE_EQ(Rate(Kind(kind, true), 7), Rate(Kind(kind), 4)) << kind;
  }
}

Attrs Polynomial(bool cycle) {
  return {{"kind", std::string("polynomial")},
          {"base", 1.0},
          {"decay_steps", std::int64_t{10}},
          {"end", 0.2},
          {"power", 2.0},
          {"cycle", cycle}};
}

TEST(RateAt, FallsByAPolynomialToItsEnd) {
  EXPECT_DOUBLE_EQ(Rate(Polynomial(false), 0), 1);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(false), 5), 0.8 * 0.25 + 0.2);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(false), 10), 0.2);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(false), 1000), 0.2);
}

TEST(RateAt, RisesAgainWithEachCycleOfAPolynomial) {
  EXPECT_DOUBLE_EQ(Rate(Polynomial(true), 0), 1);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(true), 10), 0.2);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(true), 15), 0.8 * 0.0625 + 0.2);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(true), 20), 0.2);
  EXPECT_DOUBLE_EQ(Rate(Polynomial(true), 21), 0.8 * 0.09 + 0.2);
}

TEST(RateAt, GoesByPieces) {
  const Attrs attrs = {
      {"kind", std::string("piecewise")}, {"boundaries", Ints{10, 20}}, {"values", Floats{1, 0.5, 0.1}}};
  EXPECT_DOUBLE_EQ(Rate(attrs, 0), 1);
  EXPECT_DOUBLE_EQ(Rate(attrs, 9), 1);
  EXPECT_DOUBLE_EQ(Rate(attrs, 10), 0.5);
  EXPECT_DOUBLE_EQ(Rate(attrs, 19), 0.5);
  EXPECT_DOUBLE_EQ(Rate(attrs, 20), 0.1);
  EXPECT_DOUBLE_EQ(Rate(attrs, 1'000'000'000'000), 0.1);
}

}  // namespace
}  // namespace trainyard::graph
