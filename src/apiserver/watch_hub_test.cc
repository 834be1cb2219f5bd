#include "apiserver/watch_hub.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "kv/memory_store.h"

namespace trainyard::apiserver {
namespace {

class HubListener final : public WatchSubscriber {
 public:
  bool OnEvent(const ObjectEventPtr& event) override {
    heard.push_back(StrCat(event->deleted() ? "-" : event->created() ? "+" : "~", event->key().name));
    return wants_more;
  }
  bool OnProgress(kv::Revision revision, SteadyTime) override {
    progress = revision;
    return wants_more;
  }
  void OnEnd(const absl::Status& why) override { end = why; }

  std::vector<std::string> heard;
  kv::Revision progress = 0;
  absl::Status end;
  bool wants_more = true;
};

class WatchHubTest : public testing::Test {
 protected:
  explicit WatchHubTest(std::size_t ring = 4) {
    hub_ = *WatchHub::Start({.store = store_.get(), .clock = &clock_, .thread = false, .ring_events = ring});
  }
  kv::Revision Put(std::string_view name) {
    return *store_->Put(StrCat("registry/core/pods/ns/", name), "{}");
  }
  std::shared_ptr<HubListener> Listen(std::string prefix, kv::Revision from) {
    auto listener = std::make_shared<HubListener>();
    hub_->Subscribe(std::move(prefix), from, listener);
    hub_->Pump();
    return listener;
  }

  ManualClock clock_;
  std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  std::unique_ptr<WatchHub> hub_;
};

TEST_F(WatchHubTest, TellsWhatHappensAfterTheVersionAskedFor) {
  const kv::Revision from = Put("before");
  const auto listener = Listen("registry/core/pods/", from);
  Put("a");
  Put("a");
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Key("registry/core/pods/ns/a")).ok());
  hub_->Pump();
  EXPECT_EQ(listener->heard, (std::vector<std::string>{"+a", "~a", "-a"}));
}

TEST_F(WatchHubTest, TellsFromTheRingWhatHappenedBeforeTheWatch) {
  const kv::Revision from = Put("a");
  Put("b");
  hub_->Pump();
  EXPECT_EQ(Listen("registry/core/pods/", from)->heard, std::vector<std::string>{"+b"});
}

TEST_F(WatchHubTest, ReadsTheStoresHistoryForWhatHasLeftTheRing) {
  const kv::Revision from = Put("a");
  for (const char* name : {"b", "c", "d", "e", "f", "g", "h"}) Put(name);
  hub_->Pump();
  const auto listener = Listen("registry/core/pods/", from);
  hub_->Pump();
  EXPECT_EQ(listener->heard, (std::vector<std::string>{"+b", "+c", "+d", "+e", "+f", "+g", "+h"}));
  Put("i");
  hub_->Pump();
  EXPECT_EQ(listener->heard.back(), "+i");
}

TEST_F(WatchHubTest, ToldOfAnIdlePrefixThatCaughtUpGoesLive) {
  const kv::Revision from = Put("a");
  for (const char* name : {"b", "c", "d", "e", "f", "g"}) Put(name);
  hub_->Pump();
  const auto listener = Listen("registry/core/nodes/", from);
  hub_->Pump();
  EXPECT_TRUE(listener->heard.empty());
  ASSERT_TRUE(store_->Put("registry/core/nodes/n1", "{}").ok());
  hub_->Pump();
  EXPECT_EQ(listener->heard, std::vector<std::string>{"+n1"});
}

TEST_F(WatchHubTest, SaysThatTheHistoryIsGone) {
  const kv::Revision from = Put("a");
  kv::Revision last = 0;
  for (const char* name : {"b", "b", "b", "b", "b", "b", "b", "b"}) last = Put(name);
  hub_->Pump();
  ASSERT_TRUE(store_->Compact(last).ok());
  const auto listener = Listen("registry/core/pods/", from);
  hub_->Pump();
  EXPECT_TRUE(kv::IsCompacted(listener->end)) << listener->end;
}

TEST_F(WatchHubTest, KeepsNamespacesApart) {
  const kv::Revision from = Put("a");
  const auto other = Listen("registry/core/pods/other/", from);
  const auto mine = Listen("registry/core/pods/ns/", from);
  Put("b");
  hub_->Pump();
  EXPECT_TRUE(other->heard.empty());
  EXPECT_EQ(mine->heard, std::vector<std::string>{"+b"});
}

TEST_F(WatchHubTest, RendersOnceForAllAndKeepsNothingOfItInTheRing) {
  class Reader final : public WatchSubscriber {
   public:
    explicit Reader(std::vector<std::weak_ptr<const std::string>>& rendered) : rendered_(rendered) {}
    bool OnEvent(const ObjectEventPtr& event) override {
      rendered_.push_back(held_ = event->Rendered("table", [] { return std::string(1'000'000, 'x'); }));
      return true;
    }
    bool OnProgress(kv::Revision, SteadyTime) override { return true; }
    void OnEnd(const absl::Status&) override {}
    void LetGo() { held_.reset(); }

   private:
    std::vector<std::weak_ptr<const std::string>>& rendered_;
    std::shared_ptr<const std::string> held_;
  };
  std::vector<std::weak_ptr<const std::string>> rendered;
  const kv::Revision from = Put("a");
  const auto read = [&](kv::Revision since) {
    auto reader = std::make_shared<Reader>(rendered);
    hub_->Subscribe("registry/core/pods/", since, reader);
    hub_->Pump();
    return reader;
  };
  const auto first = read(from);
  const auto second = read(from);
  Put("b");
  hub_->Pump();
  ASSERT_EQ(rendered.size(), 2U);
  EXPECT_EQ(rendered[0].lock(), rendered[1].lock());
  const auto late = read(from);
  ASSERT_EQ(rendered.size(), 3U);
  for (const auto& reader : {first, second, late}) reader->LetGo();
  for (const auto& text : rendered) EXPECT_TRUE(text.expired());
}

TEST_F(WatchHubTest, ForgetsWhoWantsNoMore) {
  const kv::Revision from = Put("a");
  const auto listener = Listen("registry/core/pods/", from);
  listener->wants_more = false;
  Put("b");
  Put("c");
  hub_->Pump();
  EXPECT_EQ(listener->heard, std::vector<std::string>{"+b"});
}

TEST_F(WatchHubTest, TellsProgressAsTimePasses) {
  const auto listener = Listen("registry/core/nodes/", Put("a"));
  const kv::Revision newest = Put("b");
  clock_.Advance(absl::Seconds(2));
  hub_->Pump();
  EXPECT_EQ(listener->progress, newest);
}

TEST_F(WatchHubTest, EndsEveryWatchWhenItGoes) {
  const auto listener = Listen("registry/core/pods/", Put("a"));
  hub_.reset();
  EXPECT_EQ(listener->end.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace trainyard::apiserver
