// What a worker is given to do: a range of records of one kind of work. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::tasks {

enum class Kind : std::uint8_t { kTraining, kEvaluation, kPrediction };
inline constexpr int kKinds = 3;
// "training", "evaluation", "prediction".
std::string_view Name(Kind kind);

// One lease: a range that is given out again has another number. From 1 on.
using TaskId = std::int64_t;

using WorkerIndex = std::int32_t;
// Whose part of a task stays to be counted though its worker is gone.
inline constexpr WorkerIndex kNobody = -1;

// The records [begin, end), by number.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct Task {
  TaskId id = 0;
  Kind kind = Kind::kTraining;
  std::int64_t epoch = 0;    // from 0
  Range records;             // what of it is left to do
  std::int64_t version = 0;  // of the model, where that is evaluated
  int failures = 0;          // how often this range has failed by itself
  bool operator==(const Task&) const = default;
};

// "records [512, 1024) of epoch 2".
std::string Describe(const Task& task);

}  // namespace trainyard::tasks
