#include "bench/replay.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace trainyard::job::scale {
namespace {

ReplayOptions Instant(int nodes, bool elastic) {
  return {.nodes = nodes, .elastic = elastic, .limits = {.max_load = 1}, .start_time = 0, .stop_time = 0};
}

TEST(Replay, OfOneJobTakesItsWorkDividedByItsPods) {
  const auto result = Replay({{.arrival = 5, .least = 4, .most = 4, .work = 100}}, Instant(4, false));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->mean_pending, 0, 1e-6);
  EXPECT_NEAR(result->mean_completion, 25, 1e-6);
  EXPECT_NEAR(result->makespan, 25, 1e-6);
  EXPECT_NEAR(result->utilisation, 1, 1e-6);
}

TEST(Replay, CountsTheTimeThatPodsTakeToStartAsPending) {
  ReplayOptions options = Instant(4, false);
  options.start_time = 3;
  const auto result = Replay({{.least = 4, .most = 4, .work = 100}}, options);
  EXPECT_NEAR(result->mean_pending, 3, 1e-6);
  EXPECT_NEAR(result->mean_completion, 28, 1e-6);
}

TEST(Replay, WithoutElasticityLetsTheSecondWaitForTheFirst) {
  const std::vector<ReplayJob> jobs = {{.arrival = 0, .least = 1, .most = 4, .work = 400},
                                       {.arrival = 10, .least = 1, .most = 4, .work = 400}};
  const auto fixed = Replay(jobs, Instant(4, false));
  EXPECT_NEAR(fixed->pending[1], 90, 1e-6);
  const auto elastic = Replay(jobs, Instant(4, true));
  EXPECT_LT(elastic->pending[1], 3);
  EXPECT_GT(elastic->changes, 2);
}

TEST(Replay, DoesAllTheWorkWhateverIsScaled) {
  const std::vector<ReplayJob> jobs = {{.arrival = 0, .least = 2, .most = 10, .work = 500},
                                       {.arrival = 3, .least = 1, .most = 10, .work = 300},
                                       {.arrival = 9, .least = 3, .most = 5, .work = 200}};
  for (const bool elastic : {false, true}) {
    ReplayOptions options{.nodes = 5, .pods_per_node = 2, .elastic = elastic};
    const auto result = Replay(jobs, options);
    ASSERT_TRUE(result.ok());
    EXPECT_NEAR(result->utilisation * result->makespan * 10, 1000, 0.5) << elastic;
  }
}

TEST(Replay, RefusesAJobThatCouldNeverBegin) {
  const std::vector<ReplayJob> jobs = {{.least = 1, .most = 9, .work = 1}};
  EXPECT_EQ(Message(Replay(jobs, Instant(4, false)).status()),
            "job 1 needs 9 pods to begin where it cannot be scaled, and the cluster has places for 4");
  EXPECT_TRUE(Replay(jobs, Instant(4, true)).ok());
}

TEST(ParseReplayJobs, ReadsOneJobALine) {
  const auto jobs =
      ParseReplayJobs("arrival,min,max,work\n# a comment\n\n0,2,60,19000\r\n 10 , 2 , 60 , 1.5\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2);
  EXPECT_EQ((*jobs)[0], ReplayJob({.arrival = 0, .least = 2, .most = 60, .work = 19000}));
  EXPECT_EQ((*jobs)[1], ReplayJob({.arrival = 10, .least = 2, .most = 60, .work = 1.5}));
}

TEST(ParseReplayJobs, SaysWhichLineIsWrong) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"", "there is no job in it"},
      {"0,1,2\n", "line 1: a job has four fields: arrival, min, max, work"},
      {"0,1,2,3\nx,1,2,3\n", "line 2: the arrival is no number of seconds up to 1e9"},
      {"0,0,2,3", "line 1: the min is no number of pods"},
      {"0,3,2,3", "line 1: the max is no number of pods, or is below the min"},
      {"0,1,2,nan", "line 1: the work is no number of seconds up to 1e9"},
  };
  for (const auto& [csv, message] : rows) EXPECT_EQ(Message(ParseReplayJobs(csv).status()), message) << csv;
}

}  // namespace
}  // namespace trainyard::job::scale
