// Answers what changes objects. Every change is one transaction with the version that it was decided on as
// its condition; one that meets another change is decided anew.
//
//   read ─▶ decide (pure) ─▶ transaction ──▶ answer
//     ▲                          │
//     └──── somebody was first ──┘
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "apiserver/call.h"
#include "apiserver/object_write.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "kv/store.h"

namespace trainyard::apiserver {

// What a request makes of the object that is there.
struct Modification {
  enum class Kind { kStore, kRemove, kNothing };
  Kind kind = Kind::kNothing;
  Document object;  // of kStore; of kRemove: as it was
  bool created = false;
};
using Modify = std::function<absl::StatusOr<Modification>(Call& call, const std::optional<Document>& live)>;
// Sends the answer, once the change is durable. `stored` is the object's text, empty if it was removed.
using Answer =
    std::function<void(Call& call, const Modification& made, std::string_view stored, kv::Revision revision)>;

class Writer {
 public:
  struct Options {
    kv::Store* store = nullptr;
    Clock* clock = &Clock::System();
    IdSource* ids = nullptr;
    Executor* retries = nullptr;  // where a change is decided anew; null: at once
    Executor* large = nullptr;    // where a change of a large object is decided; null: at once
    absl::Duration event_life = absl::Hours(1);
    std::size_t most_events = 16'000;  // about as many; of more the oldest go before their time
    // A CustomResourceDefinition has changed; called before the change is answered.
    std::function<void()> definitions_changed = [] {};
  };
  explicit Writer(Options options) : options_(std::move(options)) {}

  void Create(const CallPtr& call);
  void Update(const CallPtr& call);
  void Patch(const CallPtr& call);
  void Delete(const CallPtr& call);
  // Deletes the objects that a list has found, and answers when all are done.
  void DeleteListed(const CallPtr& call, const std::vector<kube::ObjectKey>& keys);
  void Bind(const CallPtr& call);
  void Evict(const CallPtr& call);
  void ChangeScale(const CallPtr& call);

  // Reads the object that the call names, lets `modify` decide, stores what it decided, and answers.
  void Change(const CallPtr& call, const Modify& modify, const Answer& answer);

 private:
  WriteContext Context(Call& call) const;
  absl::StatusOr<Modification> MakeNew(Call& call, Document body, const WriteContext& context);
  absl::Status AssignAddress(const Call& call, Document& service) const;
  absl::Status CheckNamespace(const Call& call) const;
  absl::StatusOr<kv::TxnRequest> Transaction(const Call& call, const std::string& key,
                                             const std::optional<kv::KeyValue>& live,
                                             const Modification& made, const std::string& stored);
  // The lease of an event that is written now.
  absl::StatusOr<kv::LeaseId> EventLease();
  void DeleteOn(const CallPtr& call, const DeleteTerms& terms, Answer answer);

  const Options options_;
  Mutex mu_;
  struct SharedLease {
    kv::LeaseId id = kv::kNoLease;
    SteadyTime until;  // for new events
    std::size_t events = 0;
  };
  std::deque<SharedLease> event_leases_ TY_GUARDED_BY(mu_);  // of this server, the newest last
};

}  // namespace trainyard::apiserver
