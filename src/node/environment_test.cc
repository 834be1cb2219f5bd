#include "node/environment.h"

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/plan_testing.h"

namespace trainyard::node {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

struct ExpandCase {
  std::string_view text;
  std::string_view expanded;
};

class Expansion : public testing::TestWithParam<ExpandCase> {};

TEST_P(Expansion, FollowsKubernetesRules) {
  const StringMap variables = {{"A", "1"}, {"B", "two"}, {"EMPTY", ""}, {"REF", "$(A)"}};
  EXPECT_EQ(ExpandVariables({std::string(GetParam().text)}, variables)[0], GetParam().expanded);
}

INSTANTIATE_TEST_SUITE_P(Table, Expansion,
                         testing::Values(ExpandCase{"$(A)", "1"},
                                         ExpandCase{"___$(A)___$(B)___", "___1___two___"},
                                         ExpandCase{"$(A)$(B)", "1two"}, ExpandCase{"$(EMPTY)", ""},
                                         ExpandCase{"$(MISSING)", "$(MISSING)"}, ExpandCase{"$$(A)", "$(A)"},
                                         ExpandCase{"$$$(A)", "$1"}, ExpandCase{"$$$$(A)", "$$(A)"},
                                         ExpandCase{"$A", "$A"}, ExpandCase{"$", "$"}, ExpandCase{"a$", "a$"},
                                         ExpandCase{"$$", "$"}, ExpandCase{"$(A", "$(A"},
                                         ExpandCase{"$(", "$("}, ExpandCase{"$()", "$()"},
                                         ExpandCase{"$(A$(B)", "$(A$(B)"}, ExpandCase{"$(REF)", "$(A)"},
                                         ExpandCase{"f000-$((A))", "f000-$((A))"}, ExpandCase{"", ""},
                                         ExpandCase{"$?, $!", "$?, $!"}));

class Environment : public testing::Test {
 protected:
  // The environment of the first container of a pod with this spec.
  absl::StatusOr<StringMap> Build(std::string_view container) {
    const auto pod = ParseJson(
        StrCat(R"({"metadata":{"name":"p","namespace":"ns","uid":"u1","labels":{"app":"web","b":"x\"y"},)",
               R"("annotations":{"note":"n"}},"spec":{"nodeName":"n1","serviceAccountName":"sa",)",
               R"("enableServiceLinks":)", links_ ? "true" : "false", R"(,"containers":[{"name":"main",)",
               container, R"(},{"name":"other","resources":{"limits":{"cpu":"2"}}}]}})"));
    EXPECT_TRUE(pod.ok()) << pod.status();
    const auto spec = ParsePodSpec(*pod);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return BuildEnvironment(*spec, spec->containers[0], objects_, facts_);
  }

  bool links_ = true;
  ClusterObjects objects_;
  PodFacts facts_{.pod_ip = "127.64.0.1", .host_ip = "127.0.0.1"};
};

TEST_F(Environment, RefersToWhatWasDeclaredBefore) {
  const auto env =
      Build(R"j("env":[{"name":"A","value":"1"},{"name":"B","value":"$(A)$(C)"},{"name":"C","value":"3"}])j");
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->at("B"), "1$(C)") << "C comes later";
}

TEST_F(Environment, HasTheFieldsOfThePod) {
  const struct {
    std::string_view path;
    std::string_view value;
  } cases[] = {{"metadata.name", "p"},
               {"metadata.namespace", "ns"},
               {"metadata.uid", "u1"},
               {"metadata.labels", "app=\"web\"\nb=\"x\\\"y\""},
               {"metadata.labels['app']", "web"},
               {"metadata.labels['none']", ""},
               {"metadata.annotations['note']", "n"},
               {"spec.nodeName", "n1"},
               {"spec.serviceAccountName", "sa"},
               {"status.hostIP", "127.0.0.1"},
               {"status.podIP", "127.64.0.1"},
               {"status.podIPs", "127.64.0.1"}};
  for (const auto& c : cases) {
    const auto env =
        Build(StrCat(R"("env":[{"name":"F","valueFrom":{"fieldRef":{"fieldPath":")", c.path, R"("}}}])"));
    ASSERT_TRUE(env.ok()) << env.status();
    EXPECT_EQ(env->at("F"), c.value) << c.path;
  }
  EXPECT_THAT(
      Message(Build(R"("env":[{"name":"F","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}])").status()),
      HasSubstr("unsupported fieldPath: spec.x"));
}

TEST_F(Environment, HasItsResourcesRoundedUp) {
  facts_.allocatable = {{"memory", kube::Quantity::FromUnits(1000)}};
  const std::string resources =
      R"("resources":{"limits":{"cpu":"1500m"},"requests":{"memory":"100Mi"}},"env":[{"name":"R",)";
  const auto value = [&](std::string_view ref) {
    const auto env = Build(StrCat(resources, R"("valueFrom":{"resourceFieldRef":)", ref, "}}]"));
    return env.ok() ? env->at("R") : std::string(Message(env.status()));
  };
  EXPECT_EQ(value(R"({"resource":"limits.cpu"})"), "2");
  EXPECT_EQ(value(R"({"resource":"limits.cpu","divisor":"1m"})"), "1500");
  EXPECT_EQ(value(R"({"resource":"limits.cpu","divisor":"0"})"), "2")
      << "0 is what the API server defaults to";
  EXPECT_EQ(value(R"({"resource":"requests.memory","divisor":"1Mi"})"), "100");
  EXPECT_EQ(value(R"({"resource":"requests.memory","divisor":"30Mi"})"), "4");
  EXPECT_EQ(value(R"({"resource":"requests.cpu"})"), "0");
  EXPECT_EQ(value(R"({"resource":"limits.memory"})"), "1000") << "the node's, where there is no limit";
  EXPECT_EQ(value(R"({"resource":"limits.cpu","containerName":"other"})"), "2");
  EXPECT_THAT(value(R"({"resource":"limits.beer"})"), HasSubstr("limits.beer"));
}

TEST_F(Environment, TakesKeysOfConfigMapsAndSecrets) {
  objects_.config_maps[{"ns", "c"}].data = {{"k", "v"}};
  objects_.secrets[{"ns", "s"}].data = {{"k", "geheim"}};
  objects_.config_maps[{"other", "hidden"}].data = {{"k", "v"}};
  const auto env = Build(R"j("env":[{"name":"C","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}},
      {"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},
      {"name":"O","valueFrom":{"secretKeyRef":{"name":"none","key":"k","optional":true}}},
      {"name":"P","valueFrom":{"configMapKeyRef":{"name":"c","key":"none","optional":true}}},
      {"name":"D","value":"$(C)-$(S)-$(O)"
}])j");
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_THAT(*env, Contains(Pair("D", "v-geheim-$(O)")));
  EXPECT_THAT(*env, Not(Contains(Key("O"))));
  EXPECT_THAT(*env, Not(Contains(Key("P"))));
}

TEST_F(Environment, SaysWhatIsMissingAsAKubeletDoes) {
  objects_.config_maps[{"ns", "c"}];
  objects_.secrets[{"ns", "s"}];
  const auto error = [this](std::string_view container) {
    return std::string(Message(Build(container).status()));
  };
  EXPECT_EQ(error(R"("env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"none","key":"k"}}}])"),
            "configmap \"none\" not found");
  EXPECT_EQ(error(R"("env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"none","key":"k"}}}])"),
            "secret \"none\" not found");
  EXPECT_EQ(error(R"("env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}])"),
            "couldn't find key k in ConfigMap ns/c");
  EXPECT_EQ(error(R"("env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])"),
            "couldn't find key k in Secret ns/s");
  EXPECT_EQ(error(R"("envFrom":[{"configMapRef":{"name":"none"}}])"), "configmap \"none\" not found");
}

TEST_F(Environment, TakesAllKeysWithAPrefixAndLetsEnvWin) {
  objects_.config_maps[{"ns", "c"}].data = {{"A", "1"}, {"B", "2"}, {"0bad", "x"}, {"ok.dot-dash", "y"}};
  objects_.secrets[{"ns", "s"}].data = {{"B", "secret"}};
  const auto env =
      Build(R"j("envFrom":[{"configMapRef":{"name":"c"}},{"prefix":"P_","configMapRef":{"name":"c"}},
      {"secretRef":{"name":"s"}},{"configMapRef":{"name":"none","optional":true}}],
      "env":[{"name":"A","value":"own-$(B)"
}])j");
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->at("A"), "own-secret") << "the later source of B wins";
  EXPECT_EQ(env->at("P_B"), "2");
  EXPECT_EQ(env->at("P_0bad"), "x") << "with the prefix it is a name";
  EXPECT_EQ(env->at("ok.dot-dash"), "y");
  EXPECT_THAT(*env, Not(Contains(Key("0bad"))));
}

TEST_F(Environment, NamesServicesInBothFashions) {
  objects_.services[{"ns", "my-web"}] = {
      .cluster_ip = "127.1.0.5",
      .ports = {{.name = "http-x", .port = 80}, {.name = "d", .port = 53, .protocol = "UDP"}}};
  objects_.services[{"ns", "headless"}] = {.cluster_ip = "None", .ports = {{.port = 1}}};
  objects_.services[{"other", "away"}] = {.cluster_ip = "127.1.0.6", .ports = {{.port = 1}}};
  objects_.services[{"default", "kubernetes"}] = {.cluster_ip = "127.0.0.1",
                                                  .ports = {{.name = "https", .port = 6443}}};
  auto env = Build(R"j("env":[{"name":"U","value":"http://$(MY_WEB_SERVICE_HOST)"
},{"name":"MY_WEB_PORT","value":"mine"}])j");
  ASSERT_TRUE(env.ok()) << env.status();
  const StringMap expected = {{"KUBERNETES_PORT", "tcp://127.0.0.1:6443"},
                              {"KUBERNETES_PORT_6443_TCP", "tcp://127.0.0.1:6443"},
                              {"KUBERNETES_PORT_6443_TCP_ADDR", "127.0.0.1"},
                              {"KUBERNETES_PORT_6443_TCP_PORT", "6443"},
                              {"KUBERNETES_PORT_6443_TCP_PROTO", "tcp"},
                              {"KUBERNETES_SERVICE_HOST", "127.0.0.1"},
                              {"KUBERNETES_SERVICE_PORT", "6443"},
                              {"KUBERNETES_SERVICE_PORT_HTTPS", "6443"},
                              {"MY_WEB_PORT", "mine"},
                              {"MY_WEB_PORT_53_UDP", "udp://127.1.0.5:53"},
                              {"MY_WEB_PORT_53_UDP_ADDR", "127.1.0.5"},
                              {"MY_WEB_PORT_53_UDP_PORT", "53"},
                              {"MY_WEB_PORT_53_UDP_PROTO", "udp"},
                              {"MY_WEB_PORT_80_TCP", "tcp://127.1.0.5:80"},
                              {"MY_WEB_PORT_80_TCP_ADDR", "127.1.0.5"},
                              {"MY_WEB_PORT_80_TCP_PORT", "80"},
                              {"MY_WEB_PORT_80_TCP_PROTO", "tcp"},
                              {"MY_WEB_SERVICE_HOST", "127.1.0.5"},
                              {"MY_WEB_SERVICE_PORT", "80"},
                              {"MY_WEB_SERVICE_PORT_D", "53"},
                              {"MY_WEB_SERVICE_PORT_HTTP_X", "80"},
                              {"U", "http://127.1.0.5"}};
  EXPECT_EQ(*env, expected);
  links_ = false;
  env = Build(R"("env":[])");
  ASSERT_TRUE(env.ok());
  EXPECT_THAT(*env, Not(Contains(Key("MY_WEB_SERVICE_HOST"))));
  EXPECT_THAT(*env, Contains(Key("KUBERNETES_SERVICE_HOST"))) << "the API server's is there always";
}

TEST_F(Environment, AreBoundedHoweverTheyReferToEachOther) {
  std::string env = R"({"name":"A0","value":"fifteen letters"})";
  for (int i = 1; i <= 8; ++i) {
    StrAppend(env, R"(,{"name":"A)", i, R"(","value":")");
    for (int times = 0; times < 10; ++times) StrAppend(env, "$(A", i - 1, ")");
    StrAppend(env, R"("})");
  }
  const auto built = Build(StrCat(R"("env":[)", env, "]"));
  EXPECT_TRUE(absl::IsInvalidArgument(built.status())) << "a billion letters";
  EXPECT_THAT(std::string(Message(built.status())), testing::HasSubstr("A4 is longer than"));
}

}  // namespace
}  // namespace trainyard::node
