// What a running program needs of the world around it: data, peers, somewhere to put outputs. Whoever runs it
// gives them; one that a program does not use may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

// Where `read` gets its batches.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Puts the next batch into `fields`, whose dims it sets. OutOfRange: the pass has ended; the next call
  // begins the next.
  virtual absl::Status Next(absl::Span<Tensor* const> fields) = 0;
  // The pass that the next batch is of, from 0.
  virtual std::int64_t pass() const = 0;
};

// Whom `send`, `recv` and their like talk to. Values are the caller's until the barrier (or Receive) has
// returned.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual absl::Status Send(std::string_view graph, const std::string& name, const Value& value) = 0;
  // All that was sent has arrived, and this graph's part of the step is told.
  virtual absl::Status SendBarrier(const Strings& graphs) = 0;
  // Begins to fetch the variable into `into`; FetchBarrier() waits for it.
  virtual absl::Status Receive(std::string_view graph, const std::string& name, Tensor& into) = 0;
  virtual absl::Status FetchBarrier(const Strings& graphs) = 0;
  // The rows `ids` of a table's shard; waits.
  virtual absl::Status Prefetch(std::string_view graph, const std::string& table, const Tensor& ids,
                                Tensor& rows) = 0;
};

// Where `output` puts values.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual absl::Status Append(const std::vector<std::pair<std::string, const Tensor*>>& values) = 0;
};

struct Services {
  BatchSource* batches = nullptr;
  Peers* peers = nullptr;
  OutputSink* outputs = nullptr;
  std::uint64_t seed = 0;    // of random operators that have none of their own
  std::int64_t step = 0;     // counts runs; part of what dropout's masks are made of
  std::uint64_t worker = 0;  // which of several trainers this is, so that their masks differ
};

}  // namespace trainyard::graph
