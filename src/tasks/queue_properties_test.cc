// The queue against one that is plainly right, over histories of commands; and its storage at every point of
// them.
#include <random>

#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"
#include "tasks/codec.h"
#include "tasks/queue.h"
#include "tasks/queue_testing.h"

namespace trainyard::tasks {
namespace {

constexpr WorkerIndex kWorkers = 4;

StreamOptions AnyOptions() {
  return {.records = *rc::gen::inRange<std::int64_t>(0, 40),
          .records_per_task = *rc::gen::inRange<std::int64_t>(1, 9),
          .epochs = *rc::gen::inRange<std::int64_t>(1, 4),
          .seed = *rc::gen::element<std::uint64_t>(0, 1, 77),
          .overlap = *rc::gen::arbitrary<bool>()};
}

// Some task that somebody may speak of: mostly a real one.
TaskId AnyTask(const Queue& queue, WorkerIndex worker) {
  const std::vector<Task> tasks = queue.TasksOf(worker);
  if (tasks.empty() || *rc::gen::inRange(0, 20) == 0) return *rc::gen::inRange<TaskId>(0, 50);
  return (*rc::gen::elementOf(tasks)).id;
}

std::int64_t AnyUntil(const Queue& queue, TaskId task) {
  const auto leased = queue.FindTask(task);
  if (!leased) return *rc::gen::inRange<std::int64_t>(0, 40);
  return leased->task.records.begin + *rc::gen::inRange<std::int64_t>(-1, leased->task.records.size() + 2);
}

Command AnyCommand(const Queue& queue) {
  const auto worker = *rc::gen::inRange<WorkerIndex>(0, kWorkers);
  switch (*rc::gen::inRange(0, 26)) {
    case 0:
    case 1: {
      const Kind kind = *rc::gen::element(Kind::kEvaluation, Kind::kPrediction);
      if (!queue.IsOver(kind)) return Lease{worker};
      return Begin{.kind = kind, .options = AnyOptions(), .version = *rc::gen::inRange(0, 9)};
    }
    case 2:
      return Join{worker, *rc::gen::inRange<std::int64_t>(0, 3)};
    case 3:
      return Leave{worker};
    case 4:
    case 5: {
      const TaskId task = AnyTask(queue, *rc::gen::inRange<WorkerIndex>(kNobody, kWorkers));
      return Advance{task, AnyUntil(queue, task)};
    }
    case 6: {
      const TaskId task = AnyTask(queue, worker);
      return Keep{task, AnyUntil(queue, task)};
    }
    case 7:
      return Return{worker, AnyTask(queue, worker)};
    case 8:
      return Fail{worker, AnyTask(queue, worker), "it broke"};
    case 9:
      if (*rc::gen::inRange(0, 10) == 0) return Recall{};
      if (*rc::gen::inRange(0, 10) == 0) return Stop{*rc::gen::element(Kind::kTraining, Kind::kPrediction)};
      return Lease{worker};
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
    case 16:
      return Finish{worker, AnyTask(queue, worker)};
    default:
      return Lease{worker};
  }
}

RC_GTEST_PROP(Queue, DoesWhatAPlainOneDoesAndIsTheSameFromStorage, ()) {
  const int most_failures = *rc::gen::inRange(1, 5);
  Queue queue({.most_failures = most_failures});
  PlainQueue plain(most_failures);
  std::string log;
  const Command begin = Begin{.kind = Kind::kTraining, .options = AnyOptions()};
  Append(begin, log);
  RC_ASSERT(queue.Apply(begin) == plain.Apply(begin));
  const int length = *rc::gen::inRange(0, 120);
  for (int i = 0; i < length; ++i) {
    const Command command = AnyCommand(queue);
    Append(command, log);
    const auto* const lease = std::get_if<Lease>(&command);
    const bool has = lease != nullptr && queue.HasFor(lease->worker);
    const Answer answer = queue.Apply(command);
    RC_ASSERT(answer == plain.Apply(command));
    if (lease != nullptr) RC_ASSERT(has == (answer.verdict == Verdict::kTask));
    RC_ASSERT(queue.failure().empty() != plain.failed());
    for (const Kind kind : {Kind::kTraining, Kind::kEvaluation, Kind::kPrediction}) {
      RC_ASSERT(queue.IsOver(kind) == plain.IsOver(kind));
      if (!plain.Has(kind)) continue;
      std::int64_t done = 0;
      for (const auto& [epoch, records] : plain.done(kind)) {
        for (const int times : records) {
          RC_ASSERT(times <= 1);
          done += times;
        }
      }
      RC_ASSERT(queue.Find(kind)->done() == done);
    }
    // From here on a restored one takes over: whatever it does not have would show below.
    if (*rc::gen::inRange(0, 4) == 0) {
      const auto state = DecodeState(Encode(queue.Save()));
      RC_ASSERT(state.ok());
      RC_ASSERT(*state == queue.Save());
      queue = Queue(*state);
    }
  }
  // All commands again, from the stored bytes.
  Queue again({.most_failures = most_failures});
  for (std::string_view rest = log; !rest.empty();) {
    const auto command = TakeCommand(rest);
    RC_ASSERT(command.ok());
    again.Apply(*command);
  }
  RC_ASSERT(again.Save() == queue.Save());
}

RC_GTEST_PROP(Queue, HasEveryRecordOnceInEachEpochWhoeverLeaves, ()) {
  const StreamOptions options = AnyOptions();
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Queue queue;
  queue.Apply(Begin{.kind = Kind::kTraining, .options = options});
  std::map<std::int64_t, std::vector<int>> done;
  const auto count = [&](std::int64_t epoch, Range range) {
    done[epoch].resize(static_cast<std::size_t>(options.records));
    for (std::int64_t i = range.begin; i < range.end; ++i) ++done[epoch][static_cast<std::size_t>(i)];
  };
  for (int i = 0; i < 10000; ++i) {
    const auto worker = static_cast<WorkerIndex>(below(kWorkers));
    const Answer answer = queue.Apply(Lease{worker});
    if (answer.verdict == Verdict::kOver) break;
    if (answer.verdict != Verdict::kTask) {
      // Whoever has something finishes it.
      for (WorkerIndex other = 0; other < kWorkers; ++other) {
        for (const Task& task : queue.TasksOf(other)) {
          count(task.epoch, task.records);
          queue.Apply(Finish{other, task.id});
        }
      }
      continue;
    }
    const std::int64_t until = answer.task.records.begin + below(answer.task.records.size() + 1);
    if (until > answer.task.records.begin) {
      queue.Apply(Advance{answer.task.id, until});
      count(answer.task.epoch, {answer.task.records.begin, until});
    }
    if (below(3) == 0) queue.Apply(Leave{worker});
  }
  RC_ASSERT(queue.IsOver());
  const std::int64_t epochs = options.records == 0 ? 0 : options.epochs;
  RC_ASSERT(static_cast<std::int64_t>(done.size()) == epochs);
  for (const auto& [epoch, records] : done) {
    for (const int times : records) RC_ASSERT(times == 1);
  }
}

TEST(Queue, IsRebuiltFromEveryPrefixOfItsCommands) {
  // A history with everything in it.
  const std::vector<Command> commands = {
      Begin{.kind = Kind::kTraining,
            .options = {.records = 20, .records_per_task = 4, .epochs = 2, .seed = 5}},
      Join{0, 1},
      Join{1, 1},
      Lease{0},
      Lease{1},
      Lease{0},
      Advance{1, 100},
      Fail{1, 2, "bad"},
      Lease{1},
      Keep{3, 9},
      Begin{.kind = Kind::kEvaluation, .options = {.records = 6, .records_per_task = 4}, .version = 3},
      Lease{0},
      Join{1, 2},
      Finish{0, 5},
      Lease{1},
      Leave{0},
      Advance{3, 100},
      Return{1, 6},
      Lease{1},
      Stop{Kind::kTraining},
      Recall{},
      Lease{0}};
  Queue straight;
  std::string log;
  for (const Command& command : commands) {
    straight.Apply(command);
    Append(command, log);
    Queue rebuilt;
    for (std::string_view rest = log; !rest.empty();) {
      const auto taken = TakeCommand(rest);
      ASSERT_TRUE(taken.ok());
      rebuilt.Apply(*taken);
    }
    ASSERT_EQ(rebuilt.Save(), straight.Save());
  }
}

}  // namespace
}  // namespace trainyard::tasks
