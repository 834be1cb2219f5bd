// Where a model is and who makes its steps: in the master itself, or on pservers that the master orders
// about. The learner (master/learner.h) decides which gradients count, and goes by this whatever is behind
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/build/builder.h"
#include "master/call.h"
#include "master/checkpoints.h"
#include "master/model.h"

namespace trainyard::master {

// What a model is made of.
struct ModelOrigin {
  graph::Programs learning;         // startup: its first values; main: its updates
  std::vector<std::string> shared;  // the variables that workers get
  std::int64_t version = 0;
  Model::Variables values;  // instead of what the startup program makes
  bool all_values = false;  // all that it keeps is in `values`, as of a checkpoint
  std::string checkpoint;   // the file that they are from, if from any
};

// A gradient that has come and not been answered.
struct ArrivedGradient {
  wire::Push push;          // its head
  std::vector<Call> calls;  // of its messages
  Gradients values;         // none where they are elsewhere
};

// On the learner's thread, once it has been taken by it.
class ModelPlace {
 public:
  virtual ~ModelPlace() = default;

  // Calls `ready` when the model can be fetched and learn, perhaps at once, perhaps from another thread; or
  // why it never can.
  virtual void Start(std::function<void(const absl::Status&)> ready) = 0;
  virtual std::int64_t version() const = 0;

  // A message of a gradient. Nothing: more is to come, or it was wrong and has been refused.
  virtual std::optional<ArrivedGradient> Take(const Call& call, const wire::Push& push,
                                              const ps::Unpacked& message) = 0;
  // It counts for the next step.
  virtual void Add(ArrivedGradient& gradient, std::int64_t records) = 0;
  virtual int added() const = 0;
  // Makes a step of what was added. `rate`: times the learning rate. Returns what has become non-finite where
  // the job goes on with that, or "". An error: the model is of no more use.
  virtual absl::StatusOr<std::string> Apply(double rate) = 0;

  virtual void Pull(const Call& call, const wire::Pull& pull) = 0;
  // What the answer to a push says of the newest version, and its bytes.
  virtual wire::Pulled Newest(Session* session, std::vector<ps::Payload>& payload) = 0;
  // Keeps the present version for those who evaluate it.
  virtual absl::Status Freeze() = 0;
  // The session has ended: what it has begun is forgotten.
  virtual void Forget(Session* session) = 0;

  // Puts the model as it is now into the checkpoint, and calls `saved`, perhaps later and from another
  // thread.
  virtual void Save(const std::shared_ptr<ElasticCheckpoint>& checkpoint,
                    std::function<void(const absl::Status&)> saved) = 0;
};

// In this process. InvalidArgument: the model is wrong, and in what.
absl::StatusOr<std::unique_ptr<ModelPlace>> KeepModelHere(ModelOrigin origin, std::int64_t generation,
                                                          Model::Options options);

// What every checkpoint says of a model.
void Describe(const ModelOrigin& origin, std::int64_t version, ElasticCheckpoint& checkpoint);

}  // namespace trainyard::master
