#include "kube/expectations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/pod.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ObjectKey kJob{"ns", "job"};
const ObjectKey kOther{"ns", "other"};
const ObjectKey kPod{"ns", "pod-0"};

class ExpectationsTest : public testing::Test {
 protected:
  bool CaughtUp(const ObjectKey& owner = kJob) { return expectations_.Check(owner).caught_up; }
  void See(std::string_view uid, std::string_view version, bool leaving = false) {
    expectations_.Seen({.object = kPod, .uid = uid, .version = version, .leaving = leaving});
  }

  ManualClock clock_;
  Expectations expectations_{clock_, absl::Minutes(5)};
};

TEST_F(ExpectationsTest, HoldUpAPassUntilACreationIsSeen) {
  EXPECT_TRUE(CaughtUp());
  expectations_.ExpectCreation(kJob, kPod);
  EXPECT_FALSE(CaughtUp());
  EXPECT_TRUE(CaughtUp(kOther)) << "but not that of others";
  expectations_.CreationDone(kJob, kPod, "u1", "10");
  EXPECT_FALSE(CaughtUp());
  See("u1", "10");
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, KnowACreationWhoseEventWasFasterThanItsAnswer) {
  expectations_.ExpectCreation(kJob, kPod);
  See("u1", "not a number");
  EXPECT_FALSE(CaughtUp()) << "it may have been another of the same name";
  expectations_.CreationDone(kJob, kPod, "u1", "not a number");
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, DoNotTakeTheFormerObjectOfTheSameNameForTheNewOne) {
  expectations_.ExpectCreation(kJob, kPod);
  See("old", "8", /*leaving=*/true);
  expectations_.CreationDone(kJob, kPod, "new", "10");
  See("old", "9", /*leaving=*/true);
  EXPECT_FALSE(CaughtUp());
  See("new", "10");
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, TakeACreationThatIsGoneAlreadyForSeen) {
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.CreationDone(kJob, kPod, "u1", "10");
  See("u1", "11", /*leaving=*/true);
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, EndWithACreationThatFailed) {
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.CreationFailed(kJob, kPod);
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, TakeAnObjectThatIsOnItsWayOutForDeleted) {
  expectations_.ExpectDeletion(kJob, kPod, "u1");
  See("u1", "10");
  EXPECT_FALSE(CaughtUp());
  See("u2", "11", /*leaving=*/true);
  EXPECT_FALSE(CaughtUp()) << "that was another";
  See("u1", "12", /*leaving=*/true);
  EXPECT_TRUE(CaughtUp());
  expectations_.ExpectDeletion(kJob, kPod, "u3");
  expectations_.DeletionFailed(kJob, kPod, "u3");
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, WaitForTheVersionThatAnUpdateMade) {
  expectations_.ExpectVersion(kJob, kJob, "100");
  expectations_.Seen({.object = kJob, .uid = "j", .version = "99"});
  EXPECT_FALSE(CaughtUp());
  expectations_.Seen({.object = kJob, .uid = "j", .version = "101"});
  EXPECT_TRUE(CaughtUp()) << "a later version has the earlier one in it";
  expectations_.ExpectVersion(kJob, kJob, "101");
  EXPECT_TRUE(CaughtUp()) << "it had been seen before the answer was";
  expectations_.ExpectVersion(kJob, kJob, "opaque");
  EXPECT_TRUE(CaughtUp()) << "nobody could say when that has been seen";
}

TEST_F(ExpectationsTest, AreMetByACacheThatHasSeenALaterVersion) {
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.CreationDone(kJob, kPod, "u1", "10");
  expectations_.ExpectVersion(kOther, kOther, "12");
  expectations_.SeenUpTo("11");
  EXPECT_TRUE(CaughtUp()) << "it was created and deleted while the watch was broken";
  EXPECT_FALSE(CaughtUp(kOther));
  expectations_.SeenUpTo("100");
  EXPECT_TRUE(CaughtUp(kOther));
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.CreationDone(kJob, kPod, "u2", "99");
  EXPECT_TRUE(CaughtUp());
}

TEST_F(ExpectationsTest, AreGivenUpInTimeAndSaySo) {
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.CreationDone(kJob, kPod, "u1", "10");
  clock_.Advance(absl::Minutes(2));
  expectations_.ExpectDeletion(kJob, {"ns", "pod-1"}, "u2");
  auto verdict = expectations_.Check(kJob);
  EXPECT_FALSE(verdict.caught_up);
  EXPECT_EQ(verdict.wait, absl::Minutes(3));
  EXPECT_THAT(verdict.given_up, IsEmpty());
  clock_.Advance(absl::Minutes(3));
  verdict = expectations_.Check(kJob);
  EXPECT_FALSE(verdict.caught_up);
  EXPECT_EQ(verdict.wait, absl::Minutes(2));
  EXPECT_THAT(verdict.given_up, ElementsAre("creation of ns/pod-0"));
  clock_.Advance(absl::Minutes(2));
  verdict = expectations_.Check(kJob);
  EXPECT_TRUE(verdict.caught_up);
  EXPECT_THAT(verdict.given_up, ElementsAre("deletion of ns/pod-1"));
  expectations_.CreationDone(kJob, kPod, "u1", "10");
  EXPECT_TRUE(CaughtUp()) << "an answer that comes too late changes nothing";
}

TEST_F(ExpectationsTest, AreForgottenWithTheirOwner) {
  expectations_.ExpectCreation(kJob, kPod);
  expectations_.ExpectCreation(kOther, kPod);
  expectations_.Forget(kJob);
  EXPECT_TRUE(CaughtUp());
  EXPECT_FALSE(CaughtUp(kOther));
}

TEST_F(ExpectationsTest, ReadWhatAnInformerTells) {
  auto pod = std::make_shared<CompactPod>();
  pod->meta.name = "pod-0";
  pod->meta.ns = SharedText("ns");
  pod->meta.uid = "u1";
  pod->meta.resource_version = "5";
  expectations_.ExpectDeletion(kJob, kPod, "u1");
  expectations_.Seen(Change<CompactPod>{nullptr, pod});
  EXPECT_FALSE(CaughtUp());
  auto leaving = std::make_shared<CompactPod>(*pod);
  leaving->meta.deletion_time = absl::UnixEpoch();
  expectations_.Seen(Change<CompactPod>{pod, leaving});
  EXPECT_TRUE(CaughtUp());
  expectations_.ExpectDeletion(kJob, kPod, "u1");
  expectations_.Seen(Change<CompactPod>{pod, nullptr});
  EXPECT_TRUE(CaughtUp());
}

TEST(Versions, AreComparedAsNumbers) {
  EXPECT_TRUE(IsVersionAtLeast("10", "9"));
  EXPECT_TRUE(IsVersionAtLeast("10", "10"));
  EXPECT_FALSE(IsVersionAtLeast("9", "10"));
  EXPECT_TRUE(IsVersionAtLeast("18446744073709551616", "18446744073709551615")) << "of any length";
  EXPECT_TRUE(IsVersionAtLeast("x", "x"));
  EXPECT_FALSE(IsVersionAtLeast("y", "x"));
  EXPECT_FALSE(IsVersionAtLeast("", "1"));
  EXPECT_FALSE(IsVersionAtLeast("1", ""));
}

}  // namespace
}  // namespace trainyard::kube
