#include "master/pods/lost_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::master {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Looks each second, as the master does.
class Looks {
 public:
  std::vector<std::string> Next(const std::vector<PodSight>& pods, absl::Duration after = absl::Seconds(1)) {
    now_ = now_ + after;
    return streams_.Look(pods, now_);
  }
  // Those named within a time, in order.
  std::vector<std::string> For(absl::Duration time, const std::vector<PodSight>& pods) {
    std::vector<std::string> named;
    for (absl::Duration passed; passed < time; passed += absl::Seconds(1)) {
      for (std::string& uid : Next(pods)) named.push_back(std::move(uid));
    }
    return named;
  }

 private:
  LostStreams streams_;
  SteadyTime now_;
};

const PodSight kHere{.uid = "w0", .incarnation = 7};
const PodSight kAway{.uid = "w0"};

TEST(LostStreams, NamesAPodOnceForEachTimeOfPatienceThatItsStreamIsGone) {
  Looks looks;
  EXPECT_THAT(looks.For(absl::Hours(1), {kHere}), IsEmpty());
  EXPECT_THAT(looks.For(kStreamPatience - absl::Seconds(1), {kAway}), IsEmpty());
  EXPECT_THAT(looks.Next({kAway}), ElementsAre("w0"));
  EXPECT_THAT(looks.For(kStreamPatience, {kAway}), ElementsAre("w0"));
}

TEST(LostStreams, NamesAPodWhoseStreamWasThereWhenItWasFirstSeen) {
  Looks looks;
  looks.Next({});
  looks.Next({kHere});
  EXPECT_THAT(looks.For(kStreamPatience, {kAway}), ElementsAre("w0"));
}

TEST(LostStreams, SparesAWorkerThatComesBackInTime) {
  Looks looks;
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(looks.Next({kHere}), IsEmpty());
    EXPECT_THAT(looks.For(kStreamPatience - absl::Seconds(1), {kAway}), IsEmpty());
  }
}

TEST(LostStreams, SparesAWorkerThatHasNotComeYetHoweverSlowItIs) {
  Looks looks;
  EXPECT_THAT(looks.For(absl::Hours(1), {kAway}), IsEmpty());
}

TEST(LostStreams, NamesAPserverThatDoesNotCome) {
  Looks looks;
  const PodSight pserver{.uid = "p0", .pserver = true};
  looks.Next({pserver});
  EXPECT_THAT(looks.For(kPserverPatience - absl::Seconds(1), {pserver}), IsEmpty());
  EXPECT_THAT(looks.Next({pserver}), ElementsAre("p0"));
}

TEST(LostStreams, TakesAStreamOfThePodBeforeForNoStreamOfItsOwn) {
  Looks looks;
  looks.Next({kHere});
  const PodSight fresh{.uid = "w0-again", .incarnation = 7};  // whose name the old process has
  looks.Next({fresh});
  EXPECT_THAT(looks.For(absl::Hours(1), {{.uid = "w0-again"}}), IsEmpty());
  looks.Next({{.uid = "w0-again", .incarnation = 8}});
  EXPECT_THAT(looks.For(kStreamPatience, {{.uid = "w0-again"}}), ElementsAre("w0-again"));
}

TEST(LostStreams, DoesNotCountTheTimeInWhichTheMasterWasStoppedItself) {
  Looks looks;
  looks.Next({kHere});
  EXPECT_THAT(looks.Next({kAway}, absl::Hours(1)), IsEmpty());
  EXPECT_THAT(looks.Next({kAway}, absl::Hours(1)), IsEmpty());
  EXPECT_THAT(looks.Next({kHere}), IsEmpty());
}

}  // namespace
}  // namespace trainyard::master
