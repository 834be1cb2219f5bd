// What tests of this folder share: a store that a test can break or step into, and a small network.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "graph/build/builder.h"
#include "graph/pass/transpile.h"
#include "kv/store.h"

namespace trainyard::ps {

// Another store, and what a test does before each of its calls: an error is the call's answer, and nothing is
// done.
class SteppedStore final : public kv::Store {
 public:
  using Step = std::function<absl::Status()>;
  explicit SteppedStore(kv::Store& store) : store_(store) {}

  Step before_read = [] { return absl::OkStatus(); };
  Step before_txn = [] { return absl::OkStatus(); };
  Step after_txn = [] {
    return absl::OkStatus();
  };  // an error: the change is made, and its caller is told this

  absl::StatusOr<kv::GetResult> Get(std::string_view key, kv::Revision revision) override {
    if (absl::Status step = before_read(); !step.ok()) return step;
    return store_.Get(key, revision);
  }
  absl::StatusOr<kv::RangeResult> Range(const kv::RangeRequest& request) override {
    if (absl::Status step = before_read(); !step.ok()) return step;
    return store_.Range(request);
  }
  absl::StatusOr<kv::TxnResult> Txn(const kv::TxnRequest& request) override {
    if (absl::Status step = before_txn(); !step.ok()) return step;
    absl::StatusOr<kv::TxnResult> result = store_.Txn(request);
    if (absl::Status step = after_txn(); !step.ok()) return step;
    return result;
  }
  void TxnAsync(kv::TxnRequest request, kv::TxnDone done) override { done(Txn(request)); }
  absl::StatusOr<std::unique_ptr<kv::Watcher>> Watch(kv::WatchRequest request) override {
    return store_.Watch(std::move(request));
  }
  absl::StatusOr<kv::Lease> GrantLease(absl::Duration ttl) override { return store_.GrantLease(ttl); }
  absl::StatusOr<absl::Duration> KeepAlive(kv::LeaseId lease) override { return store_.KeepAlive(lease); }
  absl::Status RevokeLease(kv::LeaseId lease) override { return store_.RevokeLease(lease); }
  absl::Status Compact(kv::Revision revision) override { return store_.Compact(revision); }
  std::string Url() const override { return store_.Url(); }

 private:
  kv::Store& store_;
};

struct SmallNet {
  graph::Optimizer optimizer = {.update = graph::Adam()};
  std::int64_t table_rows = 11;
  std::string name = "net";
  bool with_table = true;
};

// ids -> a table on the pservers -> fc 5 -> mean of the square error to y. Its weights have 21 and 5
// elements.
inline graph::Programs MakeSmallNet(const SmallNet& options = {}) {
  graph::Builder net(options.name, {.seed = 3});
  graph::Ref x = net.Data("x", {7});
  if (options.with_table) {
    const graph::Ref ids = net.Data("ids", {1}, graph::DataType::kInt64);
    graph::EmbeddingOptions table{.sparse = true, .distributed = true};
    table.weight.name = "table";
    x = net.Embedding(ids, options.table_rows, 7, table);
  }
  graph::FcOptions fc;
  fc.weight.name = "fc_w";
  fc.bias.name = "fc_b";
  const graph::Ref y = net.Data("y", {5});
  net.Minimize(net.Mean(net.SquareErrorCost(net.Fc(x, 5, fc), y)), options.optimizer);
  absl::StatusOr<graph::Programs> programs = net.Finish();
  TY_CHECK(programs.ok(), programs.status().ToString());
  return *std::move(programs);
}

inline graph::Graphs MakeGraphs(const graph::Programs& programs, const graph::TranspileOptions& options) {
  absl::StatusOr<graph::Graphs> graphs = graph::Transpile(programs, options);
  TY_CHECK(graphs.ok(), graphs.status().ToString());
  return *std::move(graphs);
}

}  // namespace trainyard::ps
