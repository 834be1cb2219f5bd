#include "kv/gateway/gateway_routes.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"

namespace trainyard::kv {
namespace {

using ::testing::HasSubstr;

class GatewayRoutes : public testing::Test {
 protected:
  std::unique_ptr<LineStream> Open(std::string_view path, const std::string& body) {
    auto stream = FindRoute(path)->stream(calls_, body, [] {});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return stream.ok() ? *std::move(stream) : nullptr;
  }

  ManualClock clock_;
  std::unique_ptr<LocalStore> store_ = NewMemoryStore(clock_);
  Workers workers_{1};
  EtcdCalls calls_{*store_, workers_};
};

TEST_F(GatewayRoutes, AreFoundByTheirWholePath) {
  EXPECT_NE(FindRoute("/v3/kv/range"), nullptr);
  for (const char* path : {"", "/", "/v3/kv/range/", "/v3/kv", "/v3/kv/Range", "v3/kv/range"}) {
    EXPECT_EQ(FindRoute(path), nullptr) << path;
  }
  EXPECT_FALSE(FindRoute("/health")->needs_token);
  EXPECT_TRUE(FindRoute("/v3/watch")->needs_token);
}

TEST_F(GatewayRoutes, EndAKeepAliveWithItsRequestsAndAWatchNever) {
  const auto kept = Open("/v3/lease/keepalive", R"({"ID":1}{"ID":2})");
  EXPECT_THAT(*kept->Next(), HasSubstr(R"("ID":"1")"));
  EXPECT_FALSE(kept->Ended());
  EXPECT_THAT(*kept->Next(), HasSubstr(R"("ID":"2")"));
  EXPECT_EQ(kept->Next(), std::nullopt);
  EXPECT_TRUE(kept->Ended());

  const auto watch = Open("/v3/watch", R"({"create_request":{"key":"YQ=="}})");
  EXPECT_THAT(*watch->Next(), HasSubstr(R"("created":true)"));
  EXPECT_EQ(watch->Next(), std::nullopt);
  EXPECT_FALSE(watch->Ended());
  ASSERT_TRUE(store_->Put("a", "1").ok());
  watch->Park();
  EXPECT_THAT(*watch->Next(), testing::EndsWith(R"("version":"1","value":"MQ=="}}]}})"
                                                "\n"));
}

TEST_F(GatewayRoutes, TakeMoreRequestsThanAnswersFitIn) {
  std::string body;
  for (int i = 0; i < 200; ++i) body += R"({"create_request":{"key":"YQ=="}})";
  const auto watch = Open("/v3/watch", body);
  int created = 0;
  while (watch->Next()) ++created;
  EXPECT_EQ(created, 200);
}

TEST_F(GatewayRoutes, RefuseAStreamOfWhichOneRequestIsWrong) {
  const auto stream =
      FindRoute("/v3/watch")->stream(calls_, R"({"create_request":{}}{"create_request":7})", [] {});
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace trainyard::kv
