#include "tests/contract/store_under_test.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "client/gateway_store.h"
#include "kv/disk/embedded_store.h"
#include "kv/etcd/etcd_server.h"
#include "kv/etcd/etcd_store.h"
#include "kv/memory_store.h"
#include "tests/support/etcd_server.h"
#include "tests/support/temp_folder.h"

namespace trainyard::kv {
namespace {

using testing_support::EtcdCluster;
using testing_support::TempFolder;

class MemoryUnderTest final : public StoreUnderTest {
 public:
  Store& store() override { return *store_; }
  void LetPass(absl::Duration time) override {
    clock_.Advance(time);
    store_->Tick();
  }

 private:
  ManualClock clock_;
  std::unique_ptr<LocalStore> store_ = NewMemoryStore(clock_);
};

class EmbeddedUnderTest final : public StoreUnderTest {
 public:
  EmbeddedUnderTest() {
    EmbeddedOptions options;
    options.progress_interval = absl::Milliseconds(200);
    options.journal.first_segment_bytes = 16 << 10;  // so that every test crosses segments
    auto opened = OpenEmbeddedStore(folder_ / "store", options);
    TY_CHECK(opened.ok(), Message(opened.status()));
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }
  void LetPass(absl::Duration) override {}

 private:
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

// One server serves all tests of one kind of store; each test keeps to keys of its own.
template <typename UnderTest>
EtcdCluster& SharedEtcd() {
  static const std::unique_ptr<EtcdCluster> cluster = [] {
    auto started = EtcdCluster::Start({.flags = {"--experimental-watch-progress-notify-interval", "200ms"}});
    TY_CHECK(started.ok(), Message(started.status()));
    return *std::move(started);
  }();
  return *cluster;
}

class EtcdUnderTest final : public StoreUnderTest {
 public:
  EtcdUnderTest() {
    auto opened =
        OpenEtcdStore({.endpoints = {SharedEtcd<EtcdUnderTest>().endpoints()}, .timeout = absl::Seconds(30)});
    TY_CHECK(opened.ok(), Message(opened.status()));
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }
  void LetPass(absl::Duration) override {}

 private:
  std::unique_ptr<Store> store_;
};

// An etcd over HTTP and JSON, as a client outside its cluster has it.
class GatewayUnderTest final : public StoreUnderTest {
 public:
  GatewayUnderTest() {
    auto opened = client::OpenGatewayStore(
        {.server = {.server = StrCat("http://", SharedEtcd<GatewayUnderTest>().endpoint(0))},
         .timeout = absl::Seconds(30)});
    TY_CHECK(opened.ok(), Message(opened.status()));
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }
  void LetPass(absl::Duration) override {}

 private:
  std::unique_ptr<Store> store_;
};

// The embedded store as other processes have it: served over etcd's protocol, with our client before it.
class ServedUnderTest final : public StoreUnderTest {
 public:
  ServedUnderTest() {
    auto server = EtcdServer::Start(embedded_.store(), {.token = "a-token"});
    TY_CHECK(server.ok(), Message(server.status()));
    server_ = *std::move(server);
    auto opened =
        OpenEtcdStore({.endpoints = {server_->address()}, .token = "a-token", .timeout = absl::Seconds(30)});
    TY_CHECK(opened.ok(), Message(opened.status()));
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }
  void LetPass(absl::Duration) override {}

 private:
  EmbeddedUnderTest embedded_;
  std::unique_ptr<EtcdServer> server_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::vector<StoreKind> AllStoreKinds() {
  return {{"Memory", [] { return std::make_unique<MemoryUnderTest>(); }},
          {"Embedded", [] { return std::make_unique<EmbeddedUnderTest>(); }},
          {"Etcd", [] { return std::make_unique<EtcdUnderTest>(); }},
          {"Served", [] { return std::make_unique<ServedUnderTest>(); }},
          {"Gateway", [] { return std::make_unique<GatewayUnderTest>(); }}};
}

}  // namespace trainyard::kv
