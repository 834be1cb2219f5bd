// The records of one kind of work, cut into ranges: those that nobody had yet, by arithmetic alone, and those
// that were given back. Pure; memory is for what was given back, however many ranges there are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/permutation.h"
#include "tasks/task.h"

namespace trainyard::tasks {

struct StreamOptions {
  std::int64_t records = 0;
  std::int64_t records_per_task = 512;  // below 2^32; the last range of an epoch may have fewer
  std::int64_t epochs = 1;
  std::uint64_t seed = 0;  // another order of the ranges in each epoch; 0: in order
  bool overlap = false;    // an epoch may begin while ranges of the one before are still being worked on
  bool operator==(const StreamOptions&) const = default;
};

// A range that was given back.
struct Piece {
  std::int64_t epoch = 0;
  Range records;
  int failures = 0;
  bool operator==(const Piece&) const = default;
};

class Stream {
 public:
  // What it consists of; of what is being worked on the queue knows.
  struct State {
    StreamOptions options;
    std::int64_t epoch = 0;                        // that ranges are cut of
    std::int64_t next = 0;                         // the first place of it that nobody had yet
    std::int64_t done = 0;                         // records, of all epochs
    std::map<std::int64_t, std::int64_t> unended;  // epochs that have begun -> their records that are done
    std::vector<Piece> returned;                   // in the order in which they are given out again
    bool stopped = false;                          // nothing is cut any more
    bool operator==(const State&) const = default;
  };

  explicit Stream(const StreamOptions& options) : Stream(State{.options = options}) {}
  explicit Stream(State state);

  // Whether the worker that asks may have a range that was given back.
  using Admit = std::function<bool(const Piece&)>;
  // The next range. `busy`: some are being worked on, so that an epoch that must not overlap has to wait.
  std::optional<Piece> Take(bool busy, const Admit& admit);
  // Whether Take() would give one.
  bool Has(bool busy, const Admit& admit) const;
  // It is given out again, first come first served; or never, if the stream was stopped.
  void GiveBack(const Piece& piece);
  // So many records of the epoch are done for good.
  void Count(std::int64_t epoch, std::int64_t records);
  // What nobody works on is not done any more.
  void Stop();

  // Nothing is left to be taken, now or later.
  bool IsDrained() const;
  std::int64_t done() const { return state_.done; }
  std::int64_t epoch() const { return state_.epoch; }
  // Of the epoch that ranges are cut of.
  std::int64_t done_in_epoch() const;
  const StreamOptions& options() const { return state_.options; }
  bool stopped() const { return state_.stopped; }
  // Ranges of the present epoch that nobody had yet, and those that were given back.
  std::int64_t waiting() const;

  State Save() const;

 private:
  // The first one that was given back and is admitted; of many only the first are looked at.
  std::deque<Piece>::const_iterator FindReturned(const Admit& admit) const;
  bool HasNext(bool busy) const;
  std::int64_t CountRanges() const;
  void BeginEpoch();

  State state_;  // without `returned`
  std::deque<Piece> returned_;
  std::int64_t ranges_ = 0;  // of an epoch
  std::optional<Permutation> order_;
};

}  // namespace trainyard::tasks
