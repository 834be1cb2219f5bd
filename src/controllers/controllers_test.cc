// The controllers with their threads, on a server with its own.
#include "controllers/controllers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/fd.h"
#include "base/text.h"
#include "controllers/actions.h"
#include "gtest/gtest.h"
#include "kube/api.h"
#include "kv/memory_store.h"

namespace trainyard::controllers {
namespace {

const kube::Resource kMaps = kube::Resource::ConfigMaps();

class ControllersTest : public ::testing::Test {
 protected:
  ControllersTest() { EXPECT_TRUE(controllers_.Start().ok()); }

  // Until the object is as wanted; the test's time limit is the patience.
  void Await(const kube::Resource& resource, const kube::ObjectKey& key,
             const std::function<bool(const std::optional<Document>&)>& wanted) {
    const std::string selector = StrCat("metadata.name=", key.name);
    auto stream = api_.Watch(resource, key.ns, {.field_selector = selector});
    ASSERT_TRUE(stream.ok()) << stream.status();
    while (true) {
      auto found = api_.Get(resource, key);
      const auto object =
          found.ok() ? std::optional<Document>(ParseJson(*found).value()) : std::optional<Document>();
      if (wanted(object)) return;
      const auto event = (*stream)->Next(absl::Seconds(60));
      ASSERT_TRUE(event.ok()) << event.status();
    }
  }
  void AwaitGone(const kube::Resource& resource, const kube::ObjectKey& key) {
    Await(resource, key, [](const auto& object) { return !object; });
  }
  Document Create(const kube::Resource& resource, std::string_view ns, std::string_view json) {
    const auto made = api_.Create(resource, ns, std::string(json));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? ParseJson(*made).value() : Document(Object());
  }

  Clock& clock_ = Clock::System();
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  const std::unique_ptr<apiserver::ApiServer> server_ =
      apiserver::ApiServer::Start({.store = store_.get()}).value();
  const std::shared_ptr<Alarm> wake_ = clock_.NewAlarm();
  apiserver::DirectTransport transport_{*server_, "controllers", wake_};
  apiserver::DirectTransport user_{*server_, "user"};
  kube::Api api_{user_, clock_, IdSource(1)};
  Controllers controllers_{
      transport_, clock_, {.authority_pem = "CA", .wake = wake_}, [this] { return server_->resources(); }};
};

TEST_F(ControllersTest, WorkByThemselves) {
  const Document owner = Create(kMaps, "default", R"({"metadata":{"name":"owner"}})");
  Create(kMaps, "default",
         StrCat(R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",
                   "name":"owner","uid":")",
                controllers::UidOf(owner), R"("}]}})"));
  ASSERT_TRUE(api_.Delete(kMaps, {"default", "owner"}).ok());
  AwaitGone(kMaps, {"default", "owned"});

  Create(kube::Resource::Namespaces(), "", R"({"metadata":{"name":"team"}})");
  Await(kube::Resource::ServiceAccounts(), {"team", "default"},
        [](const auto& account) { return account.has_value(); });
  ASSERT_TRUE(api_.Delete(kube::Resource::Namespaces(), {"", "team"}).ok());
  AwaitGone(kube::Resource::Namespaces(), {"", "team"});
}

TEST_F(ControllersTest, FollowDefinitionsThatComeAndGo) {
  const kube::Resource things{"example.com", "v1", "things", "Thing", true};
  const kube::ObjectKey definition{"", "things.example.com"};
  for (int i = 0; i < 3; ++i) {
    Create(kube::Resource::CustomResourceDefinitions(), "",
           R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
               "names":{"kind":"Thing","plural":"things"},"versions":[{"name":"v1","served":true,"storage":true,
               "schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
    const Document thing = Create(things, "default", R"({"metadata":{"name":"thing"}})");
    Create(kMaps, "default",
           StrCat(R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"example.com/v1",
                     "kind":"Thing","name":"thing","uid":")",
                  controllers::UidOf(thing), R"("}]}})"));
    ASSERT_TRUE(api_.Delete(things, {"default", "thing"}).ok());
    AwaitGone(kMaps, {"default", "owned"});
    ASSERT_TRUE(api_.Delete(kube::Resource::CustomResourceDefinitions(), definition).ok());
    AwaitGone(kube::Resource::CustomResourceDefinitions(), definition);
  }
}

TEST_F(ControllersTest, ForwardConnectionsToAServicesPods) {
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  socklen_t size = sizeof address;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);

  const Document service = Create(kube::Resource::Services(), "default",
                                  StrCat(R"({"metadata":{"name":"web"},"spec":{"selector":{"app":"web"},
                                            "ports":[{"port":23457,"targetPort":)",
                                         ntohs(address.sin_port), "}]}}"));
  Document pod = Create(kube::Resource::Pods(), "default",
                        R"({"metadata":{"name":"p","labels":{"app":"web"}},
                            "spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}})");
  pod.get_object()["status"] = Object{{"phase", "Running"},
                                      {"podIP", "127.0.0.1"},
                                      {"conditions", Array{Object{{"type", "Ready"}, {"status", "True"}}}}};
  ASSERT_TRUE(api_.Update(kube::Resource::Pods(), {"default", "p"}, PrintJson(pod), "status").ok());
  Await(kube::Resource::Endpoints(), {"default", "web"}, [](const auto& endpoints) {
    return endpoints && ArrayAt(*endpoints, {"subsets"}) != nullptr &&
           !ArrayAt(*endpoints, {"subsets"})->empty();
  });

  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(23457)};
  ASSERT_EQ(::inet_pton(AF_INET, std::string(StringAt(service, {"spec", "clusterIP"})).c_str(), &to.sin_addr),
            1);
  Fd client;
  do {  // the proxy follows in its own time
    client = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    std::this_thread::yield();
  } while (::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0);
  const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(::send(client.get(), "hello", 5, MSG_NOSIGNAL), 5);
  char got[5];
  ASSERT_EQ(::recv(accepted.get(), got, 5, MSG_WAITALL), 5);
  EXPECT_EQ(std::string_view(got, 5), "hello");
}

TEST_F(ControllersTest, CanBeStoppedTwice) {
  controllers_.Stop();
  controllers_.Stop();
}

}  // namespace
}  // namespace trainyard::controllers
