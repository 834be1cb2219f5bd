// A gradient that comes in part by part, in any order, some of them twice.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/tensor.h"
#include "ps/rpc/frame.h"
#include "ps/rpc/message.pb.h"

namespace trainyard::ps {

// One time that a trainer has joined: what it sends after that may be made of other records than what it sent
// before, though the step is the same.
struct Attempt {
  std::int64_t incarnation = 0;
  std::int64_t attempt = 0;
  auto operator<=>(const Attempt&) const = default;
};
inline Attempt AttemptOf(const wire::Caller& caller) { return {caller.incarnation(), caller.attempt()}; }

// A part of a gradient, as it came.
struct GradientPart {
  const wire::Caller& caller;
  std::int64_t step = 0;
  const wire::Part& part;
  const Unpacked& message;
  std::size_t at = 0;  // where in the message's payload its bytes begin
};

// Bookkeeping of one gradient of one sender. The elements lie in a value of the owner's, which keeps its
// memory from step to step. Not thread-safe but where said.
//
//   Expect() ─ kWanted ─▶ Copy() ─▶ Arrived() ─▶ [whoever takes the value] ─▶ Release()
//
// From Expect() to Release() the value stays as it is but for parts of the same attempt: a gradient that
// would take its place is Unavailable until then, and its sender tries again.
class Inbox {
 public:
  // Where a part belongs, once it is known to be wanted.
  enum class Verdict { kWanted, kRepeat };
  // Begins the gradient anew if the part is of another step or a later attempt than what is there, and says
  // whether the part is still missing. InvalidArgument: it is none of this gradient. Aborted: a later attempt
  // has sent. Unavailable: what is there is in use, or the part is just being copied.
  absl::StatusOr<Verdict> Expect(const GradientPart& part, const graph::VarType& type, graph::Value& value);
  // Copies a wanted part to its place; several parts may be copied at once.
  static absl::Status Copy(const GradientPart& part, graph::Value& value);
  // A wanted part has been copied, or could not be.
  void Arrived(const GradientPart& part, bool copied);
  // Of a wanted part, once: the value is no longer in use for it.
  void Release() { --users_; }

  // All parts of that step have come.
  bool Whole(std::int64_t step) const { return step_ == step && missing_ == 0; }
  std::int64_t step() const { return step_; }
  void Clear() { *this = Inbox(); }

 private:
  bool Has(const GradientPart& part) const {
    return part.step == step_ && AttemptOf(part.caller) == attempt_;
  }

  std::int64_t step_ = -1;
  Attempt attempt_;
  enum class State : std::uint8_t { kMissing, kComing, kHere };
  std::vector<State> parts_;
  std::size_t missing_ = 0;
  int users_ = 0;
};

}  // namespace trainyard::ps
