#include "kube/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;

ApiError Full() {
  return {.code = 422,
          .reason = "Invalid",
          .message = "Pod \"x\" is invalid",
          .group = "apps",
          .kind = "Pod",
          .name = "x",
          .uid = "u-1",
          .causes = {{.reason = "FieldValueRequired", .field = "spec.a[0]", .message = "must be given"},
                     {.reason = "FieldValueInvalid", .field = "spec.b", .message = "is too long"}},
          .retry_after = absl::Seconds(7)};
}

TEST(ApiError, SurvivesTheWayThroughAStatusAndThroughAResponse) {
  EXPECT_EQ(ToApiError(ToStatus(Full())), Full());
  EXPECT_EQ(ToApiError(ToStatus(ToResponse(Full()))), Full());
  EXPECT_EQ(ToApiError(Annotate(ToStatus(Full()), "creating x")), Full());
}

TEST(ApiError, IsPrintedAsAStatusObject) {
  const Response response = ToResponse(Full());
  EXPECT_EQ(response.code, 422);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.Header("Retry-After"), "7");
  EXPECT_EQ(response.body,
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"Pod \"x\" is invalid","reason":"Invalid","details":{"name":"x","group":"apps",)"
            R"("kind":"Pod","uid":"u-1","causes":[)"
            R"({"reason":"FieldValueRequired","message":"must be given","field":"spec.a[0]"},)"
            R"({"reason":"FieldValueInvalid","message":"is too long","field":"spec.b"}],)"
            R"("retryAfterSeconds":7},"code":422})");
}

TEST(ToStatus, GivesEachHttpCodeItsStatusCode) {
  const std::pair<int, absl::StatusCode> cases[] = {
      {400, absl::StatusCode::kInvalidArgument},  {401, absl::StatusCode::kUnauthenticated},
      {403, absl::StatusCode::kPermissionDenied}, {404, absl::StatusCode::kNotFound},
      {405, absl::StatusCode::kUnknown},          {409, absl::StatusCode::kAborted},
      {410, absl::StatusCode::kOutOfRange},       {422, absl::StatusCode::kInvalidArgument},
      {429, absl::StatusCode::kUnavailable},      {500, absl::StatusCode::kInternal},
      {502, absl::StatusCode::kUnknown},          {503, absl::StatusCode::kUnavailable},
      {504, absl::StatusCode::kDeadlineExceeded}, {302, absl::StatusCode::kUnknown},
      {100, absl::StatusCode::kUnknown},
  };
  for (const auto& [code, expected] : cases) {
    EXPECT_EQ(ToStatus(Response{.code = code}).code(), expected) << code;
    EXPECT_EQ(ToApiError(ToStatus(Response{.code = code}))->code, code);
  }
  for (const int code : {200, 201, 202, 299}) EXPECT_TRUE(ToStatus(Response{.code = code}).ok());
}

TEST(ToStatus, TellsApartTheTwoConflicts) {
  const absl::Status exists = ToStatus(ApiError{.code = 409, .reason = "AlreadyExists"});
  const absl::Status conflict = ToStatus(ApiError{.code = 409, .reason = "Conflict"});
  EXPECT_TRUE(kube::IsAlreadyExists(exists));
  EXPECT_FALSE(IsConflict(exists));
  EXPECT_TRUE(IsConflict(conflict));
  EXPECT_FALSE(kube::IsAlreadyExists(conflict));
}

TEST(ToStatus, KeepsTheWordsOfAServerThatSendsNoStatusObject) {
  const Response plain{.code = 404, .content_type = "text/plain", .body = "404 page not found\n"};
  EXPECT_EQ(Message(ToStatus(plain)), "the server answered 404: \"404 page not found\"");
  EXPECT_TRUE(kube::IsNotFound(ToStatus(plain)));
  const Response html{.code = 502, .content_type = "text/html", .body = std::string(100000, 'x')};
  EXPECT_LT(Message(ToStatus(html)).size(), 1000u);
  EXPECT_EQ(Message(ToStatus(Response{.code = 500})), "the server answered 500");
  EXPECT_THAT(Message(ToStatus(Response{.code = 500, .body = R"({"kind":"Pod"})"})), HasSubstr("kind"));
}

TEST(ToStatus, SaysThatRedirectsAreNotFollowed) {
  EXPECT_THAT(Message(ToStatus(Response{.code = 307, .headers = {{"Location", "https://elsewhere/"}}})),
              HasSubstr("redirects are not followed"));
}

TEST(ToStatus, NeverTakesAnErrorForASuccess) {
  EXPECT_EQ(ToApiError(ToStatus(Response{.code = 500, .body = R"({"kind":"Status","code":200})"}))->code,
            500);
  EXPECT_FALSE(ToStatus(Response{.code = 500, .body = R"({"kind":"Status","status":"Success"})"}).ok());
}

TEST(ToStatus, ReadsRetryAfterFromTheHeaderWhereTheBodyHasNone) {
  const auto retry_after = [](std::string_view value, std::string_view body) {
    return ToApiError(
               ToStatus(Response{
                   .code = 503, .body = std::string(body), .headers = {{"retry-after", std::string(value)}}}))
        ->retry_after;
  };
  EXPECT_EQ(retry_after("4", ""), absl::Seconds(4));
  EXPECT_EQ(retry_after("0", ""), absl::ZeroDuration());
  EXPECT_EQ(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", ""), std::nullopt);
  EXPECT_EQ(retry_after("-4", ""), std::nullopt);
  EXPECT_EQ(retry_after("4", R"({"kind":"Status","code":429,"details":{"retryAfterSeconds":9}})"),
            absl::Seconds(9));
}

TEST(IsNotFound, IsOnlyWhatAnApiServerSaid) {
  EXPECT_FALSE(kube::IsNotFound(absl::NotFoundError("a file is missing")));
  EXPECT_FALSE(IsGone(absl::OutOfRangeError("past the end")));
  EXPECT_FALSE(IsConflict(absl::AbortedError("no")));
  EXPECT_FALSE(kube::IsAlreadyExists(absl::AlreadyExistsError("no")));
  EXPECT_EQ(ToApiError(absl::NotFoundError("a file is missing")), std::nullopt);
  EXPECT_EQ(ToApiError(absl::OkStatus()), std::nullopt);
  EXPECT_TRUE(IsGone(ToStatus(ApiError{.code = 410, .reason = "Expired"})));
}

}  // namespace
}  // namespace trainyard::kube
