// The etcd adapter against the same puts made by bare gRPC calls on the same server.
#include <grpcpp/grpcpp.h>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/report.h"
#include "kv/etcd/etcd.grpc.pb.h"
#include "kv/etcd/etcd_store.h"
#include "tests/support/etcd_server.h"

namespace trainyard::bench {
namespace {

constexpr int kWriters = 64;

}  // namespace

void EtcdRows(const Settings& settings, std::vector<Row>& rows) {
  const auto cluster = testing_support::EtcdCluster::Start({});
  if (!cluster.ok()) {
    rows.push_back(
        {.name = StrCat("etcd: SKIPPED, ", cluster.status().message()), .unit = "-", .least_ratio = 0.9});
    return;
  }
  const std::string address = (*cluster)->endpoint(0);
  const auto store = kv::OpenEtcdStore({.endpoints = {address}, .timeout = absl::Seconds(30)});
  TY_CHECK(store.ok(), Message(store.status()));
  const auto stub =
      etcdserverpb::KV::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));

  const std::string value(256, 'v');
  std::vector<std::uint64_t> numbers(kWriters);
  const auto key = [&](int writer) {
    return StrCat("bench/", writer, "/", numbers[static_cast<std::size_t>(writer)]++ % 1000);
  };
  const auto adapter = [&] {
    return Rate(kWriters, settings.time, [&](int writer) {
      const auto done = (*store)->Put(key(writer), value);
      TY_CHECK(done.ok(), Message(done.status()));
    });
  };
  const auto raw = [&] {
    return Rate(kWriters, settings.time, [&](int writer) {
      grpc::ClientContext context;
      etcdserverpb::PutRequest request;
      request.set_key(key(writer));
      request.set_value(value);
      etcdserverpb::PutResponse response;
      const grpc::Status status = stub->Put(&context, request, &response);
      TY_CHECK(status.ok(), status.error_message());
    });
  };
  adapter();  // etcd's first seconds are not like the rest
  const Pair puts = Alternate(settings.rounds, adapter, raw);
  rows.push_back({.name = "etcd: puts, 64 concurrent",
                  .figure = puts.figure,
                  .unit = "puts/s",
                  .limit_name = "raw gRPC puts/s",
                  .limit = puts.limit,
                  .least_ratio = 0.9});
}

}  // namespace trainyard::bench
