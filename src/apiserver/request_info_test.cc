#include "apiserver/request_info.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

absl::StatusOr<std::optional<RequestInfo>> Parse(std::string_view method, std::string_view target) {
  const auto parsed = ParseTarget(target);
  if (!parsed.ok()) return parsed.status();
  return ParseResourceRequest(method, *parsed);
}

std::string Shown(std::string_view method, std::string_view target) {
  const auto info = Parse(method, target);
  if (!info.ok()) return StrCat("error ", kube::ToApiError(info.status()).value_or(kube::ApiError{}).code);
  if (!*info) return "none";
  const RequestInfo& i = **info;
  return StrCat(PrintVerb(i.verb), " ", i.group, "/", i.version, " ", i.plural, " ns=", i.ns,
                " name=", i.name, " sub=", i.subresource);
}

TEST(RequestInfo, ReadsWhatAPathAndMethodMean) {
  EXPECT_EQ(Shown("GET", "/api/v1/pods"), "list /v1 pods ns= name= sub=");
  EXPECT_EQ(Shown("GET", "/api/v1/namespaces/default/pods/x"), "get /v1 pods ns=default name=x sub=");
  EXPECT_EQ(Shown("GET", "/api/v1/namespaces/default/pods/x/log?follow=true"),
            "get /v1 pods ns=default name=x sub=log");
  EXPECT_EQ(Shown("POST", "/api/v1/namespaces/default/pods/x/binding"),
            "create /v1 pods ns=default name=x sub=binding");
  EXPECT_EQ(Shown("GET", "/api/v1/namespaces"), "list /v1 namespaces ns= name= sub=");
  EXPECT_EQ(Shown("GET", "/api/v1/namespaces/default"), "get /v1 namespaces ns= name=default sub=");
  EXPECT_EQ(Shown("PUT", "/api/v1/namespaces/default/finalize"),
            "update /v1 namespaces ns= name=default sub=finalize");
  EXPECT_EQ(Shown("GET", "/apis/a.b/v1/namespaces/n/things?watch=1"), "watch a.b/v1 things ns=n name= sub=");
  EXPECT_EQ(Shown("DELETE", "/apis/a.b/v1/namespaces/n/things"),
            "deletecollection a.b/v1 things ns=n name= sub=");
  EXPECT_EQ(Shown("PATCH", "/apis/a.b/v1/namespaces/n/things/t/status"),
            "patch a.b/v1 things ns=n name=t sub=status");
  EXPECT_EQ(Shown("GET", "/apis/a.b/v1"), "none");
  EXPECT_EQ(Shown("GET", "/version"), "none");
}

TEST(RequestInfo, RefusesMethodsThatMeanNothingThere) {
  EXPECT_EQ(Shown("PUT", "/api/v1/namespaces/default/pods"), "error 405");
  EXPECT_EQ(Shown("POST", "/api/v1/namespaces/default/pods/x"), "error 405");
  EXPECT_EQ(Shown("BREW", "/api/v1/pods"), "error 405");
  EXPECT_EQ(Shown("GET", "/api/v1/namespaces/default/pods/x/log/more"), "error 404");
}

TEST(RequestInfo, RefusesEscapesThatAreNone) {
  EXPECT_FALSE(ParseTarget("/api/v1/pods/%zz").ok());
  EXPECT_FALSE(ParseTarget("/api?labelSelector=%1").ok());
}

TEST(Query, TellsAbsentFromWrong) {
  const auto query = Query::Parse("limit=5&watch=true&empty=&bad=-1&x=a%2Cb+c&dryRun=All&dryRun=More");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(**query->Number("limit"), 5);
  EXPECT_EQ(*query->Number("missing"), std::nullopt);
  EXPECT_FALSE(query->Number("bad").ok());
  EXPECT_TRUE(query->Flag("watch"));
  EXPECT_TRUE(query->Has("empty"));
  EXPECT_EQ(query->Get("x"), "a,b c");
  EXPECT_EQ(query->All("dryRun").size(), 2U);
}

}  // namespace
}  // namespace trainyard::apiserver
