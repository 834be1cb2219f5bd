// What graphs know of each other: tables in the store, by combined key under the job.
//
//   trainyard/jobs/NAMESPACE/NAME/meta                         JobMeta
//   trainyard/jobs/NAMESPACE/NAME/client                       leased by the client of a foreground job
//   trainyard/jobs/NAMESPACE/NAME/program                      what graphs are made of (ps/origin.h), in
//   chunks trainyard/jobs/NAMESPACE/NAME/graph_program_desc/GRAPH     programs, maps and resource, in chunks
//   trainyard/jobs/NAMESPACE/NAME/graph_pod/GRAPH              GraphPod, leased by the pod
//   trainyard/jobs/NAMESPACE/NAME/graph_incarnation/GRAPH      how often the graph was begun
//   trainyard/jobs/NAMESPACE/NAME/graph_output/GRAPH/SEQUENCE  Output, appended; the oldest are deleted
//   trainyard/jobs/NAMESPACE/NAME/graph_checkpoint/GRAPH       GraphCheckpoints
//
// All but the programs is JSON. Whatever is read is checked: a value that is not what it should be is an
// InvalidArgument that names the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "graph/pass/transpile.h"
#include "kv/store.h"
#include "ps/job_meta.h"

namespace trainyard::ps {

struct JobKeys {
  std::string job;  // "NAMESPACE/NAME"

  std::string Root() const;  // with a slash at its end
  std::string Meta() const;
  std::string Client() const;
  std::string Program() const;
  std::string Desc(std::string_view graph) const;
  std::string Pod(std::string_view graph) const;
  std::string Incarnation(std::string_view graph) const;
  std::string Outputs(std::string_view graph) const;                        // with a slash at its end
  std::string Output(std::string_view graph, std::int64_t sequence) const;  // so that keys sort by number
  std::string Checkpoint(std::string_view graph) const;
};

struct GraphPod {
  std::string pod_name;
  std::string pod_ip;
  int pod_port = 0;  // 0: nobody calls it, as a trainer
  std::int64_t incarnation = 0;
  std::string Address() const;  // "10.0.0.1:4000", "[::1]:4000"
  bool operator==(const GraphPod&) const = default;
};

struct Checkpoint {
  std::int64_t step = 0;
  std::string file;  // its path
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  // of all bytes but the checksums among them
  std::string layout;
  bool nonfinite = false;  // a variable has a NaN or an infinity
  bool operator==(const Checkpoint&) const = default;
};
struct GraphCheckpoints {
  std::vector<Checkpoint> kept;  // by step
  bool operator==(const GraphCheckpoints&) const = default;
};

// One value that a graph put out.
struct OutputValue {
  std::string name;
  graph::Dims dims;
  std::vector<double> values;  // at most kMaxOutputValues; the first ones if there are more
  bool operator==(const OutputValue&) const = default;
};
inline constexpr std::size_t kMaxOutputValues = 1024;
inline constexpr std::size_t kMaxOutputBytes = kv::kMaxRequestBytes / 2;  // of one step, as the store has it
struct Output {
  std::int64_t generation = 0;
  std::int64_t pass = 0;
  std::int64_t step = 0;
  absl::Time time;
  bool committed = true;  // its step counts in what is learnt
  std::vector<OutputValue> values;
  bool operator==(const Output&) const = default;
};

std::string EncodePod(const GraphPod& pod);
absl::StatusOr<GraphPod> DecodePod(std::string_view text);
std::string EncodeCheckpoints(const GraphCheckpoints& checkpoints);
absl::StatusOr<GraphCheckpoints> DecodeCheckpoints(std::string_view text);
std::string EncodeOutput(const Output& output);
absl::StatusOr<Output> DecodeOutput(std::string_view text);

// The newest step that every one of the graphs has a checkpoint of, of that layout; none if there is none.
std::optional<std::int64_t> NewestCommonStep(const std::vector<GraphCheckpoints>& all,
                                             std::string_view layout);

// The same of the checkpoints without non-finite values.
std::optional<std::int64_t> NewestFiniteStep(std::vector<GraphCheckpoints> all, std::string_view layout);

// A whole graph, programs and all. What is read has passed graph::Decode() and graph::CheckProgram().
absl::Status PutGraph(kv::Store& store, IdSource& ids, const JobKeys& keys, const graph::Graph& graph);
absl::StatusOr<graph::Graph> GetGraph(kv::Store& store, const JobKeys& keys, std::string_view id);
// "pserver-0", "pserver-1" and so on.
std::vector<std::string> PserverIds(int count);
// "pserver-1" in parts.
struct GraphName {
  graph::GraphRole role = graph::GraphRole::kTrainer;
  int index = 0;
  auto operator<=>(const GraphName&) const = default;
};
std::optional<GraphName> ParseGraphId(std::string_view id);
// The ids of all graphs of the job: trainers, then pservers, each by number.
absl::StatusOr<std::vector<std::string>> ListGraphs(kv::Store& store, const JobKeys& keys);

struct StoredMeta {
  JobMeta meta;
  kv::Revision revision = 0;  // of the key
};
// NotFound: there is no such job.
absl::StatusOr<StoredMeta> GetMeta(kv::Store& store, const JobKeys& keys);
// Aborted: it was changed since `revision`; read it again. 0: it must not be there yet.
absl::StatusOr<kv::Revision> PutMeta(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                     kv::Revision revision);

// One more than the last time, for this graph; survives everything but the job.
absl::StatusOr<std::int64_t> NextIncarnation(kv::Store& store, const JobKeys& keys, std::string_view graph);

}  // namespace trainyard::ps
