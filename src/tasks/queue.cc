#include "tasks/queue.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace trainyard::tasks {
namespace {

// The order in which kinds of work are given out. An evaluation is short, and training waits for none.
constexpr Kind kOrder[] = {Kind::kEvaluation, Kind::kTraining, Kind::kPrediction};
constexpr std::size_t kMostErrorBytes = 2000;

bool Contains(const std::vector<WorkerIndex>& workers, WorkerIndex worker) {
  return std::ranges::find(workers, worker) != workers.end();
}

}  // namespace

Queue::Queue(const State& state)
    : options_(state.options),
      next_id_(state.next_id),
      evaluated_version_(state.evaluated_version),
      failure_(state.failure) {
  for (const Metric& metric : state.metrics) metrics_[metric.name] = metric.value;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (state.streams[kind]) streams_[kind].emplace(*state.streams[kind]);
  }
  for (const FailedRange& range : state.failed) failed_[{range.kind, range.epoch, range.end}] = range.workers;
  for (const auto& [worker, incarnation] : state.workers) workers_[worker].incarnation = incarnation;
  for (const Leased& leased : state.leased) {
    const Task& task = leased.task;
    Insert(task.id, {.begin = task.records.begin,
                     .size = static_cast<std::uint32_t>(task.records.size()),
                     .epoch = static_cast<std::int32_t>(task.epoch),
                     .worker = leased.worker,
                     .failures = static_cast<std::uint16_t>(task.failures),
                     .kind = task.kind});
  }
}

Queue::State Queue::Save() const {
  State state{
      .options = options_, .next_id = next_id_, .evaluated_version = evaluated_version_, .failure = failure_};
  for (int kind = 0; kind < kKinds; ++kind) {
    if (streams_[kind]) state.streams[kind] = streams_[kind]->Save();
  }
  for (const auto& [name, sum] : metrics_) state.metrics.push_back({name, sum});
  leased_.ForEach(
      [&](TaskId id, const Lessee& entry) { state.leased.push_back({TaskOf(id, entry), entry.worker}); });
  std::ranges::sort(state.leased, {}, [](const Leased& leased) { return leased.task.id; });
  for (const auto& [worker, known] : workers_) {
    if (worker != kNobody) state.workers.emplace_back(worker, known.incarnation);
  }
  std::ranges::sort(state.workers);
  for (const auto& [key, workers] : failed_)
    state.failed.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), workers});
  return state;
}

Answer Queue::Apply(const Command& command) {
  return std::visit([this](const auto& one) { return Do(one); }, command);
}

Answer Queue::Do(const Begin& begin) {
  TY_CHECK(IsOver(begin.kind), "a stream begins when the one before is over");
  ForgetFailures(begin.kind);
  streams_[static_cast<int>(begin.kind)].emplace(begin.options);
  if (begin.kind == Kind::kEvaluation) {
    evaluated_version_ = begin.version;
    metrics_.clear();
  }
  return {};
}

Answer Queue::Do(const Stop& stop) {
  if (auto& stream = streams_[static_cast<int>(stop.kind)]) stream->Stop();
  ForgetFailures(stop.kind);
  return {};
}

Answer Queue::Do(const Join& join) {
  Worker& worker = workers_[join.worker];
  if (worker.incarnation != join.incarnation) GiveBackAllOf(join.worker);
  workers_[join.worker].incarnation = join.incarnation;
  return {};
}

Answer Queue::Do(const Leave& leave) {
  GiveBackAllOf(leave.worker);
  workers_.erase(leave.worker);
  return {};
}

Answer Queue::Do(const Lease& lease) {
  if (!failure_.empty()) return {.verdict = Verdict::kFailed};
  for (const Kind kind : kOrder) {
    if (!streams_[static_cast<int>(kind)]) continue;
    const std::optional<Piece> piece =
        StreamOf(kind).Take(CountLeased(kind) > 0, AdmitFor(lease.worker, kind));
    if (!piece) continue;
    const TaskId id = next_id_++;
    const Lessee entry{.begin = piece->records.begin,
                       .size = static_cast<std::uint32_t>(piece->records.size()),
                       .epoch = static_cast<std::int32_t>(piece->epoch),
                       .worker = lease.worker,
                       .failures = static_cast<std::uint16_t>(piece->failures),
                       .kind = kind};
    Insert(id, entry);
    return {.verdict = Verdict::kTask, .task = TaskOf(id, entry)};
  }
  return {.verdict = IsOver() ? Verdict::kOver : Verdict::kWait};
}

Answer Queue::Do(const Advance& advance) {
  Lessee* const found = leased_.Find(advance.task);
  if (found == nullptr) return {.verdict = Verdict::kUnknown};
  Lessee& entry = *found;
  Answer answer{.task = TaskOf(advance.task, entry)};
  const std::int64_t until = std::min(advance.until, entry.end());
  if (until <= entry.begin) return answer;
  StreamOf(entry.kind).Count(entry.epoch, until - entry.begin);
  answer.done = until == entry.end();
  if (answer.done) {
    if (entry.failures > 0) failed_.erase({entry.kind, entry.epoch, entry.end()});
    Erase(advance.task, Lessee(entry));
  } else {
    entry.size -= static_cast<std::uint32_t>(until - entry.begin);
    entry.begin = until;
  }
  return answer;
}

Answer Queue::Do(const Finish& finish) {
  const Lessee* const entry = FindOf(finish.worker, finish.task);
  if (entry == nullptr) return {.verdict = Verdict::kUnknown};
  if (entry->kind == Kind::kEvaluation) {
    for (const Metric& metric : finish.metrics)
      metrics_[metric.name] += metric.value * static_cast<double>(entry->size);
  }
  return Do(Advance{.task = finish.task, .until = entry->end()});
}

Answer Queue::Do(const Keep& keep) {
  Lessee* const found = leased_.Find(keep.task);
  if (found == nullptr) return {.verdict = Verdict::kUnknown};
  Lessee& entry = *found;
  Answer answer{.task = TaskOf(keep.task, entry)};
  const std::int64_t until = std::clamp(keep.until, entry.begin, entry.end());
  if (until == entry.begin) {
    GiveBack(keep.task, Lessee(entry));
    return answer;
  }
  if (until < entry.end()) {
    StreamOf(entry.kind)
        .GiveBack({.epoch = entry.epoch, .records = {until, entry.end()}, .failures = entry.failures});
    entry.size = static_cast<std::uint32_t>(until - entry.begin);
  }
  Unlink(entry);
  entry.worker = kNobody;
  Link(keep.task, entry);
  return answer;
}

Answer Queue::Do(const Return& back) {
  const Lessee* const entry = FindOf(back.worker, back.task);
  if (entry == nullptr) return {.verdict = Verdict::kUnknown};
  Answer answer{.task = TaskOf(back.task, *entry)};
  GiveBack(back.task, Lessee(*entry));
  return answer;
}

Answer Queue::Do(const Fail& fail) {
  Lessee* const entry = FindOf(fail.worker, fail.task);
  if (entry == nullptr) return {.verdict = Verdict::kUnknown};
  Answer answer{.task = TaskOf(fail.task, *entry)};
  ++entry->failures;
  failed_[{entry->kind, entry->epoch, entry->end()}].push_back(fail.worker);
  if (entry->failures >= options_.most_failures && failure_.empty()) {
    failure_ =
        StrCat(Describe(answer.task), " failed ", entry->failures, entry->failures == 1 ? " time" : " times",
               ", the last time on worker ", fail.worker, ": ", Shortened(fail.error, kMostErrorBytes));
    answer.verdict = Verdict::kFailed;
  }
  GiveBack(fail.task, Lessee(*entry));
  return answer;
}

Answer Queue::Do(const Recall&) {
  std::vector<TaskId> ids;
  ids.reserve(static_cast<std::size_t>(leased_.size()));
  leased_.ForEach([&](TaskId id, const Lessee&) { ids.push_back(id); });
  std::ranges::sort(ids);
  for (const TaskId id : ids) GiveBack(id, Lessee(*leased_.Find(id)));
  workers_.clear();
  return {};
}

Stream::Admit Queue::AdmitFor(WorkerIndex worker, Kind kind) const {
  return [this, worker, kind](const Piece& piece) {
    if (piece.failures == 0) return true;
    const auto found = failed_.find({kind, piece.epoch, piece.records.end});
    if (found == failed_.end() || !Contains(found->second, worker)) return true;
    return std::ranges::all_of(workers_, [&](const auto& known) {
      return known.first == kNobody || Contains(found->second, known.first);
    });
  };
}

bool Queue::HasFor(WorkerIndex worker) const {
  return failure_.empty() && std::ranges::any_of(kOrder, [&](Kind kind) {
           const Stream* const stream = Find(kind);
           return stream != nullptr && stream->Has(CountLeased(kind) > 0, AdmitFor(worker, kind));
         });
}

void Queue::ForgetFailures(Kind kind) {
  std::erase_if(failed_, [&](const auto& range) { return std::get<0>(range.first) == kind; });
}

const Stream* Queue::Find(Kind kind) const {
  const auto& stream = streams_[static_cast<int>(kind)];
  return stream ? &*stream : nullptr;
}

bool Queue::IsOver(Kind kind) const {
  const Stream* const stream = Find(kind);
  return stream == nullptr || (stream->IsDrained() && CountLeased(kind) == 0);
}

bool Queue::IsOver() const {
  return std::ranges::all_of(kOrder, [this](Kind kind) { return IsOver(kind); });
}

std::vector<Metric> Queue::MeanMetrics() const {
  std::vector<Metric> means;
  const Stream* const stream = Find(Kind::kEvaluation);
  if (stream == nullptr || stream->done() == 0) return means;
  for (const auto& [name, sum] : metrics_) means.push_back({name, sum / static_cast<double>(stream->done())});
  return means;
}

std::optional<Queue::Leased> Queue::FindTask(TaskId id) const {
  const Lessee* const found = leased_.Find(id);
  if (found == nullptr) return std::nullopt;
  return Leased{TaskOf(id, *found), found->worker};
}

std::vector<Task> Queue::TasksOf(WorkerIndex worker) const {
  std::vector<Task> tasks;
  const auto known = workers_.find(worker);
  if (known == workers_.end()) return tasks;
  for (TaskId id = known->second.first; id != 0;) {
    const Lessee& entry = *leased_.Find(id);
    tasks.push_back(TaskOf(id, entry));
    id = entry.next;
  }
  return tasks;
}

bool Queue::HasTasks(WorkerIndex worker) const {
  const auto known = workers_.find(worker);
  return known != workers_.end() && known->second.first != 0;
}

Task Queue::TaskOf(TaskId id, const Lessee& entry) const {
  return {.id = id,
          .kind = entry.kind,
          .epoch = entry.epoch,
          .records = {entry.begin, entry.end()},
          .version = entry.kind == Kind::kEvaluation ? evaluated_version_ : 0,
          .failures = entry.failures};
}

Lessee* Queue::FindOf(WorkerIndex worker, TaskId id) {
  Lessee* const found = leased_.Find(id);
  return found == nullptr || found->worker != worker ? nullptr : found;
}

void Queue::Link(TaskId id, Lessee& entry) {
  Worker& worker = workers_[entry.worker];
  entry.previous = worker.last;
  entry.next = 0;
  if (worker.last != 0) leased_.Find(worker.last)->next = id;
  worker.last = id;
  if (worker.first == 0) worker.first = id;
}

void Queue::Unlink(const Lessee& entry) {
  Worker& worker = workers_.at(entry.worker);
  if (entry.previous != 0) leased_.Find(entry.previous)->next = entry.next;
  if (entry.next != 0) leased_.Find(entry.next)->previous = entry.previous;
  if (entry.previous == 0) worker.first = entry.next;
  if (entry.next == 0) worker.last = entry.previous;
}

void Queue::Insert(TaskId id, const Lessee& entry) {
  ++leased_of_kind_[static_cast<int>(entry.kind)];
  Link(id, leased_.Insert(id, entry));
}

void Queue::Erase(TaskId id, const Lessee& entry) {
  Unlink(entry);
  --leased_of_kind_[static_cast<int>(entry.kind)];
  leased_.Erase(id);
}

void Queue::GiveBack(TaskId id, const Lessee& entry) {
  StreamOf(entry.kind)
      .GiveBack({.epoch = entry.epoch, .records = {entry.begin, entry.end()}, .failures = entry.failures});
  Erase(id, entry);
}

void Queue::GiveBackAllOf(WorkerIndex worker) {
  while (HasTasks(worker)) {
    const TaskId id = workers_.at(worker).first;
    GiveBack(id, Lessee(*leased_.Find(id)));
  }
}

}  // namespace trainyard::tasks
