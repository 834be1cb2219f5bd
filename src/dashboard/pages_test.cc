#include "dashboard/pages.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::dashboard {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TEST(JobPage, HasABarForEachPodAndSaysHowItEnded) {
  view::JobPage page{
      .job = {.kind = view::Kind::kTfJob, .ns = "default", .name = "mnist", .shown = "Running"}};
  page.members = {
      {.name = "worker-0", .pod = "a", .uid = "1", .state = "Running", .runs = true, .created = kNow},
      {.name = "worker-1", .pod = "b", .uid = "2", .state = "Completed", .created = kNow, .since = kNow}};
  page.history = {
      {.pod = "c", .uid = "3", .member = "worker-0", .exit_code = 1, .ended = kNow, .log = "oh no\n"},
      {.pod = "d", .uid = "4", .member = "worker-0", .exit_code = 137, .signal = 9, .ended = kNow},
      {.pod = "e", .uid = "5", .member = "worker-0", .exit_code = 143, .signal = 15, .ended = kNow},
      {.pod = "b", .uid = "2", .member = "worker-1", .exit_code = 0, .ended = kNow}};
  const Document shown = JobPage(page, {.usage = {{"a", {.processors = 0.5, .memory_bytes = 100}}}}, kNow);
  std::vector<std::string> states;
  for (const Document& bar : *ArrayAt(shown, {"timeline"})) states.emplace_back(StringAt(bar, {"state"}));
  EXPECT_THAT(states, ElementsAre("failed", "failed", "deleted", "completed", "running"))
      << "a pod that is gone has one bar, though it is still listed";
  EXPECT_EQ(StringAt(ArrayAt(shown, {"timeline"})->front(), {"log"}), "oh no\n");
  EXPECT_EQ(ArrayAt(shown, {"members"})->front().at("cpu").get_double(), 0.5);
  EXPECT_EQ(Find((*ArrayAt(shown, {"members"}))[1], {"cpu"}), nullptr) << "what is not known is not told";
}

TEST(JobPage, EndsAPlotWithWhatTheJobTellsNow) {
  view::JobPage page{.job = {.kind = view::Kind::kElastic, .ns = "d", .name = "m", .shown = "Training"}};
  page.job.reported = job::ParseProgress(
      job::Reporter::kMaster, *ParseJson(R"({"loss":0.25,"metrics":{"accuracy_0":1,"note":"none"}})"));
  const double now = absl::ToDoubleSeconds(kNow - absl::UnixEpoch());
  Plots plots;
  plots["loss"].Add(now - 1, 0.5);
  const auto points = [&](const Document& shown) {
    std::map<std::string, Array> all;
    for (const Document& plot : *ArrayAt(shown, {"plots"}))
      all[std::string(StringAt(plot, {"name"}))] = *ArrayAt(plot, {"points"});
    return all;
  };
  const auto shown = points(JobPage(page, {.plots = plots}, kNow));
  EXPECT_THAT(shown, ElementsAre(Pair("accuracy_0", Array{Array{now, 1.0}}),
                                 Pair("loss", Array{Array{now - 1, 0.5}, Array{now, 0.25}})));
  page.job.over = true;
  EXPECT_THAT(points(JobPage(page, {.plots = plots}, kNow)),
              ElementsAre(Pair("loss", Array{Array{now - 1, 0.5}})))
      << "a job that is over learns nothing more";
}

TEST(NodesPage, CountsWhatRunsOnEachNode) {
  const auto node = [](std::string_view name) {
    return *kube::ParseNode(StrCat(R"({"metadata":{"name":")", name,
                                   R"("},"status":{"allocatable":{"cpu":"4","pods":"10"},"conditions":)"
                                   R"([{"type":"Ready","status":"True"}]}})"));
  };
  const auto pod = [](std::string_view name, std::string_view on, std::string_view phase) {
    return *kube::ParsePod(StrCat(
        R"({"metadata":{"name":")", name,
        R"(","namespace":"d","labels":{"tf_job_name":"mnist","tf-replica-type":"worker","tf-replica-index":"0"}},)"
        R"("spec":{"nodeName":")",
        on, R"(","containers":[{"name":"c","resources":{"requests":{"cpu":"1500m"}}}]},"status":{"phase":")",
        phase, R"("}})"));
  };
  const Document page = NodesPage({node("a"), node("b")},
                                  {pod("one", "a", "Running"), pod("two", "a", "Running"),
                                   pod("done", "a", "Succeeded"), pod("waits", "", "Pending")},
                                  kNow);
  const Array& nodes = *ArrayAt(page, {"nodes"});
  ASSERT_THAT(nodes, SizeIs(2));
  const auto used = [](const Document& of) {
    std::map<std::string, double> all;
    for (const Document& resource : *ArrayAt(of, {"resources"}))
      all[std::string(StringAt(resource, {"name"}))] = resource.at("used").get_double();
    return all;
  };
  EXPECT_THAT(used(nodes[0]), ElementsAre(Pair("cpu", 3), Pair("pods", 2)));
  EXPECT_THAT(used(nodes[1]), ElementsAre(Pair("cpu", 0), Pair("pods", 0)));
  ASSERT_THAT(*ArrayAt(nodes[0], {"pods"}), SizeIs(2));
  EXPECT_EQ(StringAt(ArrayAt(nodes[0], {"pods"})->front(), {"job", "name"}), "mnist");
  EXPECT_EQ(StringAt(ArrayAt(nodes[0], {"pods"})->front(), {"member"}), "worker-0");
}

TEST(EventsPage, HasTheNewestFirst) {
  const Document page =
      EventsPage({{.ns = "d", .event = {.time = kNow, .reason = "First"}},
                  {.ns = "d", .event = {.time = kNow, .warning = true, .reason = "Second"}}},
                 kNow);
  EXPECT_EQ(StringAt(ArrayAt(page, {"events"})->front(), {"reason"}), "Second");
  EXPECT_TRUE(ArrayAt(page, {"events"})->front().at("warning").get_bool());
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
