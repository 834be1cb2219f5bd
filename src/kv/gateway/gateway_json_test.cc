#include "kv/gateway/gateway_json.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/etcd/etcd.pb.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseJson, TakesNamesAndNumbersInEachOfTheirForms) {
  for (const char* text : {R"({"key":"YQ==","sort_order":"DESCEND","keys_only":true,"limit":"5"})",
                           R"( {"key":"YQ==","sortOrder":2,"keysOnly":true,"limit":5,"unknown":[{}]} )"}) {
    etcdserverpb::RangeRequest request;
    const absl::Status status = ParseJson(text, request);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(request.key(), "a");
    EXPECT_EQ(request.sort_order(), etcdserverpb::RangeRequest::DESCEND);
    EXPECT_TRUE(request.keys_only());
    EXPECT_EQ(request.limit(), 5);
  }
  etcdserverpb::RangeRequest nothing;
  EXPECT_TRUE(ParseJson("", nothing).ok());
  EXPECT_TRUE(ParseJson(" \n", nothing).ok());
}

TEST(ParseJson, SaysInOneLineWhatIsWrong) {
  for (const std::string& text : std::vector<std::string>{
           "{", "[]", "1", "null", R"({"key":"!"})", R"({"key":7})", R"({"limit":"many"})",
           R"({"limit":"99999999999999999999"})", R"({"key":"YQ=="}})",
           StrCat(R"({"key":")", std::string(5000, '!'), "\"}"), std::string(100'000, '{')}) {
    etcdserverpb::RangeRequest request;
    const absl::Status status = ParseJson(text, request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(Message(status).find('\n'), std::string_view::npos);
    EXPECT_LT(Message(status).size(), 500u);
  }
}

TEST(PrintJson, LeavesOutWhatIsNotSet) {
  etcdserverpb::WatchResponse response;
  response.mutable_header()->set_revision(INT64_MAX);
  auto& event = *response.add_events();
  event.set_type(etcdserverpb::Event::DELETE);
  event.mutable_kv()->set_key(std::string("\0\xff", 2));
  EXPECT_EQ(
      PrintJson(response),
      R"({"header":{"revision":"9223372036854775807"},"events":[{"type":"DELETE","kv":{"key":"AP8="}}]})");
}

TEST(SplitObjects, FindsEachWhateverItsTextsHold) {
  EXPECT_THAT(*SplitObjects(R"( {"a":"}{"}{"b":{"c":"\""}}
                               {} [1] )"),
              ElementsAre(R"({"a":"}{"})", R"({"b":{"c":"\""}})", "{}", "[1]"));
  EXPECT_THAT(*SplitObjects(""), IsEmpty());
  for (const char* text : {"{", "}", "x{}", "{} x", R"({"a)", R"({"\)", "\"{}\"", "]"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SplitObjects(text).status())) << text;
  }
}

TEST(PrintError, HasTheCodesOfBothWorlds) {
  const absl::Status status = absl::NotFoundError("no \"lease\"");
  EXPECT_EQ(PrintError(status), R"({"error":"no \"lease\"","message":"no \"lease\"","code":5})");
  EXPECT_EQ(PrintStreamError(status),
            R"({"error":{"grpc_code":5,"http_code":404,"message":"no \"lease\"","http_status":"Not Found"}})"
            "\n");
}

TEST(HttpCode, IsThatOfEtcdsGateway) {
  EXPECT_EQ(HttpCode(absl::StatusCode::kOk), 200);
  EXPECT_EQ(HttpCode(absl::StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpCode(absl::StatusCode::kOutOfRange), 400);
  EXPECT_EQ(HttpCode(absl::StatusCode::kUnauthenticated), 401);
  EXPECT_EQ(HttpCode(absl::StatusCode::kPermissionDenied), 403);
  EXPECT_EQ(HttpCode(absl::StatusCode::kNotFound), 404);
  EXPECT_EQ(HttpCode(absl::StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(HttpCode(absl::StatusCode::kUnimplemented), 501);
  EXPECT_EQ(HttpCode(absl::StatusCode::kUnavailable), 503);
  EXPECT_EQ(HttpCode(absl::StatusCode::kDataLoss), 500);
}

}  // namespace
}  // namespace trainyard::kv
