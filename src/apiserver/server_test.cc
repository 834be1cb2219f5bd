#include "apiserver/server.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "base/text.h"
#include "kv/memory_store.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kMaps = "/api/v1/namespaces/default/configmaps";

struct Answered {
  kube::Response response;
  std::thread::id by;
};

class OneAnswer final : public http::Responder {
 public:
  explicit OneAnswer(std::promise<Answered> answer) : answer_(std::move(answer)) {}
  void Send(kube::Response response) override {
    answer_.set_value({std::move(response), std::this_thread::get_id()});
  }
  std::shared_ptr<http::BodyWriter> Stream(kube::Response) override { return nullptr; }

 private:
  std::promise<Answered> answer_;
};

class ServerTest : public testing::Test {
 protected:
  Answered Ask(kube::Request request) { return Ask(std::move(request), *server_); }
  static Answered Ask(kube::Request request, ApiServer& server) {
    std::promise<Answered> promise;
    std::future<Answered> answer = promise.get_future();
    server.Handle({.request = std::move(request)}, std::make_unique<OneAnswer>(std::move(promise)));
    return answer.get();
  }
  static std::string Map(std::string_view name, int keys) {
    Object data;
    for (int i = 0; i < keys; ++i) data[StrCat("key-", i)] = "x";
    return PrintJson(Object{{"metadata", Object{{"name", name}}}, {"data", std::move(data)}});
  }

  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const std::unique_ptr<ApiServer> server_ = *ApiServer::Start({.store = store_.get()});
};

// The thread that hands a request over is the one that all connections share. A dry run is answered by the
// thread that decides, not by the store's.
TEST_F(ServerTest, DecidesAboutLargeObjectsElsewhere) {
  const auto decided_here = [&](kube::Request request) {
    request.target += "?dryRun=All";
    const Answered answered = Ask(std::move(request));
    EXPECT_LT(answered.response.code, 300) << answered.response.body.substr(0, 300);
    return answered.by == std::this_thread::get_id();
  };
  for (const auto& [name, keys] : {std::pair("small", 10), std::pair("large", 20'000)}) {
    const kube::Response made =
        Ask({.method = "POST", .target = std::string(kMaps), .body = Map(name, keys)}).response;
    ASSERT_EQ(made.code, 201) << made.body.substr(0, 300);
  }
  const std::string small = StrCat(kMaps, "/small");
  const std::string large = StrCat(kMaps, "/large");
  EXPECT_TRUE(decided_here({.method = "PUT", .target = small, .body = Map("small", 5)}));
  EXPECT_FALSE(decided_here({.method = "PUT", .target = small, .body = Map("small", 20'000)}));
  EXPECT_FALSE(decided_here({.method = "PUT", .target = large, .body = Map("large", 5)}));
  EXPECT_FALSE(decided_here({.method = "PATCH",
                             .target = large,
                             .body = R"({"data":{"key-1":null}})",
                             .content_type = "application/merge-patch+json"}));
}

TEST_F(ServerTest, KeepsTheNewestEventsOfPodsThatComeAndGo) {
  constexpr std::string_view kEvents = "/api/v1/namespaces/default/events";
  constexpr int kMost = 80;
  const auto server = *ApiServer::Start({.store = store_.get(), .most_events = kMost});
  const auto ask = [&](kube::Request request) { return Ask(std::move(request), *server).response; };
  for (int i = 0; i < 10 * kMost; ++i) {
    const Document event = Object{{"metadata", Object{{"name", StrCat("e", i)}}},
                                  {"involvedObject", Object{{"kind", "Pod"}, {"namespace", "default"}}},
                                  {"reason", "Started"}};
    const kube::Response made =
        ask({.method = "POST", .target = std::string(kEvents), .body = PrintJson(event)});
    ASSERT_EQ(made.code, 201) << made.body;
  }
  const Document list = *ParseJson(ask({.target = std::string(kEvents)}).body);
  EXPECT_LE(ArrayAt(list, {"items"})->size(), kMost);
  EXPECT_GE(ArrayAt(list, {"items"})->size(), kMost / 2);
  EXPECT_EQ(ask({.target = StrCat(kEvents, "/e", 10 * kMost - 1)}).code, 200);
  EXPECT_EQ(ask({.target = StrCat(kEvents, "/e0")}).code, 404);
}

TEST_F(ServerTest, NamesNoMoreUnknownFieldsInItsHeadThanAClientReads) {
  Object body{{"metadata", Object{{"name", "odd"}}}};
  for (int i = 0; i < 20'000; ++i) body[StrCat("unknown-", i)] = i;
  const kube::Response made =
      Ask({.method = "POST", .target = std::string(kMaps), .body = PrintJson(body)}).response;
  ASSERT_EQ(made.code, 201) << made.body.substr(0, 300);
  std::size_t bytes = 0;
  for (const auto& [name, value] : made.headers) bytes += name.size() + value.size();
  EXPECT_GT(made.headers.size(), 10U);
  EXPECT_LT(bytes, std::size_t{16} << 10);
}

}  // namespace
}  // namespace trainyard::apiserver
