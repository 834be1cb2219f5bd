// The model in the master's own memory.
#include <utility>

#include "base/status.h"
#include "graph/ir/codec.h"
#include "master/intake.h"
#include "master/model_place.h"
#include "master/shelf.h"

namespace trainyard::master {
namespace {

class ModelHere final : public ModelPlace {
 public:
  ModelHere(ModelOrigin origin, std::unique_ptr<Model> model, std::int64_t generation)
      : origin_(std::move(origin)), model_(std::move(model)), shelf_(generation) {
    PutNewest();
  }

  void Start(std::function<void(const absl::Status&)> ready) override { ready(absl::OkStatus()); }
  std::int64_t version() const override { return model_->version(); }

  std::optional<ArrivedGradient> Take(const Call& call, const wire::Push& push,
                                      const ps::Unpacked& message) override {
    auto whole = intake_.Take(call, push, message, [this](Assembly& assembly, const wire::Push& first) {
      return assembly.Begin(first.variables(), first.total(), model_->sent());
    });
    if (!whole) return std::nullopt;
    ArrivedGradient arrived{.push = std::move(whole->head), .calls = std::move(whole->calls)};
    for (auto& [name, value] : whole->values) arrived.values.emplace(name, std::move(value));
    return arrived;
  }

  void Add(ArrivedGradient& gradient, std::int64_t records) override {
    sum_.Add(std::move(gradient.values), records);
  }
  int added() const override { return sum_.reports(); }

  absl::StatusOr<std::string> Apply(double rate) override {
    shelf_.TakeAway();
    TY_ASSIGN_OR_RETURN(std::string nonfinite, model_->Apply(sum_.TakeMean(), rate));
    PutNewest();
    return nonfinite;
  }

  void Pull(const Call& call, const wire::Pull& pull) override { shelf_.Answer(call, pull); }
  wire::Pulled Newest(Session* session, std::vector<ps::Payload>& payload) override {
    return shelf_.First(session, payload);
  }
  absl::Status Freeze() override {
    shelf_.Freeze();
    return absl::OkStatus();
  }
  void Forget(Session* session) override {
    intake_.Forget(session);
    shelf_.Forget(session);
  }

  void Save(const std::shared_ptr<ElasticCheckpoint>& checkpoint,
            std::function<void(const absl::Status&)> saved) override {
    Describe(origin_, model_->version(), *checkpoint);
    checkpoint->variables = model_->TakeAll();
    saved(absl::OkStatus());
  }

 private:
  void PutNewest() { shelf_.Put(model_->version(), model_->TakeShared()); }

  ModelOrigin origin_;
  std::unique_ptr<Model> model_;
  GradientSum sum_;
  Intake<wire::Push> intake_;
  Shelf shelf_;
};

}  // namespace

void Describe(const ModelOrigin& origin, std::int64_t version, ElasticCheckpoint& checkpoint) {
  checkpoint.version = version;
  checkpoint.update = graph::Encode(origin.learning.main);
  checkpoint.startup = graph::Encode(origin.learning.startup);
  checkpoint.shared = origin.shared;
}

absl::StatusOr<std::unique_ptr<ModelPlace>> KeepModelHere(ModelOrigin origin, std::int64_t generation,
                                                          Model::Options options) {
  TY_ASSIGN_OR_RETURN(auto model,
                      Model::Make(origin.learning.main, origin.learning.startup, origin.shared, options));
  TY_RETURN_IF_ERROR(origin.all_values ? model->Restore(origin.version, origin.values)
                                       : model->Start(origin.values));
  origin.values.clear();
  return std::make_unique<ModelHere>(std::move(origin), std::move(model), generation);
}

}  // namespace trainyard::master
