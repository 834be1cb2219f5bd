#include "apiserver/proxy_target.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kServices = "/api/v1/namespaces/ns/services/";

std::string ShownTarget(std::string_view target) {
  const auto parsed = ParseProxyTarget(target);
  if (!parsed.ok()) return StrCat("error: ", Message(parsed.status()));
  if (!*parsed) return "none";
  const ProxyTarget& t = **parsed;
  return StrCat(t.plural, " ", t.ns, " ", t.scheme, "|", t.name, "|", t.port, " ", t.path, t.query);
}
std::string OfService(std::string_view rest) { return ShownTarget(StrCat(kServices, rest)); }

TEST(ProxyTarget, ReadsServiceAndPortInEveryForm) {
  EXPECT_EQ(OfService("web/proxy/"), "services ns |web| /");
  EXPECT_EQ(OfService("web:80/proxy/"), "services ns |web|80 /");
  EXPECT_EQ(OfService("web:http/proxy/"), "services ns |web|http /");
  EXPECT_EQ(OfService("http:web:80/proxy/"), "services ns http|web|80 /");
  EXPECT_EQ(OfService("https:web:/proxy/"), "services ns https|web| /");
  EXPECT_EQ(OfService("web%3A80/proxy/"), "services ns |web|80 /");
  EXPECT_EQ(ShownTarget("/api/v1/namespaces/ns/pods/p-0:8080/proxy/a"), "pods ns |p-0|8080 /a");
}

TEST(ProxyTarget, TakesAnIdOfTwoPartsForNameAndPort) {
  EXPECT_EQ(OfService("http:web/proxy/"), "services ns |http|web /");
}

TEST(ProxyTarget, KeepsPathAndQueryAsTheyCame) {
  EXPECT_EQ(OfService("web/proxy/a%2Fb/c%20d?x=%ff&y=a+b"), "services ns |web| /a%2Fb/c%20d?x=%ff&y=a+b");
  EXPECT_EQ(OfService("web/proxy/a/proxy/b"), "services ns |web| /a/proxy/b");
  EXPECT_EQ(OfService("web/proxy/a/?"), "services ns |web| /a/?");
}

TEST(ProxyTarget, TellsNoPathFromTheRoot) {
  EXPECT_EQ(OfService("web/proxy"), "services ns |web| ");
  EXPECT_EQ(OfService("web/proxy?x=1"), "services ns |web| ?x=1");
  EXPECT_EQ(OfService("web/proxy/?x=1"), "services ns |web| /?x=1");
}

TEST(ProxyTarget, LeadsNobodyOutOfTheBackend) {
  EXPECT_EQ(OfService("web/proxy/a/../b"), "services ns |web| /b");
  EXPECT_EQ(OfService("web/proxy/../../x"), "services ns |web| /x");
  EXPECT_EQ(OfService("web/proxy/%2e%2E/x/./y//z/"), "services ns |web| /x/y/z/");
  EXPECT_EQ(OfService("web/proxy/a/.."), "services ns |web| /");
}

TEST(ProxyTarget, LeavesOtherPathsAlone) {
  for (const char* other :
       {"/api/v1/namespaces/ns/services/web", "/api/v1/namespaces/ns/services/web/status",
        "/api/v1/namespaces/ns/services/web/proxyish/", "/api/v1/namespaces/ns/services//proxy/",
        "/api/v1/namespaces//services/web/proxy/", "/api/v1/namespaces/ns/configmaps/web/proxy/",
        "/api/v1/services/web/proxy/", "/apis/a/v1/namespaces/ns/services/web/proxy/", "/", "",
        "/api/v1/namespaces/ns/services?x=/web/proxy/"}) {
    EXPECT_EQ(ShownTarget(other), "none") << other;
    EXPECT_FALSE(IsProxyTarget(other)) << other;
  }
  EXPECT_TRUE(IsProxyTarget("/api/v1/namespaces/ns/pods/p/proxy"));
  EXPECT_TRUE(IsProxyTarget("/api/v1/namespaces/ns/pods/a:b:c:d/proxy/")) << "also if it is wrong";
}

TEST(ProxyTarget, RefusesWhatNamesNothing) {
  for (const char* id : {"ftp:web:80", "a:b:c:d", ":80", "http::80", "a%2Fb"}) {
    const auto parsed = ParseProxyTarget(StrCat(kServices, id, "/proxy/"));
    ASSERT_FALSE(parsed.ok()) << id;
    EXPECT_EQ(kube::ToApiError(parsed.status())->code, 400) << id;
    EXPECT_NE(parsed.status().message().find("invalid service request"), absl::string_view::npos);
  }
  EXPECT_FALSE(ParseProxyTarget(StrCat(kServices, "web/proxy/%zz")).ok());
  EXPECT_FALSE(ParseProxyTarget(StrCat(kServices, "w%00b/proxy/")).ok());
}

}  // namespace
}  // namespace trainyard::apiserver
