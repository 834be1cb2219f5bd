// A worker's lines to the pservers of its job, where these have the model: it is fetched in parts and put
// together, and gradients are cut for those who want them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "master/rpc/link.h"
#include "master/worker/trainer.h"

namespace trainyard::master {

struct ShardLinksOptions {
  std::string token;
  int worker = 0;
  std::int64_t incarnation = 0;  // of this process
  std::string pod;
  absl::Duration patience =
      absl::Seconds(5);  // with one that is away; then the master is asked where they are
};

// One thread, but for Drop(). Aborted, of all calls: the model may be elsewhere now; ask the master.
class ShardLinks {
 public:
  explicit ShardLinks(ShardLinksOptions options) : options_(std::move(options)) {}

  // To these pservers, which have a model of that generation.
  absl::Status Connect(std::int64_t generation, const std::vector<std::string>& addresses);
  bool connected() const;

  // -1: the newest that each of them has; the model's version is the lowest of these.
  absl::StatusOr<PulledModel> Pull(std::int64_t version);
  // Tells all pservers; the name under which they have it.
  absl::StatusOr<wire::GradientName> Push(const WorkerTrainer::Gradient& gradient);

  // From any thread: whoever has a model of another generation is not waited for any more. 0: nobody is.
  void Drop(std::int64_t generation);

 private:
  struct Peers {
    std::int64_t generation = 0;
    std::vector<std::shared_ptr<Link>> links;
  };
  Peers Now() const;
  absl::Status Lost(const absl::Status& why);

  const ShardLinksOptions options_;
  std::vector<std::vector<wire::Variable>> wanted_;  // gradients, of each pserver
  std::int64_t sequence_ = 0;
  mutable Mutex mu_;
  Peers peers_ TY_GUARDED_BY(mu_);
};

// What a pserver wants of the gradients that a worker has, under its names.
NamedValues CutGradients(const NamedValues& gradients, const std::vector<wire::Variable>& wanted);

// Parts of variables put together.
class ModelParts {
 public:
  // `heads` are of the values, in their order. InvalidArgument: a part does not fit the others.
  absl::Status Add(const google::protobuf::RepeatedPtrField<wire::Variable>& heads, NamedValues values);
  NamedValues Take();

 private:
  std::map<std::string, graph::Tensor> whole_;
};

}  // namespace trainyard::master
