#include "kube/kubeconfig.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/status.h"
#include "base/text.h"
#include "tests/support/temp_folder.h"

namespace trainyard::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::TempFolder;

class LoadConfigTest : public testing::Test {
 protected:
  std::string Write(std::string_view name, std::string_view text) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }

  absl::StatusOr<ClusterConfig> Load(LoadOptions options = {}) {
    options.environment = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
    options.clock = &clock_;
    options.service_account_folder = folder_ / "serviceaccount";
    return LoadConfig(options);
  }

  // One cluster, one user, one context that is current.
  std::string WriteOne(std::string_view cluster, std::string_view user) {
    return Write("one",
                 StrCat("clusters: [{name: c, cluster: ", cluster, "}]\nusers: [{name: u, user: ", user,
                        "}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"));
  }
  absl::StatusOr<ClusterConfig> LoadOne(std::string_view cluster, std::string_view user) {
    return Load({.path = WriteOne(cluster, user)});
  }

  TempFolder folder_;
  ManualClock clock_;
  std::map<std::string, std::string> environment_;
};

constexpr char kTwo[] = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: c1, cluster: {server: "https://1.example:6443/"}}
- {name: c2, cluster: {server: "https://2.example", tls-server-name: name.example}}
users:
- {name: u1, user: {token: secret}}
contexts:
- {name: one, context: {cluster: c1, user: u1}}
- {name: two, context: {cluster: c2, user: u1, namespace: jobs}}
)";

TEST_F(LoadConfigTest, TakesTheCurrentContextOrTheOneAskedFor) {
  const std::string path = Write("config", kTwo);
  const auto one = Load({.path = path});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->context, "one");
  EXPECT_EQ(one->server, "https://1.example:6443");
  EXPECT_EQ(one->ns, "default");
  EXPECT_FALSE(one->insecure);
  EXPECT_EQ(one->credentials->Get().value(), (Credential{.headers = {BearerHeader("secret")}}));
  const auto two = Load({.path = path, .context = "two"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->server, "https://2.example");
  EXPECT_EQ(two->tls_server_name, "name.example");
  EXPECT_EQ(two->ns, "jobs");
}

TEST_F(LoadConfigTest, ListsTheContextsThatExistForAWrongName) {
  const absl::Status status = Load({.path = Write("config", kTwo), .context = "three"}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("\"three\""), HasSubstr("one, two"), HasSubstr(folder_ / "config")));
  const absl::Status unset =
      Load({.path = Write("none", "contexts: [{name: a, context: {cluster: c}}]")}).status();
  EXPECT_THAT(Message(unset), AllOf(HasSubstr("no current context"), HasSubstr("there are: a")));
}

TEST_F(LoadConfigTest, LooksInTheHomeFolder) {
  environment_["HOME"] = folder_.path();
  Write(".kube/config", kTwo);
  EXPECT_EQ(Load().value().context, "one");
}

TEST_F(LoadConfigTest, PutsTheFilesOfKubeconfigTogetherFirstOneFirst) {
  environment_["HOME"] = folder_.path();
  Write(".kube/config", "current-context: never-read\n");
  const std::string first = Write("a/first", R"(
contexts: [{name: two, context: {cluster: c2, user: u1, namespace: mine}}]
current-context: two
)");
  const std::string second = Write("b/second", kTwo);
  environment_["KUBECONFIG"] = StrCat(folder_ / "missing", ":", first, "::", second);
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context, "two");
  EXPECT_EQ(config->ns, "mine");
  EXPECT_EQ(config->server, "https://2.example");
  EXPECT_EQ(Load({.context = "one"}).value().server, "https://1.example:6443");
}

TEST_F(LoadConfigTest, TakesPathsRelativeToTheFileThatHasThem) {
  Write("a/pki/ca.crt", "CA");
  Write("a/pki/me.crt", "CERT");
  Write("a/pki/me.key", "KEY");
  Write("a/token", "from file\n");
  const std::string path = Write("a/config", R"(
clusters: [{name: c, cluster: {server: "https://x", certificate-authority: pki/ca.crt}}]
users: [{name: u, user: {client-certificate: ./pki/me.crt, client-key: pki/me.key, tokenFile: token, token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)");
  const auto config = Load({.path = path});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(
      config->credentials->Get().value(),
      (Credential{.headers = {BearerHeader("from file")}, .certificate_pem = "CERT", .key_pem = "KEY"}));
}

TEST_F(LoadConfigTest, TakesDataBeforeFiles) {
  const auto config = LoadOne(
      StrCat("{server: \"https://x\", certificate-authority: missing, certificate-authority-data: ",
             EncodeBase64("CA"), "}"),
      StrCat("{client-certificate-data: ", EncodeBase64("C"), ", client-key-data: ", EncodeBase64("K"), "}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->credentials->Get().value(), (Credential{.certificate_pem = "C", .key_pem = "K"}));
}

TEST_F(LoadConfigTest, PresentsEachUserAsItsEntrySays) {
  const std::pair<const char*, Credential> cases[] = {
      {"{}", {}},
      {"{token: t}", {.headers = {BearerHeader("t")}}},
      {"{username: u, password: p}", {.headers = {BasicHeader("u", "p")}}},
      {"{token: t, username: u, password: p}", {.headers = {BearerHeader("t")}}},
      {"{token: t, as: bob, as-uid: \"7\", as-groups: [a, b], as-user-extra: {x/y: [z]}}",
       {.headers = {{"Impersonate-User", "bob"},
                    {"Impersonate-Uid", "7"},
                    {"Impersonate-Group", "a"},
                    {"Impersonate-Group", "b"},
                    {"Impersonate-Extra-x%2Fy", "z"},
                    BearerHeader("t")}}},
  };
  for (const auto& [user, credential] : cases) {
    const auto config = LoadOne("{server: \"https://x\"}", user);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->credentials->Get().value(), credential) << user;
  }
}

TEST_F(LoadConfigTest, GuessesTheSchemeOfAServerWithoutOne) {
  EXPECT_EQ(LoadOne("{server: \"x:8080\"}", "{}").value().server, "http://x:8080");
  EXPECT_EQ(LoadOne("{server: \"x:6443\", insecure-skip-tls-verify: true}", "{}").value().server,
            "https://x:6443");
}

TEST_F(LoadConfigTest, NeedsNoUser) {
  const std::string path = Write("config", R"(
clusters: [{name: c, cluster: {server: "http://127.0.0.1:8001"}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
)");
  EXPECT_EQ(Load({.path = path}).value().credentials->Get().value(), Credential());
}

TEST_F(LoadConfigTest, SaysWhatIsWrongInWhichFile) {
  const std::string ca = EncodeBase64("CA");
  const struct {
    std::string cluster;
    std::string user;
    const char* error;
  } cases[] = {
      {"{}", "{}", "cluster \"c\" has no server"},
      {"{server: \"ftp://x\"}", "{}", "neither http nor https"},
      {StrCat("{server: \"https://x\", insecure-skip-tls-verify: true, certificate-authority-data: ", ca,
              "}"),
       "{}", "both a certificate-authority and insecure-skip-tls-verify"},
      {"{server: \"https://x\", certificate-authority-data: \"***\"}", "{}",
       "certificate-authority-data is not base 64"},
      {"{server: \"https://x\", certificate-authority: nowhere.crt}", "{}", "nowhere.crt"},
      {"{server: \"https://x\"}", "{client-key-data: aGVsbG8=}",
       "client-certificate and client-key without the other"},
      {"{server: \"https://x\"}", "{auth-provider: {name: gcp}}", "use an exec plugin"},
      {"{server: \"https://x\"}", "{token: \"a\\nb\"}", "line break"},
      {"{server: \"https://x\"}", "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}",
       "v1 and v1beta1 are understood"},
      {"{server: \"https://x\"}", "{exec: {apiVersion: client.authentication.k8s.io/v1}}", "without command"},
  };
  for (const auto& c : cases) {
    const absl::Status status = LoadOne(c.cluster, c.user).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.error << ": " << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr(c.error), HasSubstr(folder_ / "one")));
  }
}

TEST_F(LoadConfigTest, NamesWhatAContextPointsToAndWhatThereIs) {
  const absl::Status cluster = Load({.path = Write("a", R"(
clusters: [{name: c1, cluster: {}}, {name: c2, cluster: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)")})
                                   .status();
  EXPECT_THAT(Message(cluster), HasSubstr("there is no cluster \"c\"; there are: c1, c2"));
  const absl::Status user = Load({.path = Write("b", R"(
clusters: [{name: c, cluster: {server: "https://x"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)")})
                                .status();
  EXPECT_THAT(Message(user), HasSubstr("there is no user \"u\"; there are: none"));
}

TEST_F(LoadConfigTest, RefusesFilesThatAreNoKubeconfigs) {
  for (const char* text : {"a: [", "- 1", "just text", "clusters: 5", "clusters: [{cluster: {}}]"}) {
    const absl::Status status = Load({.path = Write("bad", text)}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_THAT(Message(status), HasSubstr(folder_ / "bad")) << text;
  }
  EXPECT_TRUE(absl::IsNotFound(Load({.path = folder_ / "missing"}).status()));
}

TEST_F(LoadConfigTest, FindsTheClusterOfItsPod) {
  environment_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                  {"KUBERNETES_SERVICE_PORT", "443"},
                  {"HOME", folder_ / "nobody"}};
  Write("serviceaccount/ca.crt", "CA");
  Write("serviceaccount/namespace", "jobs\n");
  Write("serviceaccount/token", "one");
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->ns, "jobs");
  EXPECT_EQ(config->context, "");
  Write("serviceaccount/token", "two");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(config->credentials->Get().value(), (Credential{.headers = {BearerHeader("two")}}));
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(Load().value().server, "https://[fd00::1]:443");
}

TEST_F(LoadConfigTest, PrefersAKubeconfigToItsPod) {
  environment_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  environment_["KUBECONFIG"] = Write("config", kTwo);
  EXPECT_EQ(Load().value().context, "one");
  environment_["KUBECONFIG"] = folder_ / "missing";
  EXPECT_THAT(Message(Load({.context = "one"}).status()), HasSubstr("there is no context \"one\""))
      << "a pod has no contexts";
}

TEST_F(LoadConfigTest, SaysWhatAPodLacks) {
  environment_ = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_THAT(Message(Load().status()), AllOf(HasSubstr("no service account"), HasSubstr("ca.crt")));
  Write("serviceaccount/ca.crt", "CA");
  EXPECT_TRUE(absl::IsUnauthenticated(Load().status()));
}

TEST_F(LoadConfigTest, SaysWhereItLookedWhenThereIsNothing) {
  environment_["HOME"] = folder_.path();
  const absl::Status status = Load().status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr(StrCat(folder_.path(), "/.kube/config")));
}

}  // namespace
}  // namespace trainyard::kube
