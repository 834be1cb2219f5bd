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

std::size_t PartNumber(const GradientPart& part) {
  return static_cast<std::size_t>(part.part.offset()) / kFrameBytes;
}

}  // namespace

absl::StatusOr<Inbox::Verdict> Inbox::Expect(const GradientPart& part, const graph::VarType& type,
                                             graph::Value& value) {
  const std::string& name = part.part.name();
  if (AttemptOf(part.caller) < attempt_)
    return absl::AbortedError(StrCat("a later ", part.caller.sender(), " has sent ", name));
  if (!Has(part)) {
    if (users_ > 0) return absl::UnavailableError(StrCat("gradient ", name, " of before is in use"));
    absl::Status made = MakeRoom(part.part.tensor(), type, value);
    if (!made.ok()) return Annotate(made, StrCat("gradient ", name));
    step_ = part.step;
    attempt_ = AttemptOf(part.caller);
    parts_.assign(PartsOf(BytesOf(value)), State::kMissing);
    missing_ = parts_.size();
  }
  const std::size_t bytes = BytesOf(value);
  const std::int64_t offset = part.part.offset();
  const std::size_t number = PartNumber(part);
  if (offset < 0 || offset % kFrameBytes != 0 || number >= parts_.size() ||
      part.part.length() != std::min(kFrameBytes, static_cast<std::int64_t>(bytes) - offset)) {
    return absl::InvalidArgumentError(StrCat("gradient ", name, ": ", part.part.length(), " bytes from ",
                                             offset, " on are no part of ", bytes));
  }
  if (parts_[number] == State::kHere) return Verdict::kRepeat;
  if (parts_[number] == State::kComing)
    return absl::UnavailableError(StrCat("gradient ", name, ": the part from ", offset, " on is coming"));
  parts_[number] = State::kComing;
  ++users_;
  return Verdict::kWanted;
}

absl::Status Inbox::Copy(const GradientPart& part, graph::Value& value) {
  return PutPart(part.message, part.at, static_cast<std::size_t>(part.part.length()),
                 static_cast<std::size_t>(part.part.offset()), value);
}

void Inbox::Arrived(const GradientPart& part, bool copied) {
  parts_[PartNumber(part)] = copied ? State::kHere : State::kMissing;
  if (copied) --missing_;
}

}  // namespace trainyard::ps
