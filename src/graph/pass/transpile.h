// Turns one program that trains on one machine into graphs that train together: trainers, which compute
// gradients, and pservers, which keep the parameters and learn. Pure.
//
// Each parameter is cut into blocks (graph/pass/slice.h) and each block has a pserver. A trainer sends the
// block's gradient there as soon as it is computed and receives the new block; a pserver runs one block of
// operators for each block of parameters that it has. Peers are named by graph id.
#pragma once

#include <cstdint>
#include <map>
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
  bool operator==(const Graph&) const = default;
};

struct TranspileOptions {
  int trainers = 1;
  std::int64_t passes = 1;
  int pservers = 1;
  SyncMode mode = SyncMode::kSync;
  bool slice = true;  // else each parameter is one block, and their order is shuffled by the seed
  std::int64_t min_block_elements = 8192;
  Dispatch dispatch = Dispatch::kRoundRobin;
};

struct Graphs {
  std::vector<Graph> trainers;
  std::vector<Graph> pservers;
};

// InvalidArgument: an option is out of range, the program has no optimizer, or has something that cannot be
// done in parts; the message says what and what to do instead.
absl::StatusOr<Graphs> Transpile(const Programs& programs, const TranspileOptions& options);

// "trainer-3"
std::string GraphId(GraphRole role, int index);

// Of one element: 1 / how many trainers took part in the step. The server sets it.
inline constexpr const char* kShare = "@SHARE@";

}  // namespace trainyard::graph
