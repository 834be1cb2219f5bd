#include "kv/etcd/etcd_server_watch.h"

#include <atomic>

#include <google/protobuf/text_format.h>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class WatchSessionTest : public testing::Test {
 protected:
  void Ask(const std::string& text) {
    etcdserverpb::WatchRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    session_->Handle(request);
  }
  Revision Put(std::string_view key, std::string_view value) { return store_->Put(key, value).value(); }

  static std::string Show(const etcdserverpb::WatchResponse& response) {
    std::string text = StrCat(response.watch_id(), "@", response.header().revision());
    if (response.created()) text += " created";
    if (response.canceled()) text += " canceled";
    if (response.compact_revision() != 0) StrAppend(text, " compact=", response.compact_revision());
    if (!response.cancel_reason().empty()) StrAppend(text, " (", response.cancel_reason(), ")");
    for (const auto& event : response.events()) {
      const bool put = event.type() == etcdserverpb::Event::PUT;
      StrAppend(text, put ? " +" : " -", event.kv().key(), put ? StrCat("=", event.kv().value()) : "");
      if (event.has_prev_kv()) StrAppend(text, "<", event.prev_kv().value());
    }
    return text;
  }
  // All that there is to say now.
  std::vector<std::string> Answers() {
    std::vector<std::string> answers;
    while (auto next = session_->Next()) {
      EXPECT_TRUE(next->ok()) << next->status();
      answers.push_back(Show(**next));
    }
    return answers;
  }
  void NewSession(WatchSession::Progress progress) {
    session_ = std::make_unique<WatchSession>(calls_, progress, [this] { ++wakes_; });
  }

  ManualClock clock_;
  std::unique_ptr<LocalStore> store_ = NewMemoryStore(clock_);  // an empty store is at revision 1
  Workers workers_{1};
  EtcdCalls calls_{*store_, workers_};
  std::atomic<int> wakes_ = 0;
  std::unique_ptr<WatchSession> session_ =
      std::make_unique<WatchSession>(calls_, WatchSession::Progress::kAsAsked, [this] { ++wakes_; });
};

TEST_F(WatchSessionTest, HasManyWatchesAndNumbersThem) {
  Ask("create_request { key: 'a' }");
  Ask("create_request { key: 'a' range_end: 'c' watch_id: 7 prev_kv: true }");
  Ask("create_request { key: 'b' }");
  EXPECT_THAT(Answers(), ElementsAre("0@1 created", "7@1 created", "1@1 created"));
  Put("a", "1");
  Put("b", "2");
  EXPECT_GE(wakes_, 1);
  EXPECT_THAT(Answers(), UnorderedElementsAre("0@2 +a=1", "7@3 +a=1 +b=2", "1@3 +b=2"));
  ASSERT_TRUE(store_->Delete(KeyRange::Key("b")).ok());
  EXPECT_THAT(Answers(), UnorderedElementsAre("7@4 -b<2", "1@4 -b"));
}

TEST_F(WatchSessionTest, BeginsBehindTheRevisionThatItIsToldOrAtTheOneThatItAsksFor) {
  Put("a", "1");
  Put("a", "2");
  Ask("create_request { key: 'a' start_revision: 2 prev_kv: true }");
  Ask("create_request { key: 'a' }");
  Put("a", "3");
  EXPECT_THAT(Answers(),
              ElementsAre("0@3 created", "1@3 created", "0@3 +a=1 +a=2<1", "1@4 +a=3", "0@4 +a=3<2"));
}

TEST_F(WatchSessionTest, TakesAnEmptyKeyForTheFirstAndAZeroForNoEnd) {
  etcdserverpb::WatchRequest all;
  all.mutable_create_request()->set_range_end(std::string(1, '\0'));
  session_->Handle(all);
  Put("x", "1");
  EXPECT_THAT(Answers(), ElementsAre("0@1 created", "0@2 +x=1"));
}

TEST_F(WatchSessionTest, RefusesAnEmptyRangeAndAnIdThatIsTaken) {
  Ask("create_request { key: 'b' range_end: 'a' }");
  Ask("create_request { key: 'b' watch_id: 3 }");
  Ask("create_request { key: 'b' watch_id: 3 }");
  EXPECT_THAT(Answers(),
              ElementsAre("-1@1 created canceled (mvcc: watcher range is empty)", "3@1 created",
                          "-1@1 created canceled (mvcc: duplicate watch ID provided on the WatchStream)"));
}

TEST_F(WatchSessionTest, RefusesMoreWatchesThanOneClientMayHave) {
  for (std::size_t i = 0; i < WatchSession::kMaxWatches; ++i) {
    Ask("create_request { key: 'a' }");
    if (session_->Full()) Answers();
  }
  Answers();
  Ask("create_request { key: 'a' }");
  EXPECT_THAT(Answers(), ElementsAre("-1@1 created canceled (etcdserver: too many requests)"));
}

TEST_F(WatchSessionTest, SaysNothingMoreOfAWatchThatWasCancelled) {
  Ask("create_request { key: 'a' }");
  Answers();
  Put("a", "1");
  Ask("cancel_request { watch_id: 0 }");
  Ask("cancel_request { watch_id: 5 }");
  EXPECT_THAT(Answers(), ElementsAre("0@2 canceled"));
  Put("a", "2");
  EXPECT_THAT(Answers(), IsEmpty());
}

TEST_F(WatchSessionTest, EndsAWatchWhoseHistoryIsCompacted) {
  for (int i = 0; i < 20; ++i) Put("a", "x");
  ASSERT_TRUE(store_->Compact(13).ok());
  Ask("create_request { key: 'a' start_revision: 12 }");
  Ask("create_request { key: 'a' start_revision: -4 }");
  Ask("create_request { key: 'b' start_revision: 13 }");
  EXPECT_THAT(Answers(), ElementsAre("0@21 created", "1@21 created", "2@21 created",
                                     "0@0 canceled compact=13", "1@0 canceled compact=13"));
}

TEST_F(WatchSessionTest, LeavesOutWhatIsFiltered) {
  Ask("create_request { key: 'a' filters: NOPUT }");
  Ask("create_request { key: 'a' filters: NODELETE }");
  Answers();
  Put("a", "1");
  ASSERT_TRUE(store_->Delete(KeyRange::Key("a")).ok());
  EXPECT_THAT(Answers(), UnorderedElementsAre("0@3 -a", "1@3 +a=1"));
}

TEST_F(WatchSessionTest, TellsProgressToWhoAskedForIt) {
  Ask("create_request { key: 'a' progress_notify: true }");
  Ask("create_request { key: 'a' }");
  Answers();
  Put("elsewhere", "1");
  clock_.Advance(absl::Minutes(1));
  store_->Tick();
  EXPECT_THAT(Answers(), ElementsAre("0@2"));
}

TEST_F(WatchSessionTest, TellsProgressToEverybodyWhereThatShowsWhoIsStillThere) {
  NewSession(WatchSession::Progress::kAlways);
  Ask("create_request { key: 'a' }");
  Answers();
  clock_.Advance(absl::Minutes(1));
  store_->Tick();
  EXPECT_THAT(Answers(), ElementsAre("0@1"));
}

TEST_F(WatchSessionTest, AnswersForProgressWhenEveryWatchHasComeSoFar) {
  Ask("create_request { key: 'a' }");
  Ask("create_request { key: 'b' }");
  Answers();
  Put("a", "1");
  Ask("progress_request {}");
  EXPECT_THAT(Answers(), ElementsAre("0@2 +a=1")) << "the store has not said yet that b has no event";
  clock_.Advance(absl::Minutes(1));
  store_->Tick();  // for b
  EXPECT_THAT(Answers(), ElementsAre("-1@2"));
}

TEST_F(WatchSessionTest, CutsLongHistoriesBetweenRevisions) {
  const std::string half(kMaxRequestBytes / 2, 'x');
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(store_
                    ->Txn({.then = {PutOp{"a", half.substr(0, half.size() / 2)},
                                    PutOp{"b", half.substr(0, half.size() / 4)}}})
                    .ok());
  }
  Ask("create_request { key: 'a' range_end: 'c' start_revision: 1 }");
  std::vector<std::int64_t> revisions;
  int events = 0;
  while (const auto next = session_->Next()) {
    const etcdserverpb::WatchResponse& response = **next;
    if (response.created()) continue;
    EXPECT_LE(response.ByteSizeLong(), 2 * kMaxRequestBytes);
    EXPECT_EQ(response.events_size() % 2, 0) << "a revision was cut in two";
    EXPECT_EQ(response.header().revision(), response.events().rbegin()->kv().mod_revision());
    revisions.push_back(response.header().revision());
    events += response.events_size();
  }
  EXPECT_EQ(events, 12);
  EXPECT_GT(revisions.size(), 1u);
  EXPECT_TRUE(std::ranges::is_sorted(revisions));
}

TEST_F(WatchSessionTest, TakesTurnsBetweenWatches) {
  const std::string large(kMaxRequestBytes / 2, 'x');
  for (int i = 0; i < 4; ++i) Put("a", large);
  Put("b", "1");
  Ask("create_request { key: 'a' start_revision: 1 }");
  Ask("create_request { key: 'b' start_revision: 1 }");
  std::vector<std::int64_t> order;
  while (const auto next = session_->Next()) {
    if (!(*next)->created()) order.push_back((*next)->watch_id());
  }
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(order[1], 1) << "one with much to say does not hold up the other";
}

TEST_F(WatchSessionTest, GoesOnFromWhereItWasAfterItWasParked) {
  Ask("create_request { key: 'a' range_end: 'c' }");
  Ask("create_request { key: 'b' }");
  Answers();
  Put("a", "1");
  session_->Park();
  Put("a", "2");
  Put("b", "3");
  session_->Park();
  EXPECT_THAT(Answers(), ElementsAre("0@4 +a=1 +a=2 +b=3", "1@4 +b=3"));
  Put("b", "4");
  EXPECT_THAT(Answers(), UnorderedElementsAre("0@5 +b=4", "1@5 +b=4"));
}

TEST_F(WatchSessionTest, LeavesNothingOutWhenItIsParkedInTheMiddleOfALongHistory) {
  constexpr int kPuts = 40;
  const std::string padding(kMaxRequestBytes / 2, 'x');
  for (int i = 0; i < kPuts; ++i) Put("a", StrCat(i, " ", padding));
  Ask("create_request { key: 'a' start_revision: 1 }");
  int next = 0;
  while (const auto answer = session_->Next()) {
    for (const auto& event : (*answer)->events()) {
      ASSERT_TRUE(event.kv().value().starts_with(StrCat(next, " ")));
      ++next;
    }
    session_->Park();
  }
  EXPECT_EQ(next, kPuts);
}

TEST_F(WatchSessionTest, SaysThatItsHistoryWasCompactedWhileItWasParked) {
  Ask("create_request { key: 'a' }");
  Answers();
  session_->Park();
  for (int i = 0; i < 5; ++i) Put("a", "x");
  ASSERT_TRUE(store_->Compact(5).ok());
  EXPECT_THAT(Answers(), ElementsAre("0@0 canceled compact=5"));
}

TEST_F(WatchSessionTest, PassesOverARequestThatAsksForNothing) {
  Ask("");
  EXPECT_THAT(Answers(), IsEmpty());
}

}  // namespace
}  // namespace trainyard::kv
