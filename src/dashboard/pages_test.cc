#include "dashboard/pages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::dashboard {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TEST(Series, KeepsItsFirstAndLastPointWhateverComes) {
  Series series(10);
  for (int i = 0; i < 1000; ++i) series.Add(i, i * 2);
  EXPECT_LE(series.points().size(), 11);
  EXPECT_GE(series.points().size(), 5);
  EXPECT_THAT(series.points().front(), Pair(0, 0));
  EXPECT_EQ(series.points().back().second, 1998) << "the last value, though the gap is not over";
  for (std::size_t i = 1; i < series.points().size(); ++i)
    EXPECT_LT(series.points()[i - 1].first, series.points()[i].first);
}

TEST(Series, TakesOnlyChangesWhereThatIsAsked) {
  Series series;
  for (const double value : {1, 1, 2, 2, 2, 1})
    series.Add(static_cast<double>(series.points().size()), value, true);
  EXPECT_THAT(series.points(), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 1)));
}

TEST(JobPage, HasABarForEachPodAndSaysHowItEnded) {
  view::JobPage page{
      .job = {.kind = view::Kind::kTfJob, .ns = "default", .name = "mnist", .state = "Running"}};
  page.members = {
      {.name = "worker-0", .pod = "a", .uid = "1", .state = "Running", .runs = true, .created = kNow},
      {.name = "worker-1", .pod = "b", .uid = "2", .state = "Completed", .created = kNow, .since = kNow}};
  page.history = {
      {.pod = "c", .uid = "3", .member = "worker-0", .exit_code = 1, .ended = kNow, .log = "oh no\n"},
      {.pod = "d", .uid = "4", .member = "worker-0", .exit_code = 137, .signal = 9, .ended = kNow},
      {.pod = "e", .uid = "5", .member = "worker-0", .exit_code = 143, .signal = 15, .ended = kNow},
      {.pod = "b", .uid = "2", .member = "worker-1", .exit_code = 0, .ended = kNow}};
  SeenJob seen;
  seen.plots["loss"].Add(1, 0.5);
  const Document shown = JobPage(page, &seen, {{"a", {.processors = 0.5, .memory_bytes = 100}}}, kNow);
  std::vector<std::string> states;
  for (const Document& bar : *ArrayAt(shown, {"timeline"})) states.emplace_back(StringAt(bar, {"state"}));
  EXPECT_THAT(states, ElementsAre("failed", "failed", "deleted", "completed", "running"))
      << "a pod that is gone has one bar, though it is still listed";
  EXPECT_EQ(StringAt(ArrayAt(shown, {"timeline"})->front(), {"log"}), "oh no\n");
  EXPECT_EQ(ArrayAt(shown, {"members"})->front().at("cpu").get_double(), 0.5);
  EXPECT_EQ(Find((*ArrayAt(shown, {"members"}))[1], {"cpu"}), nullptr) << "what is not known is not told";
  EXPECT_THAT(*ArrayAt(shown, {"plots"}), SizeIs(1));
}

TEST(JobsPage, IsJsonWithTimesThatAreKnown) {
  Snapshot snapshot;
  auto seen = std::make_shared<SeenJob>();
  seen->job = {.kind = view::Kind::kElastic, .ns = "d", .name = "m", .created = kNow};
  snapshot.jobs.push_back(seen);
  const Document page = JobsPage(snapshot, "embedded", kNow);
  const Document& job = ArrayAt(page, {"jobs"})->front();
  EXPECT_EQ(StringAt(job, {"kind"}), "elastic");
  EXPECT_NE(Find(job, {"created"}), nullptr);
  EXPECT_EQ(Find(job, {"ended"}), nullptr);
  EXPECT_EQ(snapshot.Find(view::Kind::kElastic, "d", "m"), seen);
  EXPECT_EQ(snapshot.Find(view::Kind::kTfJob, "d", "m"), nullptr);
}

}  // namespace
}  // namespace trainyard::dashboard
