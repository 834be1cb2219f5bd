// GatewayStore as a client outside a cluster has it: through the API server's proxy, to stores that die.
#include "client/gateway_store.h"

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "apiserver/backend_proxy.h"
#include "apiserver/direct_transport.h"
#include "apiserver/proxy_target.h"
#include "apiserver/server.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/pki.h"
#include "http/server.h"
#include "kube/credentials.h"
#include "kv/gateway/gateway.h"
#include "kv/memory_store.h"
#include "tests/support/etcd_server.h"

namespace trainyard::client {
namespace {

using testing::HasSubstr;
using testing_support::EtcdCluster;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kToken[] = "the-token-of-tests";

template <typename T>
T Must(absl::StatusOr<T> result) {
  TY_CHECK(result.ok(), result.status().ToString());
  return *std::move(result);
}

// The API server of a cluster in which the service "store" leads to a port of this machine.
class ApiServer {
 public:
  explicit ApiServer(std::string_view endpoint) {
    Listen(0);
    apiserver::DirectTransport transport(*server_, "test");
    const std::string_view port = endpoint.substr(endpoint.find(':') + 1);
    const auto make = [&](std::string_view method, std::string_view what, std::string body) {
      std::vector<kube::Request> requests;
      requests.push_back({.method = std::string(method),
                          .target = StrCat("/api/v1/namespaces/default/", what),
                          .body = std::move(body),
                          .content_type = method == "PATCH" ? "application/merge-patch+json" : ""});
      const auto done = transport.DoAll(std::move(requests));
      TY_CHECK(done[0].ok() && done[0]->code < 300, done[0].ok() ? done[0]->body : "no answer");
    };
    make("POST", "pods",
         R"({"metadata":{"name":"store-0"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    make("PATCH", "pods/store-0/status", R"({"status":{"podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}})");
    make("POST", "services", R"({"metadata":{"name":"store"},"spec":{"ports":[{"name":"http","port":80}]}})");
    make("POST", "endpoints",
         StrCat(R"({"metadata":{"name":"store"},"subsets":[{"addresses":[{"ip":"127.0.0.1","targetRef":
                {"kind":"Pod","namespace":"default","name":"store-0"}}],"ports":[{"name":"http","port":)",
                port, "}]}]}"));
  }

  // Cuts every connection off and listens again, where it did.
  void Restart() {
    const std::uint16_t port = http_->port();
    http_.reset();
    Listen(port);
  }

  std::unique_ptr<kv::Store> Open(std::string token = "") {
    GatewayStoreOptions options{.server = {.server = StrCat("https://127.0.0.1:", http_->port()),
                                           .ca_pem = authority_.certificate_pem},
                                .path = ServiceProxyPath("default", "store", "http"),
                                .token = std::move(token),
                                .timeout = absl::Seconds(20)};
    options.server.credentials = kube::NewFixedCredentials({.headers = {kube::BearerHeader(kToken)}});
    return Must(OpenGatewayStore(std::move(options)));
  }

 private:
  void Listen(std::uint16_t port) {
    http_ = Must(
        http::Server::Start({.listen = {.host = "127.0.0.1", .port = port},
                             .certificate_pem = certificate_.certificate_pem,
                             .key_pem = certificate_.key_pem,
                             .relayed = apiserver::IsProxyTarget},
                            http::JudgeByToken(
                                [](std::string_view token) -> std::optional<http::Identity> {
                                  if (!SameSecret(token, kToken)) return std::nullopt;
                                  return http::Identity{.user = "admin", .groups = {}};
                                },
                                "the API server"),
                            [this](http::ServerRequest request, std::unique_ptr<http::Responder> responder) {
                              server_->Handle(std::move(request), std::move(responder));
                            }));
  }

  const http::KeyPair authority_ = Must(http::MakeAuthority("test", absl::Now()));
  const http::KeyPair certificate_ =
      Must(http::MakeServerCertificate(authority_, {"127.0.0.1"}, absl::Now()));
  std::unique_ptr<kv::LocalStore> objects_ = kv::NewMemoryStore(Clock::System());
  std::unique_ptr<apiserver::BackendProxy> proxy_ = Must(apiserver::BackendProxy::Start());
  std::unique_ptr<apiserver::ApiServer> server_ =
      Must(apiserver::ApiServer::Start({.store = objects_.get(), .proxy = proxy_.get()}));
  std::unique_ptr<http::Server> http_;
};

// Puts numbers, one after the other, each until it is acknowledged.
class Writer {
 public:
  explicit Writer(kv::Store& store) : store_(store), thread_([this] { Run(); }) {}
  ~Writer() { Stop(); }
  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int acknowledged() const { return acknowledged_; }
  // Returns when `count` more are acknowledged; false if that takes too long.
  bool Await(int count) const {
    const absl::Time deadline = absl::Now() + kPatience;
    const int until = acknowledged_ + count;
    while (acknowledged_ < until && absl::Now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return acknowledged_ >= until;
  }

 private:
  void Run() {
    for (int next = 1; !stopping_;) {
      const auto put = store_.Put("number", std::to_string(next));
      if (put.ok()) {
        acknowledged_ = next++;
      } else if (!absl::IsUnavailable(put.status()) && !absl::IsUnknown(put.status())) {
        ADD_FAILURE() << put.status();
        return;
      }
    }
  }

  kv::Store& store_;
  std::atomic<int> acknowledged_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

TEST(GatewayStore, SeesEveryWriteThoughStoreAndApiServerDieAndComeBack) {
  const auto etcd = Must(EtcdCluster::Start({}));
  ApiServer api(etcd->endpoint(0));
  const auto store = api.Open();
  const auto first = store->Put("number", "0");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto watcher = store->Watch({.range = kv::KeyRange::Key("number")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();

  Writer writer(*store);
  ASSERT_TRUE(writer.Await(20));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(etcd->Kill(0).ok());
    ASSERT_TRUE(etcd->Restart(0).ok());
    ASSERT_TRUE(writer.Await(20)) << "no write got through after the store came back";
    api.Restart();
    ASSERT_TRUE(writer.Await(20)) << "no write got through after the API server came back";
  }
  writer.Stop();

  // A put whose outcome was unknown may be there twice.
  int last = 0;
  while (last < writer.acknowledged()) {
    const auto batch = (*watcher)->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (const kv::WatchEvent& event : batch->events) {
      const int number = std::stoi(event.kv.value);
      ASSERT_TRUE(number == last || number == last + 1) << number << " after " << last;
      last = number;
    }
  }
}

TEST(GatewayStore, ShowsItsTokenToTheStoreBehindTheApiServer) {
  const auto served = kv::NewMemoryStore(Clock::System());
  const auto gateway = Must(kv::Gateway::Start(*served, {.token = "of-the-store"}));
  ApiServer api(gateway->address());
  const auto store = api.Open("of-the-store");
  ASSERT_TRUE(store->Put("a", "1").ok());
  const auto watcher = store->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  ASSERT_TRUE(served->Put("a", "2").ok());
  const auto batch = (*watcher)->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.at(0).kv.value, "2");
  for (const char* wrong : {"", "another"}) {
    const absl::Status status = api.Open(wrong)->Get("a").status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("check the token"));
  }
}

TEST(GatewayStore, SaysInOneLineWhatIsNotThere) {
  ApiServer api(StrCat("127.0.0.1:", testing_support::FreePort()));
  const auto store = api.Open();
  for (const absl::Status& status : {store->Get("a").status(), store->Put("a", "1").status(),
                                     store->Watch({.range = kv::KeyRange::Key("a")}).status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("connection refused"));
    EXPECT_EQ(Message(status).find('\n'), std::string_view::npos);
  }
}

}  // namespace
}  // namespace trainyard::client
