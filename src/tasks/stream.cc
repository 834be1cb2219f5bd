#include "tasks/stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace trainyard::tasks {
namespace {

constexpr std::ptrdiff_t kMostLookedAt = 64;

}  // namespace

Stream::Stream(State state) : state_(std::move(state)) {
  const StreamOptions& options = state_.options;
  TY_CHECK(options.records >= 0 && options.records_per_task > 0 && options.records_per_task <= UINT32_MAX,
           "a stream's options were checked");
  returned_.assign(state_.returned.begin(), state_.returned.end());
  state_.returned.clear();
  ranges_ = CountRanges();
  if (ranges_ == 0 || options.epochs <= 0) {
    state_.stopped = true;
    return;
  }
  BeginEpoch();
}

std::int64_t Stream::CountRanges() const {
  const std::int64_t per = state_.options.records_per_task;
  return state_.options.records / per + (state_.options.records % per > 0 ? 1 : 0);
}

void Stream::BeginEpoch() {
  state_.unended.try_emplace(state_.epoch, 0);
  order_.reset();
  if (state_.options.seed != 0) order_.emplace(ranges_, state_.epoch, state_.options.seed);
}

std::deque<Piece>::const_iterator Stream::FindReturned(const Admit& admit) const {
  const auto end = returned_.begin() + std::min<std::ptrdiff_t>(std::ssize(returned_), kMostLookedAt);
  const auto found = std::find_if(returned_.begin(), end, admit);
  return found == end ? returned_.end() : found;
}

bool Stream::HasNext(bool busy) const {
  if (state_.stopped) return false;
  if (state_.next < ranges_) return true;
  // What was given back is of this epoch, even while it waits for another worker.
  const bool unended = busy || !returned_.empty();
  return state_.epoch + 1 < state_.options.epochs && (!unended || state_.options.overlap);
}

bool Stream::Has(bool busy, const Admit& admit) const {
  return FindReturned(admit) != returned_.end() || HasNext(busy);
}

std::optional<Piece> Stream::Take(bool busy, const Admit& admit) {
  if (const auto found = FindReturned(admit); found != returned_.end()) {
    const Piece piece = *found;
    returned_.erase(found);
    return piece;
  }
  if (!HasNext(busy)) return std::nullopt;
  if (state_.next == ranges_) {
    ++state_.epoch;
    state_.next = 0;
    BeginEpoch();
  }
  const std::int64_t place = state_.next++;
  const std::int64_t begin = (order_ ? order_->At(place) : place) * state_.options.records_per_task;
  return Piece{.epoch = state_.epoch,
               .records = {begin, std::min(begin + state_.options.records_per_task, state_.options.records)}};
}

void Stream::GiveBack(const Piece& piece) {
  if (!state_.stopped) returned_.push_back(piece);
}

void Stream::Count(std::int64_t epoch, std::int64_t records) {
  state_.done += records;
  const auto found = state_.unended.find(epoch);
  TY_CHECK(found != state_.unended.end(), "records are done in an epoch that has begun and not ended");
  found->second += records;
  TY_CHECK(found->second <= state_.options.records, "an epoch has each record once");
  // The present one stays, so that what was done in it can be told.
  while (!state_.unended.empty() && state_.unended.begin()->first < state_.epoch &&
         state_.unended.begin()->second == state_.options.records)
    state_.unended.erase(state_.unended.begin());
}

void Stream::Stop() {
  state_.stopped = true;
  returned_.clear();
}

bool Stream::IsDrained() const {
  if (!returned_.empty()) return false;
  return state_.stopped || (state_.next == ranges_ && state_.epoch + 1 >= state_.options.epochs);
}

std::int64_t Stream::done_in_epoch() const {
  const auto found = state_.unended.find(state_.epoch);
  return found == state_.unended.end() ? 0 : found->second;
}

std::int64_t Stream::waiting() const {
  return static_cast<std::int64_t>(returned_.size()) + (state_.stopped ? 0 : ranges_ - state_.next);
}

Stream::State Stream::Save() const {
  State state = state_;
  state.returned.assign(returned_.begin(), returned_.end());
  return state;
}

}  // namespace trainyard::tasks
