#include "client/gateway_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::client {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kWhere = "the store at http://x";

Verdict OfBody(int code, std::string body) {
  return Judge(kube::Response{.code = code, .body = std::move(body)}, kWhere, 7);
}
Verdict OfGrpc(int code, std::string_view message) {
  return OfBody(400,
                StrCat(R"({"error":")", message, R"(","message":")", message, R"(","code":)", code, "}"));
}
Verdict OfApiServer(int code, std::string reason, std::string message) {
  return Judge(kube::ToResponse({.code = code, .reason = std::move(reason), .message = std::move(message)}),
               kWhere);
}

TEST(GatewayErrors, KnowWhatWasCertainlyNotSent) {
  EXPECT_EQ(Judge(absl::UnavailableError("cannot connect"), kWhere).outcome, Outcome::kNotMade);
  const Verdict broken = Judge(absl::UnknownError("the connection broke"), kWhere);
  EXPECT_EQ(broken.outcome, Outcome::kUnknown);
  EXPECT_THAT(Message(broken.status), HasSubstr("may or may not have been carried out"));
  EXPECT_EQ(Judge(absl::DeadlineExceededError("late"), kWhere).outcome, Outcome::kUnknown);
  EXPECT_EQ(Judge(absl::FailedPreconditionError("not trusted"), kWhere).outcome, Outcome::kRefused);
}

struct GrpcCase {
  int code;
  const char* message;
  Outcome outcome;
  absl::StatusCode status;
};

TEST(GatewayErrors, ReadWhatEtcdSays) {
  for (const GrpcCase& each : std::vector<GrpcCase>{
           {11, "etcdserver: mvcc: required revision is a future revision", Outcome::kRefused,
            absl::StatusCode::kOutOfRange},
           {11, "etcdserver: mvcc: required revision has been compacted", Outcome::kRefused,
            absl::StatusCode::kOutOfRange},
           {5, "etcdserver: requested lease not found", Outcome::kRefused, absl::StatusCode::kNotFound},
           {3, "etcdserver: duplicate key given in txn request", Outcome::kRefused,
            absl::StatusCode::kInvalidArgument},
           {8, "etcdserver: mvcc: database space exceeded", Outcome::kRefused,
            absl::StatusCode::kResourceExhausted},
           {8, "etcdserver: too many requests", Outcome::kNotMade, absl::StatusCode::kUnavailable},
           {14, "etcdserver: no leader", Outcome::kNotMade, absl::StatusCode::kUnavailable},
           {14, "etcdserver: request timed out", Outcome::kUnknown, absl::StatusCode::kUnknown},
           {16, "etcdserver: invalid auth token", Outcome::kRefused, absl::StatusCode::kPermissionDenied},
           {7, "etcdserver: permission denied", Outcome::kRefused, absl::StatusCode::kPermissionDenied},
           {13, "boom", Outcome::kUnknown, absl::StatusCode::kUnknown},
           {99, "of the future", Outcome::kRefused, absl::StatusCode::kInternal},
       }) {
    const Verdict verdict = OfGrpc(each.code, each.message);
    EXPECT_EQ(verdict.outcome, each.outcome) << each.message;
    EXPECT_EQ(verdict.status.code(), each.status) << verdict.status;
  }
  EXPECT_TRUE(kv::IsCompacted(OfGrpc(11, "etcdserver: mvcc: required revision has been compacted").status));
  EXPECT_FALSE(kv::IsCompacted(OfGrpc(11, "required revision is a future revision").status));
  EXPECT_EQ(OfBody(200, "{}").outcome, Outcome::kDone);
}

TEST(GatewayErrors, ReadWhatTheApiServerSaysInItsPlace) {
  const std::string_view reach = "error trying to reach service: ";
  EXPECT_EQ(OfApiServer(503, "ServiceUnavailable", "no endpoints available for service \"s\"").outcome,
            Outcome::kNotMade);
  EXPECT_EQ(OfApiServer(503, "ServiceUnavailable", StrCat(reach, "dial tcp 10.0.0.1:80: connection refused"))
                .outcome,
            Outcome::kNotMade);
  EXPECT_EQ(OfApiServer(503, "ServiceUnavailable", StrCat(reach, "EOF")).outcome, Outcome::kUnknown)
      << "the store may have done it and died";
  EXPECT_EQ(OfApiServer(404, "NotFound", "services \"s\" not found").outcome, Outcome::kNotMade);
  EXPECT_EQ(OfApiServer(404, "NotFound", "services \"s\" not found").status.code(),
            absl::StatusCode::kUnavailable)
      << "NotFound is of leases";
  EXPECT_EQ(OfApiServer(429, "TooManyRequests", "later").outcome, Outcome::kNotMade);
  EXPECT_EQ(OfApiServer(500, "InternalError", "boom").outcome, Outcome::kUnknown);
  EXPECT_EQ(OfApiServer(504, "Timeout", "late").outcome, Outcome::kUnknown);
  const Verdict forbidden = OfApiServer(403, "Forbidden", "may not get services/proxy");
  EXPECT_EQ(forbidden.outcome, Outcome::kRefused);
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden.status));
}

TEST(GatewayErrors, TellAStrangerFromAStore) {
  const Verdict page = OfBody(404, "404 page not found\n");
  EXPECT_EQ(page.outcome, Outcome::kRefused);
  EXPECT_TRUE(absl::IsUnimplemented(page.status)) << page.status;
  EXPECT_THAT(Message(page.status), HasSubstr("check the address"));
  EXPECT_EQ(Message(page.status).find('\n'), std::string_view::npos);
  EXPECT_EQ(OfBody(502, "<html>Bad Gateway</html>").outcome, Outcome::kUnknown);
  EXPECT_TRUE(absl::IsPermissionDenied(OfBody(401, "").status));
  EXPECT_TRUE(absl::IsUnimplemented(OfBody(301, "").status));
  EXPECT_TRUE(absl::IsUnimplemented(OfBody(404, "{}").status));
}

}  // namespace
}  // namespace trainyard::client
