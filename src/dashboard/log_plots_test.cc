#include "dashboard/log_plots.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace trainyard::dashboard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

view::JobPage Page(std::vector<std::string> members, view::Kind kind = view::Kind::kTfJob) {
  view::JobPage page{.job = {.kind = kind, .ns = "d", .name = "m", .uid = "u"}};
  for (std::string& name : members)
    page.members.push_back({.name = name, .pod = "m-" + name, .uid = "u-" + name, .container = "c"});
  return page;
}

TEST(ChooseTellers, TakesTheFirstOfEachRoleAndTheChiefFirst) {
  EXPECT_THAT(ChooseTellers(Page({"evaluator-0", "ps-0", "worker-0", "worker-1", "chief-0"})),
              ElementsAre("chief-0", "worker-0", "evaluator-0"));
  EXPECT_THAT(ChooseTellers(Page({"master", "pserver-0", "worker-0"}, view::Kind::kElastic)),
              ElementsAre("master"));
  EXPECT_THAT(ChooseTellers(Page({"a-0", "b-0", "c-0", "d-0", "e-0"})), SizeIs(4));
  view::JobPage gone = Page({"worker-1"});
  gone.history = {{.pod = "x", .uid = "y", .member = "worker-0"}};
  EXPECT_THAT(ChooseTellers(gone), ElementsAre("worker-0")) << "what it wrote is kept";
}

// Logs that a test writes, by pod, as the server gives them.
class LogPlotsTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.SetIntercept(
        [this](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
          for (const auto& [pod, log] : logs_) {
            if (request.target.find(StrCat("/pods/", pod, "/log?")) == std::string::npos) continue;
            asked_.push_back(request.target);
            if (request.target.find("previous=true") != std::string::npos)
              return absl::StatusOr<kube::Response>(kube::Response{.body = previous_});
            return absl::StatusOr<kube::Response>(kube::Response{.body = log});
          }
          return std::nullopt;
        });
  }

  ManualClock clock_;
  kube::FakeServer server_;
  std::map<std::string, std::string> logs_;
  std::string previous_;
  std::vector<std::string> asked_;
  LogPlots plots_{server_, clock_};
};

TEST_F(LogPlotsTest, PlotsWhatMembersWriteWithItsTimes) {
  logs_["m-worker-0"] =
      "1970-01-01T00:00:10.500Z step 1 loss 0.5\n1970-01-01T00:00:11Z hello\n"
      "1970-01-01T00:00:12Z step 2 loss 0.25 acc=0.5\nno time loss 7\n";
  logs_["m-evaluator-0"] = "1970-01-01T00:00:11Z loss 9 auc 0.75\n";
  const Plots plots = plots_.Read(Page({"evaluator-0", "worker-0", "worker-1"}));
  ASSERT_THAT(plots, SizeIs(3));
  EXPECT_THAT(plots.at("loss").points(), ElementsAre(Pair(10.5, 0.5), Pair(12, 0.25)))
      << "the first member's, where several tell it";
  EXPECT_THAT(plots.at("acc").points(), ElementsAre(Pair(12, 0.5)));
  EXPECT_THAT(plots.at("auc").points(), ElementsAre(Pair(11, 0.75)));
  EXPECT_THAT(asked_, SizeIs(2)) << "worker-1 is not asked";
}

TEST_F(LogPlotsTest, ReadsOnlyWhatIsNewAndNotTooOften) {
  logs_["m-worker-0"] = "1970-01-01T00:00:10.25Z loss 3\n";
  const view::JobPage page = Page({"worker-0"});
  plots_.Read(page);
  plots_.Read(page);
  EXPECT_THAT(asked_, ElementsAre(HasSubstr("tailLines=5000")));
  clock_.Advance(absl::Seconds(1));
  logs_["m-worker-0"] += "1970-01-01T00:00:10.75Z loss 2\n";  // the server cuts at whole seconds
  const Plots plots = plots_.Read(page);
  EXPECT_THAT(asked_.back(), HasSubstr("sinceTime=1970-01-01T00%3A00%3A10Z"));
  EXPECT_THAT(plots.at("loss").points(), ElementsAre(Pair(10.25, 3), Pair(10.75, 2)));
}

TEST_F(LogPlotsTest, GoesOnThroughRestarts) {
  previous_ = "1970-01-01T00:00:01Z loss 4\n";
  logs_["m-worker-0"] = "1970-01-01T00:00:05Z loss 3\n";
  view::JobPage page = Page({"worker-0"});
  page.members[0].has_previous = true;
  page.history = {{.pod = "gone",
                   .uid = "g",
                   .member = "worker-0",
                   .log = "1970-01-01T00:00:00.5Z INFO  loss=5 step=1\nloss 8\n"}};
  EXPECT_THAT(plots_.Read(page).at("loss").points(), ElementsAre(Pair(0.5, 5), Pair(1, 4), Pair(5, 3)))
      << "of a pod that is gone, lines that have a time of their own";
}

TEST_F(LogPlotsTest, HasLimits) {
  std::string log;
  for (int i = 0; i < 20; ++i) log += StrCat("1970-01-01T00:00:", 10 + i, "Z loss_", i, " 1\n");
  logs_["m-worker-0"] = log;
  EXPECT_THAT(plots_.Read(Page({"worker-0"})), SizeIs(12));
  for (int i = 0; i < 50; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    view::JobPage other = Page({"worker-0"});
    other.job.uid = StrCat("other-", i);
    plots_.Read(other);
  }
  asked_.clear();
  plots_.Read(Page({"worker-0"}));
  EXPECT_THAT(asked_, SizeIs(1)) << "a job that nobody has looked at for long is forgotten";
}

TEST_F(LogPlotsTest, HasNothingOfLogsThatCannotBeRead) {
  EXPECT_THAT(plots_.Read(Page({"worker-0"})), IsEmpty());
  EXPECT_THAT(plots_.Read(Page({})), IsEmpty());
}

}  // namespace
}  // namespace trainyard::dashboard
