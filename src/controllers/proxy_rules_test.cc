#include "base/text.h"
#include "controllers/proxy_feed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

kube::CompactService ServiceWith(std::string_view spec) {
  return ObserveService(StrCat(R"({"metadata":{"name":"s","namespace":"a"},"spec":)", spec, "}")).value();
}
ObservedEndpoints Endpoints(std::string_view subsets) {
  return ObserveEndpoints(StrCat(R"({"metadata":{"name":"s","namespace":"a"},"subsets":)", subsets, "}"))
      .value();
}

TEST(PlanProxy, LeadsEachPortToTheReadyAddressesOfThatPort) {
  const auto service = ServiceWith(R"({"clusterIP":"127.96.0.20","ports":[
      {"name":"web","port":80,"targetPort":8080},{"name":"rpc","port":90,"targetPort":"rpc"}]})");
  const auto endpoints = Endpoints(R"([
      {"addresses":[{"ip":"127.1.0.2"},{"ip":"127.1.0.1"}],"notReadyAddresses":[{"ip":"127.1.0.9"}],
       "ports":[{"name":"web","port":8080},{"name":"rpc","port":9090}]},
      {"addresses":[{"ip":"127.1.0.3"}],"ports":[{"name":"rpc","port":9091}]}])");
  EXPECT_THAT(
      PlanProxy(service, &endpoints).rules,
      ElementsAre(
          ProxyRule{.ip = "127.96.0.20", .port = 80, .backends = {{"127.1.0.1", 8080}, {"127.1.0.2", 8080}}},
          ProxyRule{.ip = "127.96.0.20",
                    .port = 90,
                    .backends = {{"127.1.0.1", 9090}, {"127.1.0.2", 9090}, {"127.1.0.3", 9091}}}));
}

TEST(PlanProxy, HasAPortWithNobodyBehindIt) {
  const auto service =
      ServiceWith(R"({"clusterIP":"127.96.0.20","sessionAffinity":"ClientIP","ports":[{"port":80}]})");
  EXPECT_THAT(PlanProxy(service, nullptr).rules,
              ElementsAre(ProxyRule{.ip = "127.96.0.20", .port = 80, .affinity = true}));
}

TEST(PlanProxy, ServesWhateverTypeHasAnAddressOfThisMachine) {
  for (const char* type : {"ClusterIP", "NodePort", "LoadBalancer"}) {
    const auto service =
        ServiceWith(StrCat(R"({"type":")", type, R"(","clusterIP":"127.96.0.20","ports":[{"port":80}]})"));
    EXPECT_EQ(PlanProxy(service, nullptr).rules.size(), 1u) << type;
  }
  EXPECT_EQ(PlanProxy(ServiceWith(R"({"clusterIP":"None","ports":[{"port":80}]})"), nullptr), ProxyPlan());
  EXPECT_EQ(PlanProxy(ServiceWith(R"({"type":"ExternalName","externalName":"x"})"), nullptr), ProxyPlan());
}

TEST(PlanProxy, SaysWhatItCannotServe) {
  const ProxyPlan foreign =
      PlanProxy(ServiceWith(R"({"clusterIP":"0.0.0.0","ports":[{"port":80}]})"), nullptr);
  EXPECT_THAT(foreign.rules, IsEmpty()) << "nobody outside of this machine is let in";
  EXPECT_EQ(foreign.unserved.size(), 1u);
  const ProxyPlan udp = PlanProxy(
      ServiceWith(R"({"clusterIP":"127.96.0.20","ports":[{"port":53,"protocol":"UDP"}]})"), nullptr);
  EXPECT_THAT(udp.unserved, ElementsAre("port 53/UDP: only TCP is forwarded"));
}

TEST(ChooseFor, KeepsAClientsBackendWhenOthersComeAndGo) {
  std::vector<Backend> backends;
  for (int i = 0; i < 8; ++i) backends.push_back({StrCat("127.1.0.", i), 80});
  std::set<std::size_t> chosen;
  for (int client = 0; client < 64; ++client) {
    const std::string ip = StrCat("127.2.0.", client);
    const std::size_t first = ChooseFor(ip, backends);
    chosen.insert(first);
    for (std::size_t gone = 0; gone < backends.size(); ++gone) {
      if (gone == first) continue;
      std::vector<Backend> fewer = backends;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(gone));
      EXPECT_EQ(fewer[ChooseFor(ip, fewer)], backends[first]);
    }
  }
  EXPECT_GT(chosen.size(), 4u) << "clients are spread over the backends";
}

}  // namespace
}  // namespace trainyard::controllers
