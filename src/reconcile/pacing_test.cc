#include "reconcile/pacing.h"

#include "base/clock.h"
#include "base/text.h"
#include "gtest/gtest.h"

namespace trainyard::reconcile {
namespace {

const kube::ObjectKey kJob{"default", "mnist"};
const kube::ObjectKey kOther{"default", "other"};

class PacingTest : public testing::Test {
 protected:
  absl::Time Now() const { return clock_.Now(); }
  absl::Duration Hold(Urgency urgency) { return pacing_.Hold(kJob, urgency, Now()); }
  // Waits for the job's double check; how long that took.
  absl::Duration AwaitRound(const kube::ObjectKey& job = kJob) {
    const absl::Duration wait = pacing_.NextRound(job, Now(), false);
    clock_.Advance(wait);
    return wait;
  }

  ManualClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  Pacing pacing_{{.first_period = absl::Seconds(10), .longest_period = absl::Seconds(40)}};
};

// ---- writes

TEST_F(PacingTest, HoldsProgressBackUntilASecondAfterTheLastWrite) {
  pacing_.NoteStored(kJob, Now());
  clock_.Advance(absl::Milliseconds(300));
  EXPECT_EQ(Hold(Urgency::kProgress), absl::Milliseconds(700));
  clock_.Advance(absl::Milliseconds(700));
  EXPECT_EQ(Hold(Urgency::kProgress), absl::ZeroDuration());
}

TEST_F(PacingTest, HoldsTheFirstProgressOfAJobThatWasNeverStored) {
  EXPECT_EQ(Hold(Urgency::kProgress), absl::Seconds(1));
  clock_.Advance(absl::Milliseconds(400));
  EXPECT_EQ(Hold(Urgency::kProgress), absl::Milliseconds(600)) << "asking again does not make it wait longer";
}

TEST_F(PacingTest, NeverHoldsWhatIsUrgent) {
  pacing_.NoteStored(kJob, Now());
  EXPECT_EQ(Hold(Urgency::kNow), absl::ZeroDuration());
  EXPECT_EQ(Hold(Urgency::kGoodNews), absl::ZeroDuration());
  pacing_.BeginCreating();
  EXPECT_EQ(Hold(Urgency::kNow), absl::ZeroDuration());
}

TEST_F(PacingTest, HoldsGoodNewsAWhileOnlyWhileObjectsAreCreated) {
  pacing_.NoteStored(kJob, Now());
  pacing_.BeginCreating();
  pacing_.BeginCreating();
  pacing_.EndCreating();
  EXPECT_EQ(Hold(Urgency::kGoodNews), absl::Milliseconds(50)) << "one pass still creates";
  clock_.Advance(absl::Milliseconds(1980));
  EXPECT_EQ(Hold(Urgency::kGoodNews), absl::Milliseconds(20));
  clock_.Advance(absl::Milliseconds(20));
  EXPECT_LE(Hold(Urgency::kGoodNews), absl::ZeroDuration()) << "but not for ever";
  pacing_.NoteStored(kJob, Now());
  pacing_.EndCreating();
  EXPECT_EQ(Hold(Urgency::kGoodNews), absl::ZeroDuration());
}

// ---- double checks

TEST_F(PacingTest, ChecksAQuietJobEachTimeAfterTwiceAsLongUpToTheLongestPeriod) {
  const absl::Duration first = AwaitRound();
  EXPECT_GE(first, absl::Seconds(8));
  EXPECT_LE(first, absl::Seconds(10));
  for (const double longer : {2.0, 4.0, 4.0}) {
    EXPECT_NEAR(absl::FDivDuration(AwaitRound(), first), longer, 1e-6);
  }
}

TEST_F(PacingTest, LeavesARoundAsItIsUntilItIsDue) {
  const absl::Duration first = pacing_.NextRound(kJob, Now(), false);
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(pacing_.NextRound(kJob, Now(), false), first - absl::Seconds(3));
}

TEST_F(PacingTest, BeginsWithTheFirstPeriodAgainWhenAJobChangesOrIsAnother) {
  const absl::Duration first = AwaitRound();
  AwaitRound();
  EXPECT_EQ(pacing_.NextRound(kJob, Now(), true), first);
  AwaitRound();
  pacing_.Forget(kJob);
  EXPECT_EQ(AwaitRound(), first);
}

TEST_F(PacingTest, RecordsOnlyADoubleCheckThatIsDue) {
  EXPECT_FALSE(pacing_.TakeRecord(kJob, Now())) << "nothing is known of it";
  const absl::Duration wait = pacing_.NextRound(kJob, Now(), false);
  EXPECT_FALSE(pacing_.TakeRecord(kJob, Now()));
  clock_.Advance(wait);
  EXPECT_TRUE(pacing_.TakeRecord(kJob, Now()));
  EXPECT_FALSE(pacing_.TakeRecord(kOther, Now()));
}

TEST_F(PacingTest, RecordsFiveDoubleChecksASecondAtMost) {
  const auto job = [](int number) { return kube::ObjectKey{"default", StrCat("job-", number)}; };
  for (int i = 0; i < 20; ++i) pacing_.NextRound(job(i), Now(), false);
  clock_.Advance(absl::Seconds(10));
  const auto record = [&] {
    int count = 0;
    for (int i = 0; i < 20; ++i) count += pacing_.TakeRecord(job(i), Now()) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(record(), 5);
  EXPECT_EQ(record(), 0);
  clock_.Advance(absl::Milliseconds(400));
  EXPECT_EQ(record(), 2);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(record(), 5);
}

}  // namespace
}  // namespace trainyard::reconcile
