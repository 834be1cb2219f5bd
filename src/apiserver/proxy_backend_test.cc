#include "apiserver/proxy_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/stored_object.h"
#include "base/clock.h"
#include "base/text.h"
#include "kube/error.h"
#include "kv/memory_store.h"

namespace trainyard::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Document JsonAnswer(std::string_view text) { return ParseJson(text).value(); }

constexpr std::string_view kEndpoints = R"({"metadata":{"name":"web"},"subsets":[
    {"addresses":[{"ip":"127.0.0.5","targetRef":{"namespace":"ns","name":"a"}},
                  {"ip":"127.0.0.6","targetRef":{"namespace":"ns","name":"b"}}],
     "notReadyAddresses":[{"ip":"127.0.0.7","targetRef":{"namespace":"ns","name":"c"}}],
     "ports":[{"name":"http","port":8080},{"name":"other","port":9090}]},
    {"addresses":[{"ip":"127.0.0.8"}],"ports":[{"name":"http","port":8081}]}]})";

TEST(ProxyBackend, FindsThePortOfAServiceByItsNumber) {
  const Document service = JsonAnswer(R"({"metadata":{"name":"web"},"spec":{"ports":[
      {"name":"http","port":80},{"name":"other","port":90}]}})");
  EXPECT_EQ(*PortName(service, "90"), "other");
  EXPECT_EQ(*PortName(service, "http"), "http") << "a name is its own";
  EXPECT_EQ(*PortName(service, ""), "");
  const kube::ApiError error = *kube::ToApiError(PortName(service, "81").status());
  EXPECT_EQ(error.code, 503);
  EXPECT_EQ(error.message, R"(no service port 81 found for service "web")");
}

TEST(ProxyBackend, ListsTheReadyAddressesOfThePort) {
  EXPECT_THAT(CandidatesOf(JsonAnswer(kEndpoints), "http"),
              ElementsAre(ProxyCandidate{{"127.0.0.5", 8080}, "ns", "a"},
                          ProxyCandidate{{"127.0.0.6", 8080}, "ns", "b"},
                          ProxyCandidate{{"127.0.0.8", 8081}, "", ""}));
  EXPECT_THAT(CandidatesOf(JsonAnswer(kEndpoints), "other"),
              ElementsAre(ProxyCandidate{{"127.0.0.5", 9090}, "ns", "a"},
                          ProxyCandidate{{"127.0.0.6", 9090}, "ns", "b"}));
  EXPECT_TRUE(CandidatesOf(JsonAnswer(kEndpoints), "").empty()) << "a port with a name is asked for by it";
  EXPECT_TRUE(CandidatesOf(JsonAnswer("{}"), "http").empty());
}

TEST(ProxyBackend, ChoosesThePortOfAPod) {
  const Document pod = JsonAnswer(R"({"spec":{"containers":[{"name":"a"},
      {"name":"b","ports":[{"containerPort":7000},{"containerPort":7001}]}]}})");
  EXPECT_EQ(*PodPort(pod, "8080"), 8080);
  EXPECT_EQ(*PodPort(pod, ""), 7000);
  EXPECT_EQ(*PodPort(JsonAnswer(R"({"spec":{"containers":[{"name":"a"}]}})"), ""), 80);
  for (const char* wrong : {"http", "0", "65536", "-1", "80x"}) {
    EXPECT_EQ(kube::ToApiError(PodPort(pod, wrong).status())->code, 400) << wrong;
  }
}

class FindBackends : public testing::Test {
 protected:
  void Put(std::string_view plural, std::string_view name, std::string_view json) {
    ASSERT_TRUE(store_->Put(StoreKey("", plural, "ns", name), EncodeStored(JsonAnswer(json))).ok());
  }
  void PutPod(std::string_view name, std::string_view ip) {
    Put("pods", name,
        StrCat(R"({"metadata":{"name":")", name, R"("},"status":{"podIPs":[{"ip":")", ip, R"("}],"podIP":")",
               ip, R"("}})"));
  }
  std::string Found(std::string_view rest, std::size_t turn = 0) {
    const auto target = ParseProxyTarget(StrCat("/api/v1/namespaces/ns/", rest, "/proxy/"));
    const auto found = FindBackend(*store_, *ResourceTable::BuiltIn(), **target, turn);
    if (found.ok()) return StrCat(found->ip, ":", found->port);
    const kube::ApiError error = *kube::ToApiError(found.status());
    return StrCat(error.code, " ", error.reason, ": ", error.message);
  }

  ManualClock clock_;
  std::unique_ptr<kv::LocalStore> store_ = kv::NewMemoryStore(clock_);
};

TEST_F(FindBackends, TakeThePodsOfAServiceInTurn) {
  Put("endpoints", "web", kEndpoints);
  PutPod("a", "127.0.0.5");
  PutPod("b", "127.0.0.6");
  EXPECT_EQ(Found("services/web:http", 0), "127.0.0.5:8080");
  EXPECT_EQ(Found("services/web:http", 1), "127.0.0.6:8080");
  EXPECT_EQ(Found("services/web:http", 2), "127.0.0.5:8080") << "127.0.0.8 is no pod's";
}

TEST_F(FindBackends, PassOverAddressesThatAreNotThePodsOwn) {
  Put("endpoints", "web", kEndpoints);
  PutPod("a", "127.0.0.99");
  EXPECT_EQ(Found("services/web:http"),
            R"(503 ServiceUnavailable: no endpoints available for service "web:http")");
}

TEST_F(FindBackends, SayWhatIsMissing) {
  EXPECT_EQ(Found("services/web:80"), R"(404 NotFound: services "web" not found)");
  EXPECT_EQ(Found("services/web:http"), R"(404 NotFound: endpoints "web" not found)");
  EXPECT_EQ(Found("services/web"), R"(404 NotFound: endpoints "web" not found)");
  EXPECT_EQ(Found("pods/web"), R"(404 NotFound: pods "web" not found)");
  Put("endpoints", "web", R"({"metadata":{"name":"web"}})");
  EXPECT_EQ(Found("services/web:http"),
            R"(503 ServiceUnavailable: no endpoints available for service "web")");
  Put("pods", "web", R"({"metadata":{"name":"web"},"status":{}})");
  EXPECT_THAT(Found("pods/web"), HasSubstr("400 BadRequest: address not allowed"));
}

TEST_F(FindBackends, LeadToAPodAtItsOwnAddress) {
  PutPod("a", "127.0.0.5");
  EXPECT_EQ(Found("pods/a:8080"), "127.0.0.5:8080");
}

}  // namespace
}  // namespace trainyard::apiserver
