// The client against real servers on loopback: TLS, HTTP/2 and HTTP/1.1, credentials, and connections that
// break.
#include "tests/support/kube_client.h"

#include <signal.h>

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/api.h"
#include "kube/curl_transport.h"
#include "kube/error.h"
#include "tests/support/kube_apiserver.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;
using testing_support::Certificates;
using testing_support::HttpServer;
using testing_support::Protocol;
using testing_support::TempFolder;

INSTANTIATE_TEST_SUITE_P(Protocols, KubeClient,
                         testing::Values(Protocol::kHttp2, Protocol::kHttps1, Protocol::kHttp1),
                         ProtocolName);

TEST_P(KubeClient, CarriesEveryMethodWithItsBody) {
  const char* version = GetParam() == Protocol::kHttp2 ? "2.0" : "1.1";
  // In turns, on handles that have done something else before.
  for (int round = 0; round < 2; ++round) {
    for (const char* method : {"POST", "GET", "PUT", "DELETE", "PATCH"}) {
      const bool get = std::string_view(method) == "GET";
      const auto response = Do(*transport_, {.method = method,
                                             .target = "/echo?a=%2F..",
                                             .body = get ? "" : StrCat("body of ", method),
                                             .content_type = get ? "" : "application/x-test"});
      const Document echo = Json(response);
      EXPECT_EQ(StringAt(echo, {"method"}), method);
      EXPECT_EQ(StringAt(echo, {"target"}), "/echo?a=%2F..");
      EXPECT_EQ(StringAt(echo, {"body"}), get ? "" : StrCat("body of ", method));
      EXPECT_EQ(StringAt(echo, {"contentType"}), get ? "application/json" : "application/x-test");
      EXPECT_EQ(StringAt(echo, {"accept"}), "application/json");
      EXPECT_EQ(StringAt(echo, {"protocol"}), version);
      EXPECT_EQ(response->code, std::string_view(method) == "POST" ? 201 : 200);
      EXPECT_EQ(response->content_type, "application/json");
    }
  }
}

TEST_P(KubeClient, PutsAllOfABatchInFlightAtOnce) {
  // The server answers none of them until it has all.
  const auto responses = transport_->DoAll(std::vector<Request>(64, Request{.target = "/together?n=64"}));
  ASSERT_EQ(responses.size(), 64u);
  for (const auto& response : responses) ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_LE(Stat(*transport_, "connections"), GetParam() == Protocol::kHttp2 ? 1 : 64);
}

TEST_P(KubeClient, BoundsTheConnectionsOfALargeBatchAndKeepsItsOrder) {
  const auto transport = Connect(ConfigOf(*server_), {.max_in_flight = 8});
  std::vector<Request> requests;
  for (int i = 0; i < 500; ++i) {
    requests.push_back({.method = "POST", .target = "/echo", .body = std::to_string(i)});
  }
  const auto responses = transport->DoAll(std::move(requests));
  ASSERT_EQ(responses.size(), 500u);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(StringAt(Json(responses[static_cast<std::size_t>(i)]), {"body"}), std::to_string(i));
  }
  EXPECT_LE(Stat(*transport, "connections"), GetParam() == Protocol::kHttp2 ? 1 : 8);
}

TEST_P(KubeClient, ServesManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string body = StrCat(t, "-", i);
        const auto responses = transport_->DoAll(
            std::vector<Request>(3, Request{.method = "POST", .target = "/echo", .body = body}));
        for (const auto& response : responses) EXPECT_EQ(StringAt(Json(response), {"body"}), body);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(KubeClient, ReturnsErrorsAsResponses) {
  const auto text = Get(*transport_, "/text");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->code, 500);
  EXPECT_EQ(Message(ToStatus(*text)), "the server answered 500: \"it is broken\"");
  EXPECT_EQ(Get(*transport_, "/nowhere")->code, 404);
  EXPECT_EQ(Get(*transport_, "/retry")->Header("Retry-After"), "7");
}

TEST_P(KubeClient, FollowsNoRedirect) {
  const auto elsewhere = HttpServer::Start(Protocol::kHttp1);
  ASSERT_TRUE(elsewhere.ok());
  const auto response =
      Get(*transport_, StrCat("/redirect?to=", PercentEncoded((*elsewhere)->url() + "/echo")));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->code, 302);
  EXPECT_EQ(response->Header("location"), (*elsewhere)->url() + "/echo");
  const auto other = Connect({.server = (*elsewhere)->url()});
  EXPECT_EQ(Stat(*other, "requests"), 1) << "its own";
}

TEST_P(KubeClient, UnpacksLargeAnswers) {
  const auto response = Get(*transport_, "/large?bytes=5000000");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, std::string(5000000, 'z'));
  EXPECT_EQ(response->Header("x-packed"), "1");
}

TEST_P(KubeClient, RefusesAnAnswerWithoutBound) {
  const auto transport = Connect(ConfigOf(*server_), {.max_body_bytes = 100000});
  EXPECT_TRUE(absl::IsResourceExhausted(Get(*transport, "/large?bytes=200000").status()));
  EXPECT_TRUE(Get(*transport, "/large?bytes=1000").ok());
}

TEST_P(KubeClient, GivesUpOnWhatHangsAndOnNothingElse) {
  std::vector<Request> requests = {
      {.target = "/echo"}, {.target = "/hang", .timeout = absl::Milliseconds(300)}, {.target = "/echo"}};
  const auto responses = transport_->DoAll(std::move(requests));
  EXPECT_TRUE(responses[0].ok()) << responses[0].status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(responses[1].status())) << responses[1].status();
  EXPECT_THAT(Message(responses[1].status()), HasSubstr(server_->url()));
  EXPECT_TRUE(responses[2].ok()) << responses[2].status();
}

TEST_P(KubeClient, SaysUnknownWhenTheConnectionBreaksAndDoesNotSendAWriteAgain) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    ASSERT_TRUE(Get(*transport_, "/echo").ok()) << "so that the connection has been used before";
    const auto response = Do(*transport_, {.method = method, .target = "/drop", .body = "{}"});
    EXPECT_TRUE(absl::IsUnknown(response.status())) << method << response.status();
  }
  EXPECT_EQ(IntAt(Json(Get(*transport_, "/stats")), {"seen", "/drop"}), 4);
}

TEST_P(KubeClient, SaysUnknownForAnAnswerThatIsCutShort) {
  EXPECT_TRUE(absl::IsUnknown(Get(*transport_, "/half").status()));
}

TEST_P(KubeClient, SaysUnavailableWhereNobodyListens) {
  server_->Signal(SIGKILL);
  absl::Status status;
  // What was open may break first.
  for (int i = 0; i < 10 && !absl::IsUnavailable(status); ++i) status = Get(*transport_, "/echo").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(server_->url()));
  EXPECT_TRUE(absl::IsUnavailable(transport_->Open({.target = "/watch"}).status()));
}

// ---- who is who

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::Start(Protocol::kHttp2);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Tls, RefusesAServerThatItsCaHasNotSigned) {
  ClusterConfig config = ConfigOf(*server_);
  config.ca_pem = Certificates::Get().other_ca;
  const auto transport = Connect(config);
  const absl::Status status = Get(*transport, "/echo").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("certificate"));
  EXPECT_TRUE(absl::IsFailedPrecondition(transport->Open({.target = "/watch"}).status()));
}

TEST_F(Tls, RefusesAServerWithoutACaOfItsOwn) {
  const auto transport = Connect({.server = server_->url()});
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(*transport, "/echo").status()));
}

TEST_F(Tls, RefusesAServerOfAnotherName) {
  ClusterConfig config = ConfigOf(*server_);
  config.server = StrCat("https://localhost:", server_->port());
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(*Connect(config), "/echo").status()));
  config.tls_server_name = "elsewhere.test";
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(*Connect(config), "/echo").status()));
}

TEST_F(Tls, ChecksTheNameThatTheConfigurationGives) {
  ClusterConfig config = ConfigOf(*server_);
  config.server = StrCat("https://localhost:", server_->port());
  config.tls_server_name = "kube.test";
  const Document echo = Json(Get(*Connect(config), "/echo"));
  EXPECT_EQ(StringAt(echo, {"authority"}), StrCat("localhost:", server_->port()));
}

TEST_F(Tls, TakesAnyServerOnlyWhenToldTo) {
  const auto transport = Connect({.server = server_->url(), .insecure = true});
  EXPECT_TRUE(Get(*transport, "/echo").ok());
}

TEST_F(Tls, PresentsTheClientsCertificate) {
  const Certificates& certificates = Certificates::Get();
  ClusterConfig config = ConfigOf(*server_);
  EXPECT_EQ(StringAt(Json(Get(*Connect(config), "/echo")), {"subject"}), "");
  config.credentials = NewFixedCredentials(
      {.certificate_pem = certificates.client_certificate, .key_pem = certificates.client_key});
  EXPECT_EQ(StringAt(Json(Get(*Connect(config), "/echo")), {"subject"}), "alice");
}

TEST_F(Tls, SaysThatAClientCertificateIsNoGood) {
  ClusterConfig config = ConfigOf(*server_);
  config.credentials = NewFixedCredentials({.certificate_pem = "no certificate", .key_pem = "no key"});
  const absl::Status status = Get(*Connect(config), "/echo").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("client certificate"));
}

TEST_F(Tls, NamesAServerThatIsNoUrl) {
  EXPECT_TRUE(absl::IsInvalidArgument(NewCurlTransport({.server = "https://:x"}).status()));
}

void WriteText(const std::string& path, std::string_view text, bool executable = false) {
  std::ofstream(path) << text;
  if (executable) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_F(Tls, ReadsATokenAgainWhenTheServerRefusesIt) {
  const TempFolder folder;
  const std::string token = folder / "token";
  WriteText(token, "old\n");
  ClusterConfig config = ConfigOf(*server_);
  config.credentials = NewTokenFileCredentials(token, "", {}, Clock::System());
  const auto transport = Connect(config);
  EXPECT_EQ(Get(*transport, "/token?good=old")->code, 200);
  EXPECT_EQ(Get(*transport, "/token?good=new")->code, 401) << "the file says old still";
  WriteText(token, "new\n");
  EXPECT_EQ(Get(*transport, "/token?good=new")->code, 200);
  WriteText(token, "newer\n");
  const auto opened = transport->Open({.target = "/token?good=newer&watch=1"});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->head.code, 200);
}

TEST_F(Tls, RunsAPluginOnceForAllThatItsTokenServes) {
  const TempFolder folder;
  WriteText(folder / "plugin",
            StrCat(R"(#!/bin/sh
echo run >> )",
                   folder / "runs", R"(
echo "$KUBERNETES_EXEC_INFO" > )",
                   folder / "info", R"(
n=$(wc -l < )",
                   folder / "runs", R"()
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s%s"}}' "$PREFIX" $((n))
)"),
            true);
  WriteText(folder / "config",
            StrCat(R"(
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: ")",
                   server_->url(), R"(", certificate-authority: ")", Certificates::Get().ca_path, R"("}}]
users:
- name: u
  user:
    as: somebody
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./plugin
      env: [{name: PREFIX, value: t}]
      provideClusterInfo: true
contexts: [{name: x, context: {cluster: c, user: u, namespace: jobs}}]
current-context: x
)"));
  const auto config = LoadConfig({.path = folder / "config"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ns, "jobs");
  const auto transport = Connect(*config);
  const Document echo = Json(Get(*transport, "/echo"));
  EXPECT_EQ(StringAt(echo, {"authorization"}), "Bearer t1");
  EXPECT_EQ(StringAt(echo, {"as"}), "somebody");
  EXPECT_EQ(Get(*transport, "/token?good=t1")->code, 200);
  const auto batch = transport->DoAll(std::vector<Request>(20, Request{.target = "/token?good=t2"}));
  for (const auto& response : batch) EXPECT_EQ(response.value().code, 200);
  EXPECT_EQ(Get(*transport, "/token?good=t2")->code, 200) << "still the second run";
  std::ifstream file(folder / "info");
  const std::string info(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(StringAt(ParseJson(info).value(), {"spec", "cluster", "server"}), server_->url());
}

// ---- a real cluster

TEST(RealCluster, SpeaksToIt) {
  std::string path = ProcessEnvironment("TRAINYARD_TEST_KUBECONFIG").value_or("");
  std::unique_ptr<testing_support::KubeApiServer> server;
  if (path.empty()) {
    auto started = testing_support::KubeApiServer::Start();
    if (absl::IsNotFound(started.status())) {
      GTEST_SKIP() << "no real cluster: TRAINYARD_TEST_KUBECONFIG is not set, and "
                   << Message(started.status());
    }
    ASSERT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
    path = server->kubeconfig();
  }
  const auto config = LoadConfig({.path = path});
  ASSERT_TRUE(config.ok()) << config.status();
  const auto transport = Connect(*config);
  Api api(*transport, Clock::System(), IdSource::Random());
  const std::string prefix = StrCat("trainyard-client-", IdSource::Random().Suffix(8), "-");
  const auto labels = StrCat("\"labels\":{\"trainyard-client-test\":\"", prefix, "x\"}");
  const WatchOptions watching{.label_selector = StrCat("trainyard-client-test=", prefix, "x")};
  const Resource& maps = Resource::ConfigMaps();

  const auto start = api.ListAll(maps, config->ns, {.label_selector = watching.label_selector});
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_TRUE(start->items.empty());
  WatchOptions from = watching;
  from.resource_version = start->resource_version;
  const auto watch = api.Watch(maps, config->ns, from);
  ASSERT_TRUE(watch.ok()) << watch.status();

  std::vector<Operation> creates;
  for (int i = 0; i < 30; ++i) {
    creates.push_back(CreateOperation(maps, config->ns,
                                      StrCat("{\"metadata\":{\"name\":\"", prefix, i, "\",", labels, "}}")));
  }
  for (const auto& created : api.Do(creates)) EXPECT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(kube::IsAlreadyExists(api.Do(creates[0]).status()));
  const auto all = api.ListAll(maps, config->ns, {.label_selector = watching.label_selector, .limit = 7});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->items.size(), 30u);
  for (int i = 0; i < 30; ++i) {
    const auto event = (*watch)->Next(kPatience);
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event->type, WatchEventType::kAdded);
  }
  const ObjectKey first{.ns = config->ns, .name = StrCat(prefix, 0)};
  const auto patched = api.Patch(maps, first, R"({"data":{"a":"b"}})", {});
  ASSERT_TRUE(patched.ok()) << patched.status();
  Document stale = ParseJson(*patched).value();
  MakeObjectAt(stale, {"metadata"})["resourceVersion"] = "1";
  EXPECT_TRUE(IsConflict(api.Update(maps, first, PrintJson(stale)).status()));
  EXPECT_TRUE(IsConflict(api.Delete(maps, first, {.uid = "wrong"})));
  std::vector<Operation> deletes;
  for (int i = 0; i < 30; ++i) {
    deletes.push_back(DeleteOperation(maps, {.ns = config->ns, .name = StrCat(prefix, i)}));
  }
  for (const auto& deleted : api.Do(std::move(deletes))) EXPECT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(kube::IsNotFound(api.Get(maps, first).status()));
  from.resource_version = "1";
  const auto old = api.Watch(maps, config->ns, from);
  const absl::Status gone = old.ok() ? (*old)->Next(kPatience).status() : old.status();
  EXPECT_TRUE(IsGone(gone) || gone.ok()) << gone;
}

}  // namespace
}  // namespace trainyard::kube
