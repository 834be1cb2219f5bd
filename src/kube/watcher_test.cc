#include "kube/watcher.h"

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Thing {
  ObjectMeta meta;
};

absl::StatusOr<Thing> DecodeThing(std::string json) {
  TY_ASSIGN_OR_RETURN(ObjectMeta meta, ParseObjectMeta(std::move(json)));
  return Thing{std::move(meta)};
}

using ThingWatcher = Watcher<Thing>;

std::string Json(std::string_view name, std::string_view label = "x") {
  return StrCat(R"({"metadata":{"namespace":"ns","name":")", name, R"(","labels":{"l":")", label, R"("}}})");
}

class WatcherTest : public testing::Test {
 protected:
  WatcherTest() { Restart({}); }

  void Restart(WatcherOptions options) {
    options.resource = Resource::Pods();
    watcher_.emplace(api_, clock_, IdSource(3), std::move(options), DecodeThing);
  }
  void Put(std::string_view name, std::string_view label = "x") {
    server_.Put(Resource::Pods(), Json(name, label));
  }
  void Remove(std::string_view name) { server_.Remove(Resource::Pods(), {"ns", std::string(name)}); }

  // Steps until there is nothing but to wait, and says what happened. Back-offs pass by at once.
  std::vector<std::string> Run(int most_steps = 100) {
    std::vector<std::string> seen;
    for (int i = 0; i < most_steps; ++i) {
      auto event = watcher_->Step(absl::ZeroDuration());
      if (const auto* nothing = std::get_if<ThingWatcher::Nothing>(&event)) {
        if (nothing->waited) return seen;
        continue;
      }
      seen.push_back(Show(event));
      if (const auto* broken = std::get_if<ThingWatcher::Broken>(&event)) clock_.Advance(broken->wait);
    }
    seen.push_back("...");
    return seen;
  }

  static std::string Show(const ThingWatcher::Event& event) {
    if (const auto* restarted = std::get_if<ThingWatcher::Restarted>(&event)) {
      std::string text = "all";
      for (const auto& object : restarted->objects) StrAppend(text, " ", object->meta.name);
      return text;
    }
    if (const auto* applied = std::get_if<ThingWatcher::Applied>(&event))
      return "+" + applied->object->meta.name;
    if (const auto* deleted = std::get_if<ThingWatcher::Deleted>(&event))
      return "-" + deleted->object->meta.name;
    if (std::holds_alternative<ThingWatcher::Bookmark>(event)) return "bookmark";
    if (const auto* broken = std::get_if<ThingWatcher::Broken>(&event)) {
      return StrCat("broken: ", absl::StatusCodeToString(broken->status.code()));
    }
    return "nothing";
  }

  std::size_t CountRequests(std::string_view word) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        server_.Requests(), [&](const std::string& r) { return r.find(word) != std::string::npos; }));
  }

  ManualClock clock_;
  FakeServer server_;
  Api api_{server_, clock_, IdSource(1), {.attempts = 1}};
  std::optional<ThingWatcher> watcher_;
};

TEST_F(WatcherTest, ListsAndThenWatchesWithoutAGap) {
  Put("a");
  Put("b");
  auto first = watcher_->Step(absl::ZeroDuration());
  EXPECT_EQ(Show(first), "all a b");
  Put("c");
  Remove("a");
  EXPECT_THAT(Run(), ElementsAre("+c", "-a"));
  Put("b");
  EXPECT_THAT(Run(), ElementsAre("+b"));
  EXPECT_EQ(watcher_->version(), server_.Version());
}

TEST_F(WatcherTest, HandsOverAllPagesAtOnce) {
  Restart({.page = 2});
  for (const char* name : {"a", "b", "c", "d", "e"}) Put(name);
  EXPECT_EQ(Show(watcher_->Step(absl::ZeroDuration())), "nothing");
  Put("late");
  EXPECT_THAT(Run(), ElementsAre("all a b c d e", "+late")) << "pages are of one version";
  EXPECT_EQ(CountRequests("limit=2"), 3u);
}

TEST_F(WatcherTest, BeginsAnewAndUnpagedWhenAPageHasExpired) {
  Restart({.page = 2});
  for (const char* name : {"a", "b", "c"}) Put(name);
  watcher_->Step(absl::ZeroDuration());
  Put("d");
  server_.Compact();
  EXPECT_THAT(Run(), ElementsAre("broken: OUT_OF_RANGE", "all a b c d"));
}

TEST_F(WatcherTest, KeepsThePagesItHasWhenOneFails) {
  Restart({.page = 1});
  Put("a");
  Put("b");
  watcher_->Step(absl::ZeroDuration());
  int failures = 3;
  server_.SetIntercept([&](const Request&) -> std::optional<absl::StatusOr<Response>> {
    if (failures-- > 0) return absl::UnavailableError("no server");
    return std::nullopt;
  });
  EXPECT_THAT(Run(),
              ElementsAre("broken: UNAVAILABLE", "broken: UNAVAILABLE", "broken: UNAVAILABLE", "all a b"));
  EXPECT_EQ(CountRequests("GET /api/v1/pods?limit=1&continue"), 4u) << "it did not begin anew";
}

TEST_F(WatcherTest, FiltersOnTheServer) {
  Restart({.ns = "ns", .label_selector = "l=mine"});
  Put("a", "mine");
  Put("b", "other");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  Put("b", "mine");
  Put("a", "other");
  EXPECT_THAT(Run(), ElementsAre("+b", "-a"));
}

TEST_F(WatcherTest, ResumesWhereItWasWhenTheServerEndsTheWatch) {
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  clock_.Advance(absl::Minutes(5));
  server_.EndWatches();
  Put("b");
  const SteadyTime before = clock_.Steady();
  EXPECT_THAT(Run(), ElementsAre("+b"));
  EXPECT_EQ(clock_.Steady(), before) << "without a back-off";
  Put("c");
  server_.BreakWatches();
  Put("d");
  EXPECT_THAT(Run(), ElementsAre("+c", "broken: UNAVAILABLE", "+d")) << "it had not lived for long";
  EXPECT_EQ(CountRequests("GET"), 1u) << "it did not list again";
}

TEST_F(WatcherTest, ResumesFromABookmark) {
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  server_.Put(Resource::Services(), Json("elsewhere"));
  server_.SendBookmarks();
  EXPECT_THAT(Run(), ElementsAre("bookmark"));
  server_.Compact();
  clock_.Advance(absl::Minutes(1));
  server_.EndWatches();
  Put("b");
  EXPECT_THAT(Run(), ElementsAre("+b")) << "without the bookmark its version would be gone";
}

TEST_F(WatcherTest, ListsAgainWhenItsVersionIsGone) {
  Put("a");
  Put("b");
  EXPECT_THAT(Run(), ElementsAre("all a b"));
  clock_.Advance(absl::Minutes(1));
  server_.SilenceWatches();
  Remove("a");
  Put("c");
  server_.Compact();
  clock_.Advance(absl::Minutes(10));
  EXPECT_THAT(Run(), ElementsAre("broken: UNAVAILABLE", "broken: OUT_OF_RANGE", "all b c"));
}

TEST_F(WatcherTest, NoticesAWatchWhoseOtherEndIsGone) {
  Restart({.server_timeout = absl::Minutes(5), .margin = absl::Seconds(30)});
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  server_.SilenceWatches();
  Put("b");
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(Run(), IsEmpty()) << "it may yet come";
  clock_.Advance(absl::Seconds(30));
  EXPECT_THAT(Run(), ElementsAre("broken: UNAVAILABLE", "+b"));
  EXPECT_EQ(server_.CountOpenWatches(), 1);
}

TEST_F(WatcherTest, NeverOpensWatchesInAHotLoop) {
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  const SteadyTime start = clock_.Steady();
  const std::size_t before = CountRequests("WATCH");
  while (clock_.Steady() - start < absl::Minutes(10)) {
    server_.EndWatches();
    const auto event = watcher_->Step(absl::ZeroDuration());
    if (const auto* broken = std::get_if<ThingWatcher::Broken>(&event)) clock_.Advance(broken->wait);
  }
  EXPECT_LE(CountRequests("WATCH") - before, 40u) << "the waits grow to half a minute";
}

TEST_F(WatcherTest, OpensWatchesNoFasterThanOnceASecondThoughEachBringsSomething) {
  EXPECT_THAT(Run(), ElementsAre("all"));
  const SteadyTime start = clock_.Steady();
  const std::size_t before = CountRequests("WATCH");
  while (clock_.Steady() - start < absl::Minutes(1)) {
    Put("a");
    server_.EndWatches();
    const auto event = watcher_->Step(absl::ZeroDuration());
    if (const auto* broken = std::get_if<ThingWatcher::Broken>(&event)) {
      EXPECT_LE(broken->wait, absl::Seconds(1)) << "and does not wait longer than that";
      clock_.Advance(broken->wait);
    }
  }
  EXPECT_LE(CountRequests("WATCH") - before, 121u);
}

TEST_F(WatcherTest, WaitsLongerAfterEachFailureAndAsLongAsTheServerAsks) {
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return ToResponse({.code = 403, .reason = "Forbidden", .message = "no"});
  });
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    const auto event = watcher_->Step(absl::ZeroDuration());
    const absl::Duration wait = std::get<ThingWatcher::Broken>(event).wait;
    if (i < 5) {
      EXPECT_GT(wait, last);
    }
    EXPECT_LE(wait, absl::Seconds(45));
    last = wait;
  }
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return ToResponse({.code = 429, .message = "busy", .retry_after = absl::Minutes(2)});
  });
  EXPECT_EQ(std::get<ThingWatcher::Broken>(watcher_->Step(absl::ZeroDuration())).wait, absl::Minutes(2));
}

TEST_F(WatcherTest, ListsAgainWhenItsVersionIsRefusedOverAndOver) {
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  server_.BreakWatches();
  server_.SetIntercept([](const Request& request) -> std::optional<absl::StatusOr<Response>> {
    if (request.target.find("watch=true") == std::string::npos) return std::nullopt;
    return ToResponse({.code = 504, .reason = "Timeout", .message = "Too large resource version"});
  });
  EXPECT_THAT(Run(6),
              ElementsAre("broken: UNAVAILABLE", "broken: DEADLINE_EXCEEDED", "broken: DEADLINE_EXCEEDED",
                          "broken: DEADLINE_EXCEEDED", "all a", "broken: DEADLINE_EXCEEDED", "..."));
}

TEST_F(WatcherTest, LeavesOutWhatCannotBeReadAndGoesOn) {
  Put("a");
  server_.Put(Resource::Pods(), R"({"metadata":{"namespace":"ns","name":"odd","labels":{"l":5}}})");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  const std::string odd =
      server_.Put(Resource::Pods(), R"({"metadata":{"namespace":"ns","name":"odd","labels":{"l":6}}})");
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_EQ(watcher_->version(), odd) << "its version counts all the same";
  Put("b");
  EXPECT_THAT(Run(), ElementsAre("+b"));
}

TEST_F(WatcherTest, EndsAWaitInAnotherThreadWhenCancelled) {
  Put("a");
  EXPECT_THAT(Run(), ElementsAre("all a"));
  ThingWatcher::Event event;
  std::thread thread([&] { event = watcher_->Step(absl::InfiniteDuration()); });
  watcher_->Cancel();
  thread.join();
  EXPECT_TRUE(absl::IsCancelled(std::get<ThingWatcher::Broken>(event).status));
  EXPECT_TRUE(
      absl::IsCancelled(std::get<ThingWatcher::Broken>(watcher_->Step(absl::InfiniteDuration())).status));
}

// Whatever breaks, what has been handed over is, in the end, what the server has.
TEST(WatcherProperty, AlwaysCatchesUpWithTheServer) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return random() % n; };
    ManualClock clock;
    FakeServer server;
    Api api(server, clock, IdSource(seed), {.attempts = 1});
    ThingWatcher watcher(api, clock, IdSource(seed), {.resource = Resource::Pods(), .page = 2}, DecodeThing);
    bool faulty = true;
    server.SetIntercept([&](const Request&) -> std::optional<absl::StatusOr<Response>> {
      if (!faulty || below(4) != 0) return std::nullopt;
      switch (below(3)) {
        case 0:
          return absl::UnavailableError("refused");
        case 1:
          return ToResponse({.code = 500, .reason = "InternalError", .message = "oops"});
        default:
          return ToResponse({.code = 410, .reason = "Expired", .message = "too old"});
      }
    });
    std::map<std::string, std::string> seen;  // name -> version
    const auto step = [&] {
      auto event = watcher.Step(absl::ZeroDuration());
      if (const auto* restarted = std::get_if<ThingWatcher::Restarted>(&event)) {
        seen.clear();
        for (const auto& object : restarted->objects) seen[object->meta.name] = object->meta.resource_version;
      } else if (const auto* applied = std::get_if<ThingWatcher::Applied>(&event)) {
        seen[applied->object->meta.name] = applied->object->meta.resource_version;
      } else if (const auto* deleted = std::get_if<ThingWatcher::Deleted>(&event)) {
        ASSERT_EQ(seen.erase(deleted->object->meta.name), 1u) << "seed " << seed;
      } else if (const auto* broken = std::get_if<ThingWatcher::Broken>(&event)) {
        clock.Advance(broken->wait);
      }
    };
    for (int i = 0; i < 300; ++i) {
      const std::string name(1, static_cast<char>('a' + below(6)));
      switch (below(12)) {
        case 0:
        case 1:
        case 2:
          server.Put(Resource::Pods(), Json(name));
          break;
        case 3:
          if (server.Find(Resource::Pods(), {"ns", name})) server.Remove(Resource::Pods(), {"ns", name});
          break;
        case 4:
          switch (below(5)) {
            case 0:
              server.Compact();
              break;
            case 1:
              server.EndWatches();
              break;
            case 2:
              server.BreakWatches();
              break;
            case 3:
              server.SilenceWatches();
              break;
            default:
              server.SendBookmarks();
          }
          break;
        case 5:
          clock.Advance(absl::Minutes(below(8)));
          break;
        default:
          step();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    faulty = false;
    for (int i = 0; i < 50; ++i) step();
    clock.Advance(absl::Minutes(6));
    for (int i = 0; i < 50; ++i) step();
    std::map<std::string, std::string> stored;
    for (const Document& object : server.FindAll(Resource::Pods())) {
      stored[std::string(StringAt(object, {"metadata", "name"}))] =
          StringAt(object, {"metadata", "resourceVersion"});
    }
    ASSERT_EQ(seen, stored) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard::kube
