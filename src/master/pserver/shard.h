// A part of a job's model in the memory of a pserver. Workers tell it gradients and fetch it; the master says
// which of the gradients count, and when.
//
//   Push ──▶ [kept under its name] ── Order::Apply names it ──▶ added up ──▶ Model::Apply ──▶ the next
//   version
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/steady_time.h"
#include "master/intake.h"
#include "master/model.h"
#include "master/rpc/sessions.h"
#include "master/shelf.h"
#include "master/wire.pb.h"

namespace trainyard::master {

class Shard final : public SessionHandler {
 public:
  explicit Shard(int index) : index_(index) {}

  // Does what the master wants, after all that it wanted before; `done` comes once, on a thread of the
  // shard's own.
  void Obey(wire::Order order, std::function<void(wire::Obeyed)> done);

  // ---- SessionHandler: workers
  void OnMessage(const std::shared_ptr<Session>& session, ps::Unpacked message) override;
  void OnEnd(const std::shared_ptr<Session>& session) override;

 private:
  // Gradients of one worker's process.
  struct Sender {
    std::map<std::int64_t, Gradients> gradients;  // by sequence
    std::optional<SteadyTime> left;               // when its stream ended
  };

  absl::Status Begin(const wire::Order::Begin& begin);
  absl::Status Apply(const wire::Order::Apply& apply, wire::Obeyed& obeyed);
  absl::Status Freeze(const wire::Order::Freeze& freeze);
  void Write(const wire::Order::Write& write, wire::Obeyed obeyed, std::function<void(wire::Obeyed)> done);
  absl::Status CheckVersion(std::int64_t version) const;
  void ForgetUseless();
  void PutNewest();

  void OnRequest(const Call& call, wire::Request& request, const ps::Unpacked& message);
  void OnPush(const Call& call, const wire::Push& push, const ps::Unpacked& message);

  const int index_;
  std::int64_t generation_ = 0;  // 0: it has no part of a model
  std::unique_ptr<Model> model_;
  std::unique_ptr<Shelf> shelf_;
  Intake<wire::Push> intake_;
  std::map<std::int64_t, Sender> senders_;         // by incarnation
  std::map<Session*, std::int64_t> incarnations_;  // of those who have sent something
  std::unique_ptr<Executor> writer_ = std::make_unique<Executor>();
  std::unique_ptr<Executor> thread_ =
      std::make_unique<Executor>();  // all of the above is its own; it ends first
};

}  // namespace trainyard::master
