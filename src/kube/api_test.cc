#include "kube/api.h"

#include <atomic>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Answers as a test says, and remembers what it was asked.
class FakeTransport final : public Transport {
 public:
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;
  explicit FakeTransport(Answer answer) : answer_(std::move(answer)) {}

  std::vector<absl::StatusOr<Response>> DoAll(std::vector<Request> requests) override {
    batches.push_back(requests.size());
    std::vector<absl::StatusOr<Response>> responses;
    for (const Request& request : requests) {
      seen.push_back(StrCat(request.method, " ", request.target));
      last = request;
      responses.push_back(answer_(request));
    }
    return responses;
  }

  absl::StatusOr<OpenedResponse> Open(Request request) override {
    seen.push_back(StrCat("OPEN ", request.target));
    TY_ASSIGN_OR_RETURN(Response response, answer_(request));
    OpenedResponse opened{.head = response};
    if (response.code == 200) opened.body = std::make_unique<OneBody>(response.body);
    return opened;
  }

  std::string Server() const override { return "https://fake"; }

  std::vector<std::size_t> batches;
  std::vector<std::string> seen;
  Request last;

 private:
  class OneBody final : public BodyReader {
   public:
    explicit OneBody(std::string body) : body_(std::move(body)) {}
    absl::StatusOr<std::string> Read(absl::Duration) override { return std::exchange(body_, ""); }
    void Cancel() override {}

   private:
    std::string body_;
  };
  Answer answer_;
};

// Time passes by itself whenever somebody waits, and is added up.
class FastClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + waited; }
  SteadyTime Steady() const override { return SteadyTime() + waited; }
  std::unique_ptr<Alarm> NewAlarm() override { return std::make_unique<FastAlarm>(*this); }

  absl::Duration waited;

 private:
  class FastAlarm final : public Alarm {
   public:
    explicit FastAlarm(FastClock& clock) : clock_(clock) {}
    Woken WaitUntil(SteadyTime deadline) override {
      clock_.waited += std::max(deadline - clock_.Steady(), absl::ZeroDuration());
      return Woken::kDeadline;
    }
    void Notify() override {}

   private:
    FastClock& clock_;
  };
};

struct World {
  explicit World(FakeTransport::Answer answer, RetryPolicy policy = {})
      : transport(std::move(answer)), api(transport, clock, IdSource(7), policy) {}
  FakeTransport transport;
  FastClock clock;
  Api api;
};

Response Fails(int code, std::optional<absl::Duration> retry_after = std::nullopt) {
  return ToResponse({.code = code, .message = StrCat("code ", code), .retry_after = retry_after});
}

const ObjectKey kKey{.ns = "default", .name = "x"};
constexpr char kNamed[] = R"({"metadata":{"name":"x"}})";
constexpr char kGenerated[] = R"({"metadata":{"generateName":"x-"}})";

TEST(Operations, SayWhatTheServerIsToDo) {
  const Resource& pods = Resource::Pods();
  EXPECT_EQ(GetOperation(pods, kKey).request.target, "/api/v1/namespaces/default/pods/x");
  EXPECT_EQ(GetOperation(Resource::Nodes(), {.name = "n/1"}).request.target, "/api/v1/nodes/n%2F1");
  const Operation create = CreateOperation(Resource::Leases(), "ns", kNamed);
  EXPECT_EQ(create.request.method, "POST");
  EXPECT_EQ(create.request.target, "/apis/coordination.k8s.io/v1/namespaces/ns/leases");
  EXPECT_EQ(create.request.body, kNamed);
  EXPECT_EQ(UpdateOperation(pods, kKey, "{}", "status").request.target,
            "/api/v1/namespaces/default/pods/x/status");
  const Operation apply =
      PatchOperation(pods, kKey, "{}", {.type = PatchType::kApply, .field_manager = "a b", .force = true});
  EXPECT_EQ(apply.request.method, "PATCH");
  EXPECT_EQ(apply.request.target, "/api/v1/namespaces/default/pods/x?fieldManager=a%20b&force=true");
  EXPECT_EQ(apply.request.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(PatchOperation(pods, kKey, "{}", {.dry_run = true}).request.target,
            "/api/v1/namespaces/default/pods/x?dryRun=All");
  EXPECT_EQ(
      DeleteOperation(
          pods, kKey,
          {.grace_seconds = 0, .propagation = Propagation::kForeground, .uid = "u", .resource_version = "5"})
          .request.body,
      R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,)"
      R"("propagationPolicy":"Foreground","preconditions":{"uid":"u","resourceVersion":"5"}})");
  const Operation evict = EvictOperation(kKey, "u");
  EXPECT_EQ(evict.request.method, "POST");
  EXPECT_EQ(evict.request.target, "/api/v1/namespaces/default/pods/x/eviction");
  EXPECT_EQ(evict.request.body,
            R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"x","namespace":"default"},)"
            R"("deleteOptions":{"preconditions":{"uid":"u"}}})");
}

TEST(Operations, MayBeRepeatedOnlyWhereTwiceIsAsGoodAsOnce) {
  const Resource& pods = Resource::Pods();
  const std::string versioned =
      R"({"kind":"Pod","metadata":{"labels":{"resourceVersion":"1"},"resourceVersion":"5"}})";
  EXPECT_TRUE(GetOperation(pods, kKey).repeatable);
  EXPECT_TRUE(CreateOperation(pods, "default", kNamed).repeatable);
  EXPECT_FALSE(CreateOperation(pods, "default", kGenerated).repeatable);
  EXPECT_FALSE(CreateOperation(pods, "default", "not JSON").repeatable);
  EXPECT_TRUE(UpdateOperation(pods, kKey, versioned).repeatable);
  EXPECT_FALSE(UpdateOperation(pods, kKey, kNamed).repeatable);
  EXPECT_FALSE(UpdateOperation(pods, kKey, R"({"metadata":{"resourceVersion":""}})").repeatable);
  EXPECT_TRUE(DeleteOperation(pods, kKey, {.uid = "u"}).repeatable);
  EXPECT_FALSE(DeleteOperation(pods, kKey).repeatable);
  EXPECT_TRUE(PatchOperation(pods, kKey, "{}", {.type = PatchType::kApply}).repeatable);
  EXPECT_TRUE(PatchOperation(pods, kKey, versioned, {}).repeatable);
  EXPECT_FALSE(PatchOperation(pods, kKey, kNamed, {}).repeatable);
  EXPECT_FALSE(PatchOperation(pods, kKey, "[]", {.type = PatchType::kJson}).repeatable);
}

struct RetryCase {
  const char* name;
  absl::StatusOr<Response> answer;
  int attempts_if_repeatable;
  int attempts_if_not;
};

TEST(Api, TriesAgainWhatFailedInPassingAndNothingElse) {
  const RetryCase cases[] = {
      {"not connected", absl::UnavailableError("refused"), 5, 5},
      {"broke while in flight", absl::UnknownError("reset"), 5, 1},
      {"took too long", absl::DeadlineExceededError("late"), 1, 1},
      {"no credentials", absl::UnauthenticatedError("no token"), 1, 1},
      {"not trusted", absl::FailedPreconditionError("certificate"), 1, 1},
      {"429", Fails(429), 5, 5},
      {"503", Fails(503), 5, 5},
      {"502", Fails(502), 5, 1},
      {"504", Fails(504), 5, 1},
      {"500", Fails(500), 1, 1},
      {"409", Fails(409), 1, 1},
      {"410", Fails(410), 1, 1},
      {"401", Fails(401), 1, 1},
      {"404", Fails(404), 1, 1},
      {"429 for longer than we wait", Fails(429, absl::Seconds(11)), 1, 1},
  };
  for (const RetryCase& c : cases) {
    for (const bool repeatable : {true, false}) {
      World world([&](const Request&) { return c.answer; });
      const auto result = world.api.Create(Resource::Pods(), "default", repeatable ? kNamed : kGenerated);
      EXPECT_FALSE(result.ok()) << c.name;
      EXPECT_EQ(world.transport.seen.size(),
                static_cast<std::size_t>(repeatable ? c.attempts_if_repeatable : c.attempts_if_not))
          << c.name << (repeatable ? ", repeatable" : ", not repeatable");
    }
  }
}

TEST(Api, BacksOffExponentiallyWithJitter) {
  World world([](const Request&) { return Fails(503); },
              {.attempts = 6, .first = absl::Seconds(1), .most = absl::Seconds(4)});
  EXPECT_FALSE(world.api.Get(Resource::Pods(), kKey).ok());
  // 1 + 2 + 4 + 4 + 4 at most, and at least half of that.
  EXPECT_LT(world.clock.waited, absl::Seconds(15));
  EXPECT_GE(world.clock.waited, absl::Seconds(7.5));
}

TEST(Api, WaitsAsLongAsTheServerAsks) {
  int calls = 0;
  World world(
      [&](const Request&) { return ++calls == 1 ? Fails(429, absl::Seconds(8)) : Response{.body = "{}"}; });
  EXPECT_EQ(world.api.Get(Resource::Pods(), kKey).value(), "{}");
  EXPECT_EQ(world.clock.waited, absl::Seconds(8));
}

TEST(Api, TriesOfABatchOnlyThoseAgainThatNeedIt) {
  int b_calls = 0;
  World world([&](const Request& request) -> absl::StatusOr<Response> {
    if (request.target.ends_with("/b") && ++b_calls < 3) return absl::UnavailableError("refused");
    if (request.target.ends_with("/c")) return Fails(404);
    return Response{.body = request.target};
  });
  std::vector<Operation> operations;
  for (const char* name : {"a", "b", "c", "d"}) {
    operations.push_back(GetOperation(Resource::Nodes(), {.name = name}));
  }
  const auto results = world.api.Do(std::move(operations));
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].value(), "/api/v1/nodes/a");
  EXPECT_EQ(results[1].value(), "/api/v1/nodes/b");
  EXPECT_TRUE(kube::IsNotFound(results[2].status()));
  EXPECT_EQ(results[3].value(), "/api/v1/nodes/d");
  EXPECT_THAT(world.transport.batches, ElementsAre(4, 1, 1));
}

TEST(Api, DoesNothingForNoOperations) {
  World world([](const Request&) { return Fails(500); });
  EXPECT_THAT(world.api.Do(std::vector<Operation>()), IsEmpty());
  EXPECT_THAT(world.transport.batches, IsEmpty());
}

TEST(Api, SaysWhatItWasDoingWhenTheServerDoesNot) {
  World broken([](const Request&) { return absl::DeadlineExceededError("no answer from https://fake"); });
  EXPECT_EQ(Message(broken.api.Get(Resource::Nodes(), {.name = "n"}).status()),
            "GET /api/v1/nodes/n: no answer from https://fake");
  World plain([](const Request&) {
    return Response{.code = 404, .content_type = "text/plain", .body = "404 page not found"};
  });
  EXPECT_EQ(Message(plain.api.Get(Resource::Nodes(), {.name = "n"}).status()),
            "GET /api/v1/nodes/n: the server answered 404: \"404 page not found\"");
  World proper([](const Request&) {
    return ToResponse({.code = 404, .reason = "NotFound", .message = "nodes \"n\" not found"});
  });
  EXPECT_EQ(Message(proper.api.Get(Resource::Nodes(), {.name = "n"}).status()), "nodes \"n\" not found");
}

TEST(Api, ListsAPageWithItsItemsAsTheServerWroteThem) {
  World world([](const Request&) {
    return Response{
        .body = R"( {"kind":"PodList","metadata":{"resourceVersion":"12","continue":"a+b=",)"
                R"("remainingItemCount":3},"items":[ {"metadata":{"name":"x","items":["]}"]}} , {} , )"
                R"({"b" : "\u00e9"}]} )"};
  });
  const auto page =
      world.api.List(Resource::Pods(), "default",
                     {.label_selector = "app=x,tier in (a, b)", .field_selector = "status.phase!=Failed"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->items,
              ElementsAre(R"({"metadata":{"name":"x","items":["]}"]}})", "{}", R"({"b" : "\u00e9"})"));
  EXPECT_EQ(page->resource_version, "12");
  EXPECT_EQ(page->continue_token, "a+b=");
  EXPECT_THAT(
      world.transport.seen,
      ElementsAre("GET /api/v1/namespaces/default/pods?limit=500&labelSelector=app%3Dx%2Ctier%20in%20%28a%2C"
                  "%20b%29&fieldSelector=status.phase%21%3DFailed"));
}

TEST(Api, TakesAListWithoutItemsForAnEmptyOne) {
  for (const char* body :
       {R"({"metadata":{"resourceVersion":"1"},"items":null})",
        R"({"items":[],"metadata":{"resourceVersion":"1"}})", R"({"metadata":{"resourceVersion":"1"}})"}) {
    World world([&](const Request&) { return Response{.body = body}; });
    const auto page = world.api.List(Resource::Pods(), "", {});
    ASSERT_TRUE(page.ok()) << body << page.status();
    EXPECT_THAT(page->items, IsEmpty());
    EXPECT_EQ(page->resource_version, "1");
  }
}

TEST(Api, RefusesWhatIsNoList) {
  for (const char* body :
       {"", "ok", "[]", R"({"items":[{])", R"({"items":{}})", R"({"items":[{}]"})", "{\"items\":[\xff]}"}) {
    World world([&](const Request&) { return Response{.body = body}; });
    const absl::Status status = world.api.List(Resource::Pods(), "", {}).status();
    EXPECT_TRUE(absl::IsInternal(status)) << body << status;
    EXPECT_THAT(Message(status), HasSubstr("listing pods at https://fake"));
  }
}

TEST(Api, ListsAllPagesAtOneVersion) {
  World world([](const Request& request) {
    if (request.target.find("continue=") == std::string::npos) {
      return Response{.body = R"({"metadata":{"resourceVersion":"5","continue":"t1"},"items":[1,2]})"};
    }
    if (request.target.find("continue=t1") != std::string::npos) {
      return Response{.body = R"({"metadata":{"resourceVersion":"5","continue":"t2"},"items":[3]})"};
    }
    return Response{.body = R"({"metadata":{"resourceVersion":"5"},"items":[4]})"};
  });
  const auto all = world.api.ListAll(
      Resource::Nodes(), "", {.limit = 2, .resource_version = "5", .resource_version_match = "Exact"});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->items, ElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(all->resource_version, "5");
  EXPECT_THAT(world.transport.seen,
              ElementsAre("GET /api/v1/nodes?limit=2&resourceVersion=5&resourceVersionMatch=Exact",
                          "GET /api/v1/nodes?limit=2&continue=t1", "GET /api/v1/nodes?limit=2&continue=t2"));
}

TEST(Api, BeginsAListAnewWhenItsTokenHasExpired) {
  int calls = 0;
  World world([&](const Request& request) {
    switch (++calls) {
      case 1:
        return Response{.body = R"({"metadata":{"resourceVersion":"5","continue":"t1"},"items":[1,2]})"};
      case 2:
        return ToResponse({.code = 410, .reason = "Expired", .message = "token expired"});
      default:
        EXPECT_EQ(request.target, "/api/v1/nodes") << "whole, and without the token";
        return Response{.body = R"({"metadata":{"resourceVersion":"9"},"items":[7,8,9]})"};
    }
  });
  const auto all = world.api.ListAll(Resource::Nodes(), "", {.limit = 2});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->items, ElementsAre("7", "8", "9"));
  EXPECT_EQ(all->resource_version, "9");
}

TEST(Api, GivesUpOnAListThatKeepsExpiring) {
  int calls = 0;
  World world([&](const Request&) {
    if (++calls % 2 == 0) return ToResponse({.code = 410, .reason = "Expired"});
    return Response{.body = R"({"metadata":{"continue":"t"},"items":[1]})"};
  });
  EXPECT_TRUE(IsGone(world.api.ListAll(Resource::Nodes(), "", {.limit = 1}).status()));
  EXPECT_LT(calls, 10);
}

TEST(Api, WatchesFromAVersionWithBookmarks) {
  World world([](const Request&) { return Response{.body = "{\"type\":\"ADDED\",\"object\":{}}\n"}; });
  const auto watch = world.api.Watch(
      Resource::Pods(), "ns",
      {.label_selector = "a=b", .resource_version = "7", .server_timeout = absl::Seconds(90)});
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_THAT(world.transport.seen,
              ElementsAre("OPEN /api/v1/namespaces/ns/pods?watch=true&resourceVersion=7&labelSelector=a%3Db&"
                          "allowWatchBookmarks=true&timeoutSeconds=90"));
  EXPECT_EQ((*watch)->Next(absl::ZeroDuration()).value(), (WatchEvent{WatchEventType::kAdded, "{}"}));
  EXPECT_TRUE(absl::IsUnavailable((*watch)->Next(absl::ZeroDuration()).status()));
}

TEST(Api, TriesToOpenAWatchAgainButNotOneThatIsTooOld) {
  int calls = 0;
  World busy([&](const Request&) -> absl::StatusOr<Response> {
    if (++calls == 1) return absl::UnavailableError("refused");
    return calls == 2 ? Fails(429) : Response{};
  });
  EXPECT_TRUE(busy.api.Watch(Resource::Pods(), "", {}).ok());
  EXPECT_EQ(calls, 3);
  World old([](const Request&) { return ToResponse({.code = 410, .reason = "Expired"}); });
  EXPECT_TRUE(IsGone(old.api.Watch(Resource::Pods(), "", {}).status()));
  EXPECT_EQ(old.transport.seen.size(), 1u);
}

TEST(Api, CutsOutItemsLargerThanWhatTheParserKeeps) {
  const std::string large = StrCat("{\"a\":\"", std::string(3 << 20, 'x'), "\"}");
  World world(
      [&](const Request&) { return Response{.body = StrCat("{\"items\":[", large, ",", large, "]}")}; });
  EXPECT_THAT(world.api.List(Resource::Pods(), "", {}).value().items, ElementsAre(large, large));
}

}  // namespace
}  // namespace trainyard::kube
