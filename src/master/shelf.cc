#include "master/shelf.h"

#include <utility>

#include "base/text.h"

namespace trainyard::master {

void Shelf::Describe(std::map<std::string, wire::Slice> slices, std::vector<wire::Variable> gradients) {
  slices_ = std::move(slices);
  gradients_ = std::move(gradients);
}

void Shelf::Put(std::int64_t version, NamedValues values) { newest_ = {version, std::move(values)}; }

wire::Pulled Shelf::HeadOf(const Version& version) const {
  wire::Pulled pulled;
  pulled.set_generation(generation_);
  pulled.set_version(version.version);
  for (const auto& [name, value] : version.values) {
    wire::Variable& head = *pulled.add_variables();
    head = master::HeadOf(name, value);
    if (const auto slice = slices_.find(name); slice != slices_.end()) *head.mutable_slice() = slice->second;
  }
  for (const wire::Variable& gradient : gradients_) *pulled.add_gradients() = gradient;
  pulled.set_total(BytesOf(version.values));
  return pulled;
}

wire::Pulled Shelf::First(Session* session, std::vector<ps::Payload>& payload) {
  payload = PartOf(newest_.values, 0);
  Hold(session, newest_);
  return HeadOf(newest_);
}

const Shelf::Version* Shelf::Find(Session* session, std::int64_t version) const {
  if (version < 0) return &newest_;
  if (version == frozen_.version) return &frozen_;
  if (const auto held = held_.find(session); held != held_.end() && held->second.version == version)
    return &held->second;
  return version == newest_.version ? &newest_ : nullptr;
}

void Shelf::Answer(const Call& call, const wire::Pull& pull) {
  Session* const session = call.session.get();
  if (pull.generation() != 0 && pull.generation() != generation_)
    return call.Refuse(absl::AbortedError("there is another model now: begin anew"));
  const Version* const found = Find(session, pull.version());
  if (found == nullptr) {
    return call.Refuse(absl::AbortedError(
        StrCat("version ", pull.version(), " is gone, the model is at ", newest_.version, ": begin anew")));
  }
  const std::int64_t total = BytesOf(found->values);
  if (pull.offset() < 0 || pull.offset() > total)
    return call.Refuse(absl::InvalidArgumentError("a part of the model that there is not"));
  wire::Answer answer;
  if (pull.offset() == 0) {
    *answer.mutable_pulled() = HeadOf(*found);
  } else {
    answer.mutable_pulled()->set_generation(generation_);
    answer.mutable_pulled()->set_version(found->version);
  }
  call.Reply(std::move(answer), PartOf(found->values, pull.offset()));
  if (pull.offset() == 0) {
    Hold(session, *found);
  } else if (pull.offset() + ps::kFrameBytes >= total) {
    held_.erase(session);
  }
}

// What a worker has begun to fetch stays as it was.
void Shelf::Hold(Session* session, const Version& version) {
  if (BytesOf(version.values) > ps::kFrameBytes) held_[session] = version;
}

}  // namespace trainyard::master
