// The first half of transpiling: what of a program goes where. The second half (graph/pass/transpile.cc)
// writes the programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/pass/transpile.h"

namespace trainyard::graph {

// One piece of a parameter on one pserver.
struct Piece {
  std::string parameter;  // the piece's own name: "w.block0"
  std::string gradient;   // "w@GRAD.block0"
  VarBlock block;         // which elements; of a shard of a table: those of its rows
  Dims dims;
  int pserver = 0;
};

// A variable that learns, and all that belongs to it.
struct Learner {
  std::string parameter;
  std::string gradient;  // what the optimise operators begin with
  Dims dims;
  bool sparse = false;
  bool table = false;   // distributed: row r is on pserver r mod n
  std::vector<Op> ops;  // clipping, decay, update, in order
  std::vector<Piece> pieces;
};

struct Partition {
  std::vector<Learner> learners;
  std::vector<Op> schedule;
};

// Whether a pserver keeps each trainer's gradient by itself until it adds them up.
bool ToldApart(const TranspileOptions& options);

// The name under which a trainer's gradient arrives: "w@GRAD.block0.trainer_3", or without the trainer where
// they are not told apart.
std::string SlotName(const Learner& learner, const Piece& piece, int trainer,
                     const TranspileOptions& options);

absl::StatusOr<Partition> MakePartition(const Programs& programs, const TranspileOptions& options);

}  // namespace trainyard::graph
