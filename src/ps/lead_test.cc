#include "ps/lead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::ps {
namespace {

using graph::SyncMode;
using testing::ElementsAre;
using testing::HasSubstr;

// The first `count` of what a trainer has, as it would use them.
Share Used(const JoinAnswer& answer, std::int64_t count) {
  return {answer.share.pass, Front(answer.share.places, count)};
}

JoinAnswer Joined(Lead& lead, int trainer, std::int64_t incarnation = 1, std::int64_t records = 100) {
  EXPECT_TRUE(lead.Join(trainer, incarnation, records).ok());
  absl::StatusOr<JoinAnswer> answer = lead.NextShare(trainer, incarnation);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(JoinAnswer());
}

TEST(Lead, TakesNothingOfATrainerFromBeforeItJoinedAgain) {
  Lead lead(graph::SyncMode::kSync, 1, 1);
  ASSERT_TRUE(lead.Join(0, 1, 10, 1).ok());
  const absl::StatusOr<JoinAnswer> share = lead.NextShare(0, 1);
  ASSERT_TRUE(share.ok());
  ASSERT_TRUE(lead.Join(0, 1, 10, 2).ok());
  EXPECT_TRUE(absl::IsAborted(lead.Contribute(0, 1, 0, {0, {{0, 1}}}, 1)));
  EXPECT_TRUE(absl::IsAborted(lead.Join(0, 1, 10, 1).status()));
  EXPECT_TRUE(lead.Contribute(0, 1, 0, {0, {{0, 1}}}, 2).ok());
}

TEST(Lead, WaitsForEveryTrainerBeforeTheFirstStep) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(first, 10)).ok());
  EXPECT_EQ(lead.Complete(), std::nullopt);
  EXPECT_EQ(lead.WaitsFor(), "trainer-1 (has not joined yet)");
  const JoinAnswer second = Joined(lead, 1);
  EXPECT_EQ(lead.WaitsFor(), "trainer-1");
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(second, 10)).ok());
  EXPECT_THAT(*lead.Complete(), ElementsAre(0, 1));
}

TEST(Lead, DealsEachRecordOfAPassToOneTrainer) {
  Lead lead(SyncMode::kSync, 3, 2);
  EXPECT_THAT(Joined(lead, 0).share.places, ElementsAre(Range{0, 33}));
  EXPECT_THAT(Joined(lead, 1).share.places, ElementsAre(Range{33, 66}));
  EXPECT_THAT(Joined(lead, 2).share.places, ElementsAre(Range{66, 100}));
}

TEST(Lead, CountsRecordsAsUsedWhenTheStepIsCommitted) {
  Lead lead(SyncMode::kSync, 1, 1);
  const JoinAnswer answer = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 10)).ok());
  EXPECT_EQ(lead.Used(0), 0);
  lead.Commit();
  EXPECT_EQ(lead.Used(0), 10);
  EXPECT_EQ(lead.state().step, 1);
}

TEST(Lead, GoesOnWithoutATrainerWhoseLeaseHasEnded) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  Joined(lead, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(first, 10)).ok());
  EXPECT_EQ(lead.Complete(), std::nullopt);
  lead.Leave(1, 1);
  EXPECT_THAT(*lead.Complete(), ElementsAre(0));
}

TEST(Lead, CountsWhatATrainerContributedBeforeItDied) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  const JoinAnswer second = Joined(lead, 1);
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(second, 10)).ok());
  lead.Leave(1, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(first, 10)).ok());
  EXPECT_THAT(*lead.Complete(), ElementsAre(0, 1));
}

TEST(Lead, LetsANewIncarnationDoWhatTheOldOneHadNotContributed) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  const JoinAnswer before = Joined(lead, 1);
  const absl::StatusOr<JoinAnswer> again = lead.Join(1, 2, 100);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->step, 0);
  EXPECT_EQ(again->share.places, before.share.places);
  EXPECT_TRUE(absl::IsAborted(lead.Contribute(1, 1, 0, Used(before, 10))));
}

TEST(Lead, SendsANewIncarnationToTheNextStepIfTheOldOneHadContributed) {
  Lead lead(SyncMode::kSync, 2, 1);
  Joined(lead, 0);
  const JoinAnswer before = Joined(lead, 1);
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(before, 10)).ok());
  const absl::StatusOr<JoinAnswer> again = lead.Join(1, 2, 100);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->step, 1);
  EXPECT_THAT(again->share.places, ElementsAre(Range{60, 100}));
}

TEST(Lead, TakesAContributionThatIsToldTwiceAsOne) {
  Lead lead(SyncMode::kSync, 1, 1);
  const JoinAnswer answer = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 10)).ok());
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 10)).ok());
  lead.Commit();
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 10)).ok());
  EXPECT_EQ(lead.Complete(), std::nullopt);
  EXPECT_EQ(lead.Used(0), 10);
}

TEST(Lead, RefusesRecordsThatWereUsedBefore) {
  Lead lead(SyncMode::kSync, 1, 1);
  const JoinAnswer answer = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 10)).ok());
  lead.Commit();
  EXPECT_TRUE(absl::IsAborted(lead.Contribute(0, 1, 1, Used(answer, 10))));
}

TEST(Lead, RefusesATrainerThatSeesOtherData) {
  Lead lead(SyncMode::kSync, 2, 1);
  Joined(lead, 0);
  EXPECT_THAT(std::string(lead.Join(1, 1, 99).status().message()),
              HasSubstr("trainer-1 counts 99 records and the others 100"));
  EXPECT_THAT(std::string(lead.Join(1, 1, 0).status().message()), HasSubstr("finds no records"));
  EXPECT_TRUE(absl::IsNotFound(lead.Join(2, 1, 100).status()));
}

TEST(Lead, IsDoneWhenAllPassesAreUsed) {
  Lead lead(SyncMode::kSync, 1, 2);
  JoinAnswer answer = Joined(lead, 0);
  for (std::int64_t step = 0; step < 2; ++step) {
    EXPECT_FALSE(lead.Done());
    EXPECT_EQ(answer.share.pass, step);
    ASSERT_TRUE(lead.Contribute(0, 1, step, Used(answer, 100)).ok());
    lead.Commit();
    answer = *lead.NextShare(0, 1);
  }
  EXPECT_TRUE(answer.done);
  EXPECT_TRUE(lead.Done());
  EXPECT_EQ(lead.Used(0), 100);
  EXPECT_EQ(lead.Used(1), 100);
}

TEST(Lead, DealsWhatIsLeftAnewWhenTrainersComeAndGo) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  const JoinAnswer second = Joined(lead, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(first, 10)).ok());
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(second, 10)).ok());
  lead.Commit();
  lead.SetTrainers(4);
  std::int64_t left = 0;
  for (int i = 0; i < 4; ++i) left += SizeOf(Joined(lead, i, 2).share.places);
  EXPECT_EQ(left, 80);
  lead.SetTrainers(1);
  EXPECT_EQ(SizeOf(Joined(lead, 0, 3).share.places), 80);
  EXPECT_TRUE(absl::IsNotFound(lead.Join(1, 3, 100).status()));
  EXPECT_EQ(lead.Used(0), 20);
}

TEST(Lead, DoesNotWaitForTrainersThatAreNew) {
  Lead lead(SyncMode::kSync, 1, 1);
  Joined(lead, 0);
  lead.SetTrainers(2);
  const JoinAnswer answer = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 5)).ok());
  EXPECT_THAT(*lead.Complete(), ElementsAre(0));
}

TEST(Lead, WaitsForTrainersThatAreAliveWhenItBeginsAnew) {
  Lead before(SyncMode::kSync, 2, 1);
  Joined(before, 0);
  Joined(before, 1);
  absl::StatusOr<LeadState> state = Lead::Load(before.Save());
  ASSERT_TRUE(state.ok()) << state.status();
  Lead lead(*std::move(state));
  lead.Await(1);
  const JoinAnswer answer = Joined(lead, 0);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(answer, 5)).ok());
  EXPECT_EQ(lead.Complete(), std::nullopt);
  lead.Leave(1, 1);
  EXPECT_THAT(*lead.Complete(), ElementsAre(0));
}

TEST(Lead, ComesBackFromACheckpointWithItsAccount) {
  Lead before(SyncMode::kSync, 2, 3);
  const JoinAnswer first = Joined(before, 0);
  const JoinAnswer second = Joined(before, 1);
  ASSERT_TRUE(before.Contribute(0, 1, 0, Used(first, 7)).ok());
  ASSERT_TRUE(before.Contribute(1, 1, 0, Used(second, 7)).ok());
  before.Commit();
  absl::StatusOr<LeadState> state = Lead::Load(before.Save());
  ASSERT_TRUE(state.ok());
  Lead lead(*std::move(state));
  EXPECT_EQ(lead.state().step, 1);
  EXPECT_EQ(lead.Used(0), 14);
  EXPECT_EQ(Joined(lead, 0).share.places, (Ranges{{7, 50}}));
}

TEST(Lead, RefusesADamagedAccount) {
  EXPECT_TRUE(absl::IsDataLoss(Lead::Load("\xff\xff").status()));
  Lead lead(SyncMode::kSync, 2, 1);
  Joined(lead, 0);
  const std::string good = lead.Save();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x80);
    Lead::Load(bad).status().IgnoreError();  // whatever it is, it does not crash
  }
}

TEST(Lead, NeedsNoMoreTrainersForItsFirstStepThanItWasTold) {
  Lead lead(SyncMode::kSync, 3, 1, 1);
  const JoinAnswer answer = Joined(lead, 1);
  EXPECT_EQ(lead.WaitsFor(), "trainer-1");
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(answer, 5)).ok());
  EXPECT_THAT(*lead.Complete(), ElementsAre(1));
}

// Does all that the trainer has, in one step each, until it has nothing.
void DoAll(Lead& lead, int trainer, std::int64_t incarnation = 1) {
  for (;;) {
    const absl::StatusOr<JoinAnswer> answer = lead.NextShare(trainer, incarnation);
    ASSERT_TRUE(answer.ok()) << answer.status();
    if (answer->done) return;
    ASSERT_TRUE(lead.Contribute(trainer, incarnation, lead.state().step, answer->share).ok());
    ASSERT_TRUE(lead.Complete());
    lead.Commit();
  }
}

TEST(Lead, LetsTheOthersDoWhatOneThatIsGoneHadLeft) {
  Lead lead(SyncMode::kSync, 2, 3);
  Joined(lead, 0);
  Joined(lead, 1);
  lead.Leave(1, 1);
  DoAll(lead, 0);
  EXPECT_TRUE(lead.Done());
  for (std::int64_t pass = 0; pass < 3; ++pass) EXPECT_EQ(lead.Used(pass), 100);
}

TEST(Lead, KeepsWhatATrainerHadLeftWhileTheOthersHaveSomethingToDo) {
  Lead lead(SyncMode::kSync, 2, 1);
  const JoinAnswer first = Joined(lead, 0);
  const JoinAnswer second = Joined(lead, 1);
  lead.Leave(1, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, Used(first, 10)).ok());
  lead.Commit();
  ASSERT_TRUE(lead.Join(1, 2, 100).ok());
  EXPECT_EQ(lead.NextShare(1, 2)->share, second.share);
}

TEST(Lead, DealsNoPassToOneThatIsGone) {
  Lead lead(SyncMode::kSync, 2, 2);
  const JoinAnswer first = Joined(lead, 0);
  Joined(lead, 1);
  lead.Leave(1, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, first.share).ok());
  lead.Commit();
  EXPECT_EQ(lead.NextShare(0, 1)->share, (Share{1, {{0, 100}}}));
}

TEST(Lead, RousesThoseThatAreDoneWhenAnotherLeaves) {
  Lead lead(SyncMode::kSync, 3, 1);
  for (int i = 0; i < 3; ++i) Joined(lead, i);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(lead.Contribute(i, 1, 0, lead.NextShare(i, 1)->share).ok());
  const Share third = lead.NextShare(2, 1)->share;
  ASSERT_TRUE(lead.Contribute(2, 1, 0, {0, Front(third.places, 10)}).ok());
  lead.Commit();
  EXPECT_TRUE(lead.NextShare(0, 1)->done);
  EXPECT_TRUE(lead.NextShare(1, 1)->done);
  EXPECT_THAT(lead.Rouse(), ElementsAre());
  lead.Leave(2, 1);
  EXPECT_THAT(lead.Rouse(), ElementsAre(0, 1));
  // They stand at a step that is over by now.
  EXPECT_TRUE(absl::IsAborted(lead.NextShare(0, 1).status()));
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<JoinAnswer> again = lead.Join(i, 1, 100);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->step, 1);
    EXPECT_EQ(SizeOf(again->share.places), 12);
    EXPECT_EQ(lead.Complete(), std::nullopt);
    ASSERT_TRUE(lead.Contribute(i, 1, 1, again->share).ok());
  }
  EXPECT_THAT(*lead.Complete(), ElementsAre(0, 1));
  lead.Commit();
  EXPECT_TRUE(lead.Done());
}

TEST(Lead, DoesNotTakeWhatOneThatIsGoneHadContributed) {
  Lead lead(SyncMode::kSync, 2, 1);
  Joined(lead, 0);
  const JoinAnswer second = Joined(lead, 1);
  ASSERT_TRUE(lead.Contribute(1, 1, 0, Used(second, 20)).ok());
  lead.Leave(1, 1);
  ASSERT_TRUE(lead.Contribute(0, 1, 0, lead.NextShare(0, 1)->share).ok());
  EXPECT_EQ(lead.NextShare(0, 1)->share, (Share{0, {{70, 100}}}));
  lead.Commit();
  DoAll(lead, 0);
  EXPECT_TRUE(lead.Done());
}

TEST(Lead, RefusesAnAccountInWhichTwoHaveARecord) {
  Lead lead(SyncMode::kSync, 2, 1);
  Joined(lead, 0);
  LeadState state = *Lead::Load(lead.Save());
  state.seats[1].left[0] = {{40, 60}};
  EXPECT_TRUE(absl::IsDataLoss(Lead::Load(Lead(state).Save()).status()));
}

TEST(Lead, WithoutStepsGivesANewTrainerNoStepThatAnOldOneOfItsNameHad) {
  Lead lead(SyncMode::kAsync, 2, 1);
  Joined(lead, 0);
  JoinAnswer second = Joined(lead, 1);
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(lead.Contribute(1, 1, step, Used(second, 5)).ok());
    second = *lead.NextShare(1, 1);
  }
  lead.SetTrainers(1);
  lead.SetTrainers(2);
  EXPECT_EQ(lead.Join(1, 2, 100)->step, 3);
}

TEST(Lead, WithoutStepsCountsEachTrainerByItself) {
  Lead lead(SyncMode::kAsync, 2, 1);
  JoinAnswer first = Joined(lead, 0);
  for (std::int64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(lead.Contribute(0, 1, step, Used(first, 10)).ok());
    first = *lead.NextShare(0, 1);
  }
  EXPECT_TRUE(first.done);
  EXPECT_EQ(lead.Used(0), 50);
  EXPECT_FALSE(lead.Done());
  const JoinAnswer second = Joined(lead, 1);
  EXPECT_EQ(second.step, 0);
  EXPECT_EQ(SizeOf(second.share.places), 50);
}

}  // namespace
}  // namespace trainyard::ps
