// EtcdStore against real clusters: members that die, TLS, users, and addresses where nobody is.
#include "kv/etcd/etcd_store.h"

#include <atomic>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/etcd_server.h"
#include "tests/support/temp_folder.h"

namespace trainyard::kv {
namespace {

using testing::HasSubstr;
using testing_support::EtcdCluster;
using testing_support::EtcdCtl;
using testing_support::TempFolder;

constexpr absl::Duration kPatience = absl::Seconds(60);

std::unique_ptr<EtcdCluster> StartCluster(EtcdCluster::Options options) {
  auto cluster = EtcdCluster::Start(std::move(options));
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return cluster.ok() ? *std::move(cluster) : nullptr;
}

EtcdOptions For(const EtcdCluster& cluster, int members = 1) {
  EtcdOptions options;
  for (int i = 0; i < members; ++i) options.endpoints.push_back(cluster.endpoint(i));
  options.timeout = absl::Seconds(20);
  return options;
}

std::unique_ptr<Store> Open(EtcdOptions options) {
  auto store = OpenEtcdStore(std::move(options));
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// Puts numbers, one after the other, each until it is acknowledged.
class Writer {
 public:
  explicit Writer(Store& store) : store_(store), thread_([this] { Run(); }) {}
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

  Store& store_;
  std::atomic<int> acknowledged_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

TEST(EtcdStore, GoesOnWhileMembersDieAndComeBack) {
  const auto cluster = StartCluster({.members = 3});
  ASSERT_NE(cluster, nullptr);
  const auto store = Open(For(*cluster, 3));
  ASSERT_TRUE(store->Put("number", "0").ok());
  const auto watcher = store->Watch({.range = KeyRange::Key("number")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();

  Writer writer(*store);
  ASSERT_TRUE(writer.Await(20));
  for (int member = 0; member < 3; ++member) {  // one of them is the leader, one is the one asked
    ASSERT_TRUE(cluster->Kill(member).ok());
    ASSERT_TRUE(writer.Await(20)) << "no write got through without member " << member;
    EXPECT_TRUE(store->Get("number").ok());
    const absl::Status back = cluster->Restart(member);
    ASSERT_TRUE(back.ok()) << back;
    ASSERT_TRUE(writer.Await(20));
  }
  writer.Stop();

  // The watch has seen every acknowledged number, in order, though the members it was on died. A put whose
  // outcome was unknown may be there twice.
  int last = 0;
  while (last < writer.acknowledged()) {
    const auto batch = (*watcher)->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (const WatchEvent& event : batch->events) {
      const int number = std::stoi(event.kv.value);
      ASSERT_TRUE(number == last || number == last + 1) << number << " after " << last;
      last = number;
    }
  }
}

TEST(EtcdStore, SaysInOneLineThatNobodyIsThere) {
  const int port = testing_support::FreePort();
  const auto store = Open({.endpoints = {StrCat("127.0.0.1:", port)}, .timeout = absl::Seconds(20)});
  const std::vector<absl::Status> statuses = {
      store->Get("a").status(),
      store->Put("a", "1").status(),
      store->GrantLease(absl::Seconds(5)).status(),
      store->Watch({.range = KeyRange::Key("a")}).status(),
  };
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(StrCat("etcd at 127.0.0.1:", port)));
    EXPECT_THAT(Message(status), HasSubstr("check that it runs and that the address is right"));
    EXPECT_EQ(Message(status).find('\n'), std::string_view::npos);
  }
}

TEST(EtcdStore, KnowsUsersAndRenewsATokenThatEtcdForgot) {
  const auto cluster = StartCluster({});
  ASSERT_NE(cluster, nullptr);
  const std::string endpoint = cluster->endpoint(0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"user", "add", "root:secret"},
                                             {"user", "grant-role", "root", "root"},
                                             {"user", "add", "reader:secret"},
                                             {"role", "add", "reads"},
                                             {"role", "grant-permission", "reads", "read", "open/", "open0"},
                                             {"user", "grant-role", "reader", "reads"},
                                             {"auth", "enable"}}) {
    const auto done = EtcdCtl(endpoint, command);
    ASSERT_TRUE(done.ok()) << done.status();
  }
  EtcdOptions options = For(*cluster);
  options.user = "root";
  options.password = "secret";
  const auto store = Open(options);
  ASSERT_TRUE(store->Put("open/a", "1").ok());
  const auto watcher = store->Watch({.range = KeyRange::Prefix("open/")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();

  // etcd keeps these tokens in memory: a restart invalidates them, as their expiry would.
  ASSERT_TRUE(cluster->Kill(0).ok());
  ASSERT_TRUE(cluster->Restart(0).ok());
  const auto again = store->Put("open/a", "2");
  ASSERT_TRUE(again.ok()) << again.status();
  const auto batch = (*watcher)->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->events.at(0).kv.value, "2");

  options.password = "wrong";
  const absl::Status wrong = Open(options)->Get("open/a").status();
  EXPECT_TRUE(absl::IsPermissionDenied(wrong)) << wrong;
  EXPECT_THAT(Message(wrong), HasSubstr("refused the user or the password"));

  const absl::Status nobody = Open(For(*cluster))->Get("open/a").status();
  EXPECT_TRUE(absl::IsPermissionDenied(nobody)) << nobody;
  EXPECT_THAT(Message(nobody), HasSubstr("wants a user"));

  options.user = "reader";
  options.password = "secret";
  const auto reader = Open(options);
  EXPECT_EQ(reader->Get("open/a")->kv->value, "2");
  const absl::Status denied = reader->Put("open/a", "3").status();
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(Message(denied), HasSubstr("does not let this user do that"));
}

void RunShell(const std::string& command) {
  auto child = Child::Spawn({.argv = {"/bin/sh", "-c", command}});
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_EQ(*child->Wait(), ExitStatus(Exited{0})) << command;
}

TEST(EtcdStore, SpeaksTlsAndShowsItsCertificate) {
  const TempFolder certs;
  const auto make = [&](const std::string& ca, const std::string& name) {
    RunShell(StrCat("cd ", certs.path(), " && openssl req -newkey rsa:2048 -nodes -keyout ", name,
                    ".key -subj /CN=", name, " -out ", name,
                    ".csr && printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth' > ",
                    name, ".ext && openssl x509 -req -days 2 -in ", name, ".csr -CA ", ca, ".crt -CAkey ", ca,
                    ".key -CAcreateserial -extfile ", name, ".ext -out ", name, ".crt"));
  };
  for (const char* ca : {"ca", "other"}) {
    RunShell(StrCat("cd ", certs.path(), " && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ", ca,
                    ".key -subj /CN=", ca, " -out ", ca, ".crt"));
  }
  make("ca", "server");
  make("ca", "client");
  if (HasFatalFailure()) return;
  const auto cluster =
      StartCluster({.flags = {"--cert-file", certs / "server.crt", "--key-file", certs / "server.key",
                              "--client-cert-auth", "--trusted-ca-file", certs / "ca.crt"},
                    .tls = true});
  ASSERT_NE(cluster, nullptr);
  EtcdOptions options = For(*cluster);
  options.tls = true;
  options.ca_file = certs / "ca.crt";
  options.cert_file = certs / "client.crt";
  options.key_file = certs / "client.key";
  const auto store = Open(options);
  const auto put = store->Put("a", "1");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(store->Get("a")->kv->value, "1");
  EXPECT_EQ(store->Url(), StrCat("etcds://", cluster->endpoint(0)));

  EtcdOptions stranger = options;
  stranger.cert_file = stranger.key_file = "";
  EXPECT_TRUE(absl::IsUnavailable(Open(stranger)->Get("a").status())) << "a client without a certificate";
  EtcdOptions distrustful = options;
  distrustful.ca_file = certs / "other.crt";
  EXPECT_TRUE(absl::IsUnavailable(Open(distrustful)->Get("a").status()))
      << "a server that another authority signed";
  EtcdOptions plain = For(*cluster);
  EXPECT_TRUE(absl::IsUnavailable(Open(plain)->Get("a").status())) << "without TLS";
  EtcdOptions missing = options;
  missing.ca_file = certs / "nowhere.crt";
  EXPECT_THAT(Message(OpenEtcdStore(missing).status()), HasSubstr("nowhere.crt: No such file"));
  missing.ca_file = certs / "client.csr.txt";
  std::ofstream(missing.ca_file) << "no certificate";
  EXPECT_THAT(Message(OpenEtcdStore(missing).status()), HasSubstr("is not in PEM format"));
}

}  // namespace
}  // namespace trainyard::kv
