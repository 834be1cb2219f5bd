// The model on pservers: workers tell these their gradients and fetch it from them; the master says which
// count.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "master/model_place.h"
#include "master/pserver/shards.h"

namespace trainyard::master {

struct PserverModelOptions {
  std::string folder;    // of checkpoints
  Model::Options model;  // of each pserver
};

// The shards outlive it. An origin that has values must name the checkpoint that they are in, since pservers
// read it themselves. InvalidArgument: the model cannot be kept in parts, and why.
absl::StatusOr<std::unique_ptr<ModelPlace>> KeepModelOnPservers(const ModelOrigin& origin, Shards& shards,
                                                                PserverModelOptions options);

}  // namespace trainyard::master
