#include "master/spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::master {
namespace {

using testing::HasSubstr;

JobSpec Good() { return {.name = "job", .model = "model.py", .training_data = {"data"}}; }

TEST(JobSpec, IsTheSameAfterItWasStored) {
  JobSpec spec = Good();
  spec.kind = JobKind::kPredict;
  spec.params = {{"width", "12"}};
  spec.prediction_data = {"a,b", "c"};
  spec.seed = UINT64_MAX;
  spec.evaluation_every = absl::Milliseconds(1500);
  spec.worker_pod = {.cpu = "1", .memory = "1Gi", .gpu = "2", .priority_class = "low"};
  spec.async = true;
  spec.data_reader = "rows";
  spec.prediction_records = kMostRecords;
  spec.folder = "/home/ada";
  const auto again = ParseJobSpec(Print(spec));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, spec);
}

TEST(JobSpec, IsRefusedWithWhatIsWrong) {
  EXPECT_THAT(std::string(ParseJobSpec(R"({"epochs":"two"})").status().message()),
              HasSubstr("a job: epochs must be a whole number"));
  EXPECT_THAT(std::string(ParseJobSpec(R"({"workers":3000000000})").status().message()),
              HasSubstr("workers"));
  EXPECT_THAT(std::string(ParseJobSpec(R"({"wheels":4})").status().message()), HasSubstr("no field wheels"));
  EXPECT_THAT(std::string(ParseJobSpec(R"([])").status().message()), HasSubstr("a job must be an object"));
  EXPECT_THAT(std::string(ParseJobSpec(R"({"kind":"guess"})").status().message()),
              HasSubstr("kind must be train, evaluate or predict"));
}

TEST(Validate, SaysWhatToGiveInstead) {
  const auto why = [](const std::function<void(JobSpec&)>& change) {
    JobSpec spec = Good();
    change(spec);
    return std::string(Validate(spec).message());
  };
  EXPECT_EQ(why([](JobSpec&) {}), "");
  EXPECT_THAT(why([](JobSpec& s) { s.model.clear(); }), HasSubstr("Give --model"));
  EXPECT_THAT(why([](JobSpec& s) { s.training_data.clear(); }), HasSubstr("give --training-data"));
  EXPECT_THAT(why([](JobSpec& s) { s.kind = JobKind::kEvaluate; }), HasSubstr("give --validation-data"));
  EXPECT_THAT(why([](JobSpec& s) {
                s.kind = JobKind::kPredict;
                s.prediction_data = {"x"};
              }),
              HasSubstr("Give --output"));
  EXPECT_THAT(why([](JobSpec& s) {
                s.kind = JobKind::kPredict;
                s.prediction_data = {"x"};
                s.output = "o";
              }),
              HasSubstr("Give --init-from"));
  EXPECT_THAT(why([](JobSpec& s) {
                s.minibatch = 1 << 20;
                s.minibatches_per_task = 1 << 20;
              }),
              HasSubstr("too large"));
  EXPECT_THAT(why([](JobSpec& s) {
                s.tasks_only = true;
                s.validation_data = {"x"};
              }),
              HasSubstr("leave --validation-data out"));
  EXPECT_THAT(why([](JobSpec& s) {
                s.async = true;
                s.staleness = 3;
              }),
              HasSubstr("leave --staleness out"));
  EXPECT_THAT(why([](JobSpec& s) { s.pserver_pod.cpu = "1"; }), HasSubstr("are for --pservers"));
  EXPECT_THAT(why([](JobSpec& s) { s.shuffle = "all"; }), HasSubstr("none, tasks or records"));
}

TEST(Validate, HoldsWhatIsSaidOfAReaderTogether) {
  const auto why = [](const std::function<void(JobSpec&)>& change) {
    JobSpec spec = Good();
    spec.data_reader = "rows";
    spec.training_records = 100;
    change(spec);
    return std::string(Validate(spec).message());
  };
  EXPECT_EQ(why([](JobSpec&) {}), "");
  EXPECT_THAT(why([](JobSpec& s) { s.training_records = 0; }), HasSubstr("Give --training-records"));
  EXPECT_THAT(why([](JobSpec& s) { s.validation_data = {"x"}; }), HasSubstr("Give --validation-records"));
  EXPECT_THAT(why([](JobSpec& s) { s.training_records = -1; }), HasSubstr("and is -1"));
  EXPECT_THAT(why([](JobSpec& s) { s.training_records = kMostRecords + 1; }),
              HasSubstr("must be from 1 to 9007199254740992, and is 9007199254740993"));
  EXPECT_THAT(why([](JobSpec& s) { s.data_reader.clear(); }), HasSubstr("is for --data-reader"));
  EXPECT_THAT(why([](JobSpec& s) { s.program = "AAAA"; }), HasSubstr("reads record files by itself"));
  EXPECT_THAT(why([](JobSpec& s) { s.data_format = "csv"; }), HasSubstr("--data-format"));
  EXPECT_THAT(why([](JobSpec& s) { s.skip_header = true; }), HasSubstr("--skip-header"));
}

}  // namespace
}  // namespace trainyard::master
