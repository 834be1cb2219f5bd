#include "ps/inbox.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/op/check.h"
#include "ps/rpc/tensor_parts.h"

namespace trainyard::ps {
namespace {

// Room for what the head tells of; the room that there is if it suffices.
absl::Status MakeRoom(const wire::TensorHead& head, const graph::VarType& type, graph::Value& value) {
  const wire::TensorHead now = HeadOf(value);
  const bool same = now.sparse() == head.sparse() && now.data_type() == head.data_type() &&
                    now.rows() == head.rows() &&
                    std::equal(now.dims().begin(), now.dims().end(), head.dims().begin(), head.dims().end());
  if (same && graph::Agrees(type, graph::TypeOf(value))) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(value, MakeValue(head, type));
  return absl::OkStatus();
}

std::size_t PartsOf(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kFrameBytes - 1) / static_cast<std::size_t>(kFrameBytes));
}

}  // namespace

absl::StatusOr<Inbox::Verdict> Inbox::Expect(const wire::PushRequest& request, const Unpacked& message,
                                             const graph::VarType& type, graph::Value& value) {
  if (AttemptOf(request.caller()) < attempt_)
    return absl::AbortedError(StrCat("a later ", request.caller().sender(), " has sent ", request.name()));
  if (!IsOf(request)) {
    absl::Status made = MakeRoom(request.tensor(), type, value);
    if (!made.ok()) return Annotate(made, StrCat("gradient ", request.name()));
    step_ = request.step();
    attempt_ = AttemptOf(request.caller());
    here_.assign(PartsOf(BytesOf(value)), false);
    missing_ = here_.size();
  }
  const std::size_t bytes = BytesOf(value);
  const auto offset = static_cast<std::size_t>(request.offset());
  if (request.offset() < 0 || request.offset() % kFrameBytes != 0 || offset / kFrameBytes >= here_.size() ||
      message.payload_size() != std::min<std::size_t>(kFrameBytes, bytes - offset)) {
    return absl::InvalidArgumentError(StrCat("gradient ", request.name(), ": ", message.payload_size(),
                                             " bytes from ", request.offset(), " on are no part of ", bytes));
  }
  return here_[offset / kFrameBytes] ? Verdict::kRepeat : Verdict::kWanted;
}

absl::Status Inbox::Copy(const wire::PushRequest& request, const Unpacked& message, graph::Value& value) {
  return PutPart(message, static_cast<std::size_t>(request.offset()), value);
}

void Inbox::Arrived(const wire::PushRequest& request) {
  const std::size_t part = static_cast<std::size_t>(request.offset()) / kFrameBytes;
  // The gradient may have been begun anew while the part was copied.
  if (!IsOf(request) || part >= here_.size() || here_[part]) return;
  here_[part] = true;
  --missing_;
}

}  // namespace trainyard::ps
