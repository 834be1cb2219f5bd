// What the rows about graphs share: a network and its data, and graphs that run as processes of their own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "bench/report.h"
#include "graph/build/builder.h"
#include "graph/exec/executor.h"
#include "graph/pass/transpile.h"
#include "kv/etcd/etcd_server.h"
#include "kv/local_store.h"
#include "ps/record_batches.h"
#include "ps/tables.h"

namespace trainyard::bench {

// Each adds its rows.
void GraphComputeRows(const Settings& settings, std::vector<Row>& rows);
void GraphTrafficRows(const Settings& settings, std::vector<Row>& rows);
void GraphJobRows(const Settings& settings, std::vector<Row>& rows);
void GraphFaultRows(const Settings& settings, std::vector<Row>& rows);

// Digits as MNIST has them, but made: 784 bytes and a label each, in two IDX files.
struct Digits {
  std::string images;
  std::string labels;
};
absl::StatusOr<Digits> WriteDigits(const std::string& folder, std::int64_t count);

// 784-128-64-10, relu between, softmax behind; it reads the digits itself and learns by sgd. With `output`
// its loss is put out every so many steps; with kAccuracy, how often it is right.
inline constexpr std::int64_t kAccuracy = -1;
absl::StatusOr<graph::Programs> MakeMlp(const Digits& digits, std::int64_t batch, std::int64_t output = 0);
// Multiplications and additions of one sample in its matrices' products, forward and backward.
double MlpArithmetic();

// A program that reads its data, in this process.
class LocalTraining {
 public:
  static absl::StatusOr<std::unique_ptr<LocalTraining>> Make(const graph::Programs& programs, int threads);
  absl::Status Step();

 private:
  graph::Scope scope_;
  graph::Services services_;
  std::unique_ptr<ps::RecordBatches> batches_;
  std::unique_ptr<graph::PreparedBlock> block_;
};

// A job whose graphs run as `trainyard graph-worker`, over a store in this process.
class GraphProcesses {
 public:
  static absl::StatusOr<std::unique_ptr<GraphProcesses>> Make(const Settings& settings,
                                                              const std::string& name);
  // Stores the graphs and the job.
  absl::Status Submit(const graph::Graphs& graphs);
  absl::Status Start(const std::string& graph);
  // What the graph's process has used of processors' time.
  absl::StatusOr<absl::Duration> CpuTime(const std::string& graph) const;
  // Waits for the process's own good end.
  absl::Status Await(const std::string& graph, absl::Duration timeout);

  kv::Store& store() { return *store_; }
  const ps::JobKeys& keys() const { return keys_; }

 private:
  GraphProcesses(const Settings& settings, const std::string& name);
  std::string LogOf(const std::string& graph) const { return folder_ + "/" + graph + ".log"; }

  const std::string trainyard_;
  const std::string folder_;
  const ps::JobKeys keys_;
  const std::unique_ptr<kv::LocalStore> store_;
  std::unique_ptr<kv::EtcdServer> server_;
  std::map<std::string, Child, std::less<>> processes_;
};

// What a process has used of processors' time. NotFound: it has ended.
absl::StatusOr<absl::Duration> CpuTimeOf(pid_t process);
absl::Duration OwnCpuTime();
// Calls a second of that time, over about `time`.
double CpuRate(absl::Duration time, const std::function<void()>& work);
// Multiplications and additions a second of one core. Unimplemented: how, is not known for this processor.
absl::StatusOr<double> ProcessorPeak(absl::Duration time);

}  // namespace trainyard::bench
