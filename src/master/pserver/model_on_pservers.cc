#include "master/pserver/model_on_pservers.h"

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/ir/codec.h"
#include "graph/pass/shards.h"

namespace trainyard::master {
namespace {

class ModelOnPservers final : public ModelPlace {
 public:
  ModelOnPservers(const ModelOrigin& origin, Shards& shards, PserverModelOptions options)
      : origin_(origin), shards_(shards), options_(std::move(options)), version_(origin.version) {
    origin_.values.clear();
  }

  void Start(std::function<void(const absl::Status&)> ready) override {
    wire::Order order;
    wire::Order::Begin& begin = *order.mutable_begin();
    begin.set_generation(shards_.generation());
    begin.set_pservers(shards_.count());
    begin.set_version(origin_.version);
    begin.set_update(graph::Encode(origin_.learning.main));
    begin.set_startup(graph::Encode(origin_.learning.startup));
    for (const std::string& name : origin_.shared) begin.add_shared(name);
    begin.set_checkpoint(origin_.checkpoint);
    begin.set_threads(options_.model.threads);
    begin.set_on_nonfinite(std::string(graph::Name(options_.model.on_nonfinite)));
    shards_.Tell(std::move(order),
                 [ready = std::move(ready)](const Shards::Answers& answers) { ready(answers.status()); });
  }

  std::int64_t version() const override { return version_; }

  std::optional<ArrivedGradient> Take(const Call& call, const wire::Push& push,
                                      const ps::Unpacked&) override {
    if (push.has_name() && push.total() == 0) return ArrivedGradient{.push = push, .calls = {call}};
    call.Refuse(absl::InvalidArgumentError(
        "pservers have the model: tell them the gradients, and the master their name"));
    return std::nullopt;
  }

  void Add(ArrivedGradient& gradient, std::int64_t records) override {
    wire::Order::Part& part = *apply_.add_parts();
    *part.mutable_name() = gradient.push.name();
    part.set_records(records);
  }
  int added() const override { return apply_.parts_size(); }

  absl::StatusOr<std::string> Apply(double rate) override {
    wire::Order order;
    *order.mutable_apply() = std::exchange(apply_, {});
    order.mutable_apply()->set_version(version_ + 1);
    order.mutable_apply()->set_rate(rate);
    TY_ASSIGN_OR_RETURN(const std::vector<wire::Obeyed> answers, shards_.Ask(std::move(order)));
    ++version_;
    for (const wire::Obeyed& obeyed : answers) {
      if (!obeyed.nonfinite().empty()) return obeyed.nonfinite();
    }
    return "";
  }

  void Pull(const Call& call, const wire::Pull&) override {
    wire::Answer answer;
    *answer.mutable_pulled() = Where();
    call.Reply(std::move(answer));
  }
  wire::Pulled Newest(Session*, std::vector<ps::Payload>&) override { return Where(); }

  absl::Status Freeze() override {
    wire::Order order;
    order.mutable_freeze()->set_version(version_);
    return shards_.Ask(std::move(order)).status();
  }

  void Forget(Session*) override {}

  void Save(const std::shared_ptr<ElasticCheckpoint>& checkpoint,
            std::function<void(const absl::Status&)> saved) override {
    Describe(origin_, version_, *checkpoint);
    wire::Order order;
    order.mutable_write()->set_version(version_);
    order.mutable_write()->set_folder(options_.folder);
    shards_.Tell(std::move(order), [checkpoint, saved = std::move(saved)](const Shards::Answers& answers) {
      if (!answers.ok()) return saved(answers.status());
      for (const wire::Obeyed& obeyed : *answers) {
        checkpoint->parts.push_back({.file = std::filesystem::path(obeyed.written().file()).filename(),
                                     .bytes = obeyed.written().bytes(),
                                     .crc32c = obeyed.written().crc32c()});
        if (checkpoint->nonfinite.empty()) checkpoint->nonfinite = obeyed.nonfinite();
      }
      saved(absl::OkStatus());
    });
  }

 private:
  wire::Pulled Where() {
    wire::Pulled pulled;
    pulled.set_generation(shards_.generation());
    pulled.set_version(version_);
    for (std::string& address : shards_.Addresses()) pulled.add_pservers(std::move(address));
    return pulled;
  }

  ModelOrigin origin_;
  Shards& shards_;
  const PserverModelOptions options_;
  std::int64_t version_;
  wire::Order::Apply apply_;  // what the next step is made of so far
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelPlace>> KeepModelOnPservers(const ModelOrigin& origin, Shards& shards,
                                                                PserverModelOptions options) {
  TY_CHECK(origin.values.empty() || !origin.checkpoint.empty(), "pservers read a model's values themselves");
  TY_RETURN_IF_ERROR(graph::CutIntoShards(origin.learning, origin.shared, shards.count()));
  return std::make_unique<ModelOnPservers>(origin, shards, std::move(options));
}

}  // namespace trainyard::master
