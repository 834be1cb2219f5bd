// Turns one program that trains on one machine into graphs that train together: trainers, which compute
// gradients, and pservers, which keep the parameters and learn. Pure.
//
// Each parameter is cut into blocks (graph/pass/slice.h) and each block has a pserver. A trainer sends the
// block's gradient there as soon as it is computed and receives the new block; a pserver runs one block of
// operators for each block of parameters that it has. Peers are named by graph id.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/build/builder.h"
#include "graph/ir/program.h"
#include "graph/pass/slice.h"

namespace trainyard::graph {

enum class GraphRole : std::uint8_t { kTrainer, kPserver };
enum class SyncMode : std::uint8_t { kSync, kAsync };
std::string_view Name(GraphRole role);
std::string_view Name(SyncMode mode);

// What one pod must have, as Kubernetes writes it; "": nothing is asked for.
struct Resource {
  std::string cpu;
  std::string gpu;
  std::string memory;
  bool operator==(const Resource&) const = default;
};

struct TranspileOptions {
  int trainers = 1;
  std::int64_t passes = 1;
  int pservers = 1;
  SyncMode mode = SyncMode::kSync;
  bool slice = true;  // else each parameter is one block, and their order is shuffled by the seed
  std::int64_t min_block_elements = 8192;
  Dispatch dispatch = Dispatch::kRoundRobin;
  int slots = 0;  // for so many trainers the pservers have room; at least for those that there are
  bool operator==(const TranspileOptions&) const = default;
};

// What graphs of one transpilation have in common, beside the programs and the options that do not change: a
// graph is a function of these, its role and its number.
struct Cut {
  int pservers = 1;
  int slots = 1;
  bool operator==(const Cut&) const = default;
};
Cut CutOf(const TranspileOptions& options);

// What graphs were made of, so that others can be made of it while the job runs.
struct Origin {
  Programs programs;
  TranspileOptions options;
};
bool operator==(const Origin& a, const Origin& b);

struct Graph {
  std::string id;  // "trainer-0", "pserver-1"
  GraphRole role = GraphRole::kTrainer;
  int index = 0;
  SyncMode mode = SyncMode::kSync;
  Program startup;
  Program main;
  Resource resource;
  std::map<std::string, std::string> send_var_graph_map;  // variable -> graph id
  std::map<std::string, std::string> recv_var_graph_map;
  Cut cut;
  // Set by Transpile(); no part of the graph's value.
  std::shared_ptr<const Origin> origin;
};
bool operator==(const Graph& a, const Graph& b);

struct Graphs {
  std::vector<Graph> trainers;
  std::vector<Graph> pservers;
};

// InvalidArgument: an option is out of range, the program has no optimizer, or has something that cannot be
// done in parts; the message says what and what to do instead.
absl::StatusOr<Graphs> Transpile(const Programs& programs, const TranspileOptions& options);
// The one graph that Transpile() would make of the origin's programs under another cut, without its origin.
absl::StatusOr<Graph> TranspileOne(const Origin& origin, const Cut& cut, GraphRole role, int index);

// "trainer-3"
std::string GraphId(GraphRole role, int index);

// Of one element: 1 / how many trainers took part in the step. The server sets it.
inline constexpr const char* kShare = "@SHARE@";

}  // namespace trainyard::graph
