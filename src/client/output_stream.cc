#include "client/output_stream.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

// How long nothing comes before it is asked whether the job still goes on.
constexpr absl::Duration kBetweenOutputPolls = absl::Milliseconds(200);

bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status);
}

}  // namespace

OutputStream::OutputStream(kv::Store& store, ps::JobKeys keys, Choice choice, JobLook look)
    : store_(store),
      keys_(std::move(keys)),
      range_(StrCat(keys_.Root(), "graph_output/", choice.prefix)),
      choice_(std::move(choice)),
      look_(std::move(look)),
      follower_(store, kv::KeyRange::Prefix(range_)) {}

absl::StatusOr<GraphOutput> OutputStream::Next(absl::Duration timeout) {
  const SteadyTime deadline = Clock::System().Steady() + timeout;
  while (ready_.empty()) {
    TY_RETURN_IF_ERROR(end_);
    const absl::Duration left = deadline - Clock::System().Steady();
    if (left < absl::ZeroDuration())
      return absl::DeadlineExceededError(StrCat("job ", keys_.job, " has put out nothing more yet"));
    absl::StatusOr<kv::Follower::Update> update = follower_.Next(std::min(left, kBetweenOutputPolls));
    if (update.ok()) {
      if (const auto* snapshot = std::get_if<kv::Snapshot>(&*update)) {
        for (const kv::KeyValue& kv : snapshot->kvs) TY_RETURN_IF_ERROR(Take(kv));
      } else {
        for (const kv::WatchEvent& event : std::get<kv::WatchBatch>(*update).events) {
          if (event.type == kv::WatchEvent::Type::kPut) TY_RETURN_IF_ERROR(Take(event.kv));
        }
      }
    } else if (IsPassing(update.status())) {
      if (absl::Status found = FindEnd(); !found.ok() && !IsPassing(found)) end_ = std::move(found);
    } else {
      return std::move(update).status();
    }
  }
  GraphOutput next = std::move(ready_.front());
  ready_.pop_front();
  return next;
}

absl::Status OutputStream::Take(const kv::KeyValue& kv) {
  const std::vector<std::string_view> parts =
      Split(std::string_view(kv.key).substr(keys_.Root().size()), '/');
  const auto sequence = parts.size() == 3 ? ParseNumber<std::int64_t>(parts[2]) : std::nullopt;
  if (!sequence) return absl::InvalidArgumentError(StrCat("'", Escaped(kv.key), "' is no key of an output"));
  Seen& seen = seen_[std::string(parts[1])];
  if (*sequence <= seen.sequence) return absl::OkStatus();
  seen.sequence = *sequence;
  absl::StatusOr<ps::Output> output = ps::DecodeOutput(kv.value);
  if (!output.ok()) return Annotate(output.status(), kv.key);
  if (output->committed ? output->step <= seen.step : !choice_.uncommitted) return absl::OkStatus();
  if (output->committed) seen.step = output->step;
  for (ps::OutputValue& value : output->values) {
    const std::vector<std::string>& names = choice_.names;
    if (!names.empty() && std::ranges::find(names, value.name) == names.end()) continue;
    ready_.push_back({std::string(parts[1]), output->pass, output->step, output->time, output->committed,
                      std::move(value)});
  }
  return absl::OkStatus();
}

// What the watch may not have brought yet.
absl::Status OutputStream::TakeAll() {
  kv::Follower all(store_, kv::KeyRange::Prefix(range_));
  TY_ASSIGN_OR_RETURN(const kv::Follower::Update update, all.Next(absl::Seconds(10)));
  if (const auto* snapshot = std::get_if<kv::Snapshot>(&update)) {
    for (const kv::KeyValue& kv : snapshot->kvs) TY_RETURN_IF_ERROR(Take(kv));
  }
  return absl::OkStatus();
}

// OK: the job goes on. A job is over when it is complete and nobody of it is left who could write.
absl::Status OutputStream::FindEnd() {
  const absl::StatusOr<ps::StoredMeta> stored = ps::GetMeta(store_, keys_);
  if (absl::IsNotFound(stored.status())) return absl::NotFoundError(StrCat("job ", keys_.job, " was killed"));
  if (!stored.ok()) return stored.status();
  if (stored->meta.state == ps::JobState::kFailed) return Failed(stored->meta);
  if (stored->meta.state == ps::JobState::kComplete) {
    TY_ASSIGN_OR_RETURN(
        const kv::RangeResult pods,
        store_.Range({.range = kv::KeyRange::Prefix(keys_.Pod("trainer-")), .keys_only = true}));
    if (!pods.kvs.empty()) return absl::OkStatus();
    TY_RETURN_IF_ERROR(TakeAll());
    return absl::OutOfRangeError(StrCat("job ", keys_.job, " is complete"));
  }
  const absl::Status look = look_ ? look_() : absl::OkStatus();
  if (look.ok() || absl::IsOutOfRange(look) || IsPassing(look)) return look;
  // Its graphs say it better than its pods, if they could.
  const absl::StatusOr<ps::StoredMeta> again = ps::GetMeta(store_, keys_);
  return again.ok() && again->meta.state == ps::JobState::kFailed ? Failed(again->meta) : look;
}

absl::Status OutputStream::Failed(const ps::JobMeta& meta) {
  TY_RETURN_IF_ERROR(TakeAll());
  return absl::FailedPreconditionError(StrCat("job ", keys_.job, " has failed: ", meta.reason));
}

}  // namespace trainyard::client
