// What becomes of a job whose numbers stop being finite, wherever its model is.
#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "master/master_testing.h"

namespace trainyard::master {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kBatches = ps::kRecords / 20;

struct Kind {
  int pservers = 0;
  bool async = false;
};

class NonFinite : public testing::TestWithParam<Kind> {
 protected:
  NonFinite() {
    job_.spec().minibatch = 20;
    job_.spec().minibatches_per_task = 4;
    job_.spec().shuffle = "none";
    job_.spec().async = GetParam().async;
    job_.spec().pservers = GetParam().pservers;
    job_.spec().checkpoint_steps = 1;
    job_.spec().keep_checkpoints = 1;
  }

  // The labels of the records [first, last).
  void SetLabels(std::size_t first, std::size_t last, float label) {
    ps::Records records = ps::MakeRecords();
    for (std::size_t i = first; i < last; ++i) records[i].back() = label;
    const ps::Folder folder;
    std::filesystem::rename(ps::WriteCsv(folder, records), job_.file());
  }

  absl::Status Run(graph::OnNonFinite policy) {
    job_.spec().on_nonfinite = policy;
    job_.Start();
    std::vector<std::unique_ptr<PserverThread>> pservers;
    for (int i = 0; i < GetParam().pservers; ++i)
      pservers.push_back(std::make_unique<PserverThread>(job_.Pserver(i)));
    WorkerThread worker(job_.Worker(0));
    return job_.master().Wait();
  }

  TestElasticJob job_{JobSpec(), {.update = graph::Sgd(), .rate = 0.01}};
};

INSTANTIATE_TEST_SUITE_P(, NonFinite,
                         testing::Values(Kind{}, Kind{.async = true}, Kind{.pservers = 2},
                                         Kind{.pservers = 2, .async = true}),
                         [](const auto& kind) {
                           return std::string(kind.param.async ? "Async" : "Sync") +
                                  (kind.param.pservers > 0 ? "OnPservers" : "Here");
                         });

TEST_P(NonFinite, LossFailsTheJobAtItsStep) {
  SetLabels(70, 71, 1e30F);  // its square is infinite
  const absl::Status ended = Run(graph::OnNonFinite::kFail);
  EXPECT_EQ(job_.master().GetProgress().phase, Phase::kFailed);
  EXPECT_THAT(std::string(ended.message()),
              AllOf(HasSubstr("step 4: the loss of worker 0 is inf"), HasSubstr("--on-nonfinite")));
  const auto found = ListCheckpoints(job_.spec().checkpoint_dir);
  for (const FoundCheckpoint& one : *found) {
    EXPECT_FALSE(one.nonfinite) << one.file;
    EXPECT_LE(one.step, 3);
  }
}

TEST_P(NonFinite, VariableFailsTheJobAtItsStep) {
  SetLabels(40, 41, 1e19F);  // its square is finite, and a step along its gradient is not
  TestElasticJob wild(job_.spec(), {.update = graph::Sgd(), .rate = 1e30});
  std::filesystem::copy_file(job_.file(), wild.file(), std::filesystem::copy_options::overwrite_existing);
  wild.Start();
  std::vector<std::unique_ptr<PserverThread>> pservers;
  for (int i = 0; i < GetParam().pservers; ++i)
    pservers.push_back(std::make_unique<PserverThread>(wild.Pserver(i)));
  WorkerThread worker(wild.Worker(0));
  const absl::Status ended = wild.master().Wait();
  EXPECT_THAT(std::string(ended.message()), testing::ContainsRegex("step [1-3]: .* (is|of) .*inf|nan"));
  EXPECT_EQ(wild.master().GetProgress().phase, Phase::kFailed);
}

TEST_P(NonFinite, ModelOfAJobThatWarnsFailsItAtTheEndAndLeavesTheLastFiniteCheckpoint) {
  SetLabels(70, 71, 1e30F);
  const absl::Status ended = Run(graph::OnNonFinite::kWarn);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("the trained model is not finite: element 0 of "));
  const Progress progress = job_.master().GetProgress();
  EXPECT_EQ(progress.total_records, ps::kRecords);
  EXPECT_EQ(progress.version, kBatches);
  EXPECT_GE(progress.nonfinite, kBatches - 3);
  EXPECT_THAT(progress.last_nonfinite, StartsWith("step 20: element"));
  EXPECT_FALSE(std::isfinite(*progress.loss));
  const auto found = ListCheckpoints(job_.spec().checkpoint_dir);
  ASSERT_EQ(found->size(), 2) << "the last one, and the last finite one";
  EXPECT_FALSE(found->front().nonfinite);
  EXPECT_LE(found->front().step, 4) << "what comes of the first infinite loss may be finite";
  EXPECT_TRUE(found->back().nonfinite);
  EXPECT_EQ(found->back().step, kBatches);
  EXPECT_EQ(ReadNewestCheckpoint(job_.spec().checkpoint_dir)->version, found->front().step);
  EXPECT_EQ(ReadNewestCheckpoint(found->back().file)->version, kBatches) << "by its name it can be had";
}

TEST_P(NonFinite, GradientIsLeftOutOfAJobThatSkips) {
  SetLabels(70, 71, 1e30F);
  const absl::Status ended = Run(graph::OnNonFinite::kSkip);
  ASSERT_TRUE(ended.ok()) << ended;
  const Progress progress = job_.master().GetProgress();
  EXPECT_EQ(progress.total_records, ps::kRecords) << "its records are used all the same";
  EXPECT_EQ(progress.version, kBatches - 1);
  EXPECT_EQ(progress.nonfinite, 1);
  EXPECT_TRUE(std::isfinite(*progress.loss));
  EXPECT_EQ(graph::FindNonFinite(job_.Learnt()), "");
}

TEST_P(NonFinite, JobThatCanMakeNoStepFails) {
  SetLabels(0, ps::kRecords, 1e30F);
  const absl::Status ended = Run(graph::OnNonFinite::kSkip);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("no step could be made: step 1: the loss of worker 0"));
}

}  // namespace
}  // namespace trainyard::master
