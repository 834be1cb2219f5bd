#include "tests/contract/api/api_under_test.h"

#include "apiserver/backend_proxy.h"
#include "apiserver/direct_transport.h"
#include "apiserver/errors.h"
#include "apiserver/proxy_target.h"
#include "apiserver/server.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "http/pki.h"
#include "http/server.h"
#include "kube/credentials.h"
#include "kube/curl_transport.h"
#include "kube/kubeconfig.h"
#include "kv/open.h"
#include "tests/support/kube_apiserver.h"
#include "tests/support/temp_folder.h"

namespace trainyard::testing {
namespace {

constexpr char kToken[] = "the-token-of-tests";

template <typename T>
T Must(absl::StatusOr<T> result) {
  TY_CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}

// On a store in memory, called directly.
class InProcess final : public ApiUnderTest {
 public:
  kube::Transport& transport() override { return transport_; }

 private:
  std::unique_ptr<kv::Store> store_ = Must(kv::OpenStore("memory:"));
  std::unique_ptr<apiserver::BackendProxy> proxy_ = Must(apiserver::BackendProxy::Start());
  std::unique_ptr<apiserver::ApiServer> server_ =
      Must(apiserver::ApiServer::Start({.store = store_.get(), .proxy = proxy_.get()}));
  apiserver::DirectTransport transport_{*server_, "test"};
};

// On a durable store, by the way that kubectl takes.
class Https final : public ApiUnderTest {
 public:
  Https() {
    const absl::Time now = Clock::System().Now();
    const http::KeyPair authority = Must(http::MakeAuthority("test", now));
    const http::KeyPair server = Must(http::MakeServerCertificate(authority, {"127.0.0.1"}, now));
    http_ = Must(
        http::Server::Start({.certificate_pem = server.certificate_pem,
                             .key_pem = server.key_pem,
                             .client_ca_pem = authority.certificate_pem,
                             .relayed = apiserver::IsProxyTarget,
                             .print_error = apiserver::PrintRefusal},
                            http::JudgeByToken(
                                [](std::string_view token) -> std::optional<http::Identity> {
                                  if (!SameSecret(token, kToken)) return std::nullopt;
                                  return http::Identity{.user = "admin", .groups = {}};
                                },
                                "the API server", apiserver::PrintRefusal),
                            [this](http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
                              server_->Handle(std::move(request), std::move(responder));
                            }));
    kube::ClusterConfig config{.server = StrCat("https://127.0.0.1:", http_->port()),
                               .ca_pem = authority.certificate_pem};
    config.credentials = kube::NewFixedCredentials({.headers = {kube::BearerHeader(kToken)}});
    transport_ = Must(kube::NewCurlTransport(std::move(config)));
  }
  kube::Transport& transport() override { return *transport_; }

 private:
  testing_support::TempFolder folder_;
  std::unique_ptr<kv::Store> store_ = Must(kv::OpenStore(StrCat("embedded:", folder_.path(), "/store")));
  std::unique_ptr<apiserver::BackendProxy> proxy_ = Must(apiserver::BackendProxy::Start());
  std::unique_ptr<apiserver::ApiServer> server_ =
      Must(apiserver::ApiServer::Start({.store = store_.get(), .proxy = proxy_.get()}));
  std::unique_ptr<http::Server> http_;
  std::unique_ptr<kube::Transport> transport_;
};

// Of a cluster that tests may use, or started for them.
class Real final : public ApiUnderTest {
 public:
  Real() {
    const char* given = std::getenv("TRAINYARD_TEST_KUBECONFIG");
    if (given == nullptr) server_ = Must(testing_support::KubeApiServer::Start());
    const std::string path = given != nullptr ? given : server_->kubeconfig();
    transport_ = Must(kube::NewCurlTransport(Must(kube::LoadConfig({.path = path}))));
  }
  kube::Transport& transport() override { return *transport_; }

  static std::string Missing() {
    if (std::getenv("TRAINYARD_TEST_KUBECONFIG") != nullptr || std::getenv("KUBEBUILDER_ASSETS") != nullptr)
      return "";
    return "no real kube-apiserver: set KUBEBUILDER_ASSETS or TRAINYARD_TEST_KUBECONFIG";
  }

 private:
  std::unique_ptr<testing_support::KubeApiServer> server_;
  std::unique_ptr<kube::Transport> transport_;
};

std::string NothingMissing() { return ""; }

template <typename T>
ApiUnderTest& Shared() {
  static T shared;
  return shared;
}

}  // namespace

std::vector<ApiKind> AllApiKinds() {
  return {{.name = "InProcess", .missing = NothingMissing, .start = Shared<InProcess>},
          {.name = "Https", .missing = NothingMissing, .start = Shared<Https>},
          {.name = "Real", .missing = Real::Missing, .start = Shared<Real>}};
}

}  // namespace trainyard::testing
