#include "master/data.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::master {
namespace {

TEST(CountRecordsOf, TakesTheJobsWordWhereItsModelReads) {
  const JobSpec spec{.training_data = {"db://nowhere"},
                     .validation_data = {"db://nowhere"},
                     .prediction_data = {"db://nowhere"},
                     .data_reader = "rows",
                     .training_records = 100,
                     .validation_records = 20,
                     .prediction_records = 3};
  EXPECT_EQ(CountRecordsOf(spec, tasks::Kind::kTraining).value(), 100);
  EXPECT_EQ(CountRecordsOf(spec, tasks::Kind::kEvaluation).value(), 20);
  EXPECT_EQ(CountRecordsOf(spec, tasks::Kind::kPrediction).value(), 3);
}

TEST(CountRecordsOf, LooksIntoRecordFilesOtherwise) {
  const JobSpec spec{.training_data = {"/no/such/file.csv"}};
  EXPECT_TRUE(absl::IsNotFound(CountRecordsOf(spec, tasks::Kind::kTraining).status()));
}

TEST(NumbersOf, GivesEachRecordOnceInEachEpochWhoeverReads) {
  const JobSpec spec{.data_reader = "rows", .training_records = 10, .seed = 3, .shuffle = "records"};
  for (const std::int64_t epoch : {0, 1}) {
    std::vector<std::int64_t> numbers;
    for (const tasks::Range range : {tasks::Range{0, 4}, tasks::Range{4, 10}}) {
      const auto some = NumbersOf(spec, {.epoch = epoch, .records = range}, range, 10);
      numbers.insert(numbers.end(), some.begin(), some.end());
    }
    EXPECT_THAT(numbers, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

}  // namespace
}  // namespace trainyard::master
