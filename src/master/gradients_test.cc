#include "master/gradients.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::master {
namespace {

using graph::SparseRows;
using graph::Tensor;
using testing::ElementsAre;

Tensor Dense(std::vector<float> values) {
  Tensor tensor(graph::DataType::kFloat32, {static_cast<std::int64_t>(values.size()), 1});
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

SparseRows Rows(std::int64_t height, std::vector<std::int64_t> numbers, std::vector<float> values) {
  return {.height = height, .rows = std::move(numbers), .value = Dense(std::move(values))};
}

Gradients One(graph::Value value) {
  Gradients gradients;
  gradients.emplace("w", std::move(value));
  return gradients;
}

std::vector<float> ElementsOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}

TEST(GradientSum, OfOneReportIsThatReport) {
  GradientSum sum;
  sum.Add(One(Dense({1, 2})), 7);
  EXPECT_THAT(ElementsOf(std::get<Tensor>(sum.TakeMean().at("w"))), ElementsAre(1, 2));
  EXPECT_EQ(sum.reports(), 0);
}

TEST(GradientSum, WeighsReportsByTheirRecords) {
  GradientSum sum;
  sum.Add(One(Dense({1, 0})), 3);
  sum.Add(One(Dense({5, 4})), 1);
  EXPECT_THAT(ElementsOf(std::get<Tensor>(sum.TakeMean().at("w"))), ElementsAre(2, 1));
}

TEST(GradientSum, TakesWhatAReportDoesNotHaveForZero) {
  GradientSum sum;
  sum.Add({}, 1);
  sum.Add(One(Dense({4})), 1);
  EXPECT_THAT(ElementsOf(std::get<Tensor>(sum.TakeMean().at("w"))), ElementsAre(2));
}

TEST(GradientSum, WeighsRowsAsItWeighsWholeTensors) {
  GradientSum sum;
  sum.Add(One(Rows(9, {2, 5}, {2, 4})), 1);
  sum.Add(One(Rows(9, {5}, {8})), 3);
  const Gradients mean = sum.TakeMean();
  const auto& rows = std::get<SparseRows>(mean.at("w"));
  EXPECT_THAT(rows.rows, ElementsAre(2, 5, 5));
  EXPECT_THAT(ElementsOf(rows.value), ElementsAre(0.5, 1, 6));
}

TEST(GradientSum, AddsRowsToAWholeTensorInEitherOrder) {
  for (const bool rows_first : {true, false}) {
    GradientSum sum;
    if (rows_first) sum.Add(One(Rows(3, {1}, {2})), 1);
    sum.Add(One(Dense({4, 4, 4})), 1);
    if (!rows_first) sum.Add(One(Rows(3, {1}, {2})), 1);
    EXPECT_THAT(ElementsOf(std::get<Tensor>(sum.TakeMean().at("w"))), ElementsAre(2, 3, 2));
  }
}

}  // namespace
}  // namespace trainyard::master
