// A queue as simple as it can be: every range in a list from the beginning, looked through one by one. What
// the real one is compared with.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/permutation.h"
#include "tasks/queue.h"

namespace trainyard::tasks {

class PlainQueue {
 public:
  explicit PlainQueue(int most_failures) : most_failures_(most_failures) {}

  Answer Apply(const Command& command) {
    return std::visit([this](const auto& one) { return Do(one); }, command);
  }

  bool failed() const { return failed_; }
  // How often each record of an epoch is done, by epoch.
  const std::map<std::int64_t, std::vector<int>>& done(Kind kind) const { return works_.at(kind).done; }
  bool Has(Kind kind) const { return works_.contains(kind); }
  bool IsOver(Kind kind) const {
    if (!works_.contains(kind)) return true;
    const Work& work = works_.at(kind);
    return work.returned.empty() && work.waiting.empty() && work.epochs_left.empty() &&
           CountLeased(kind) == 0;
  }
  std::vector<TaskId> TasksOf(WorkerIndex worker) const {
    std::vector<TaskId> ids;
    for (const auto& [id, leased] : leased_) {
      if (leased.worker == worker) ids.push_back(id);
    }
    return ids;
  }

 private:
  struct Work {
    StreamOptions options;
    std::deque<Piece> returned;
    std::deque<Piece> waiting;             // of the present epoch
    std::deque<std::int64_t> epochs_left;  // that have not begun
    std::map<std::int64_t, std::vector<int>> done;
    bool stopped = false;
  };

  static std::deque<Piece> Cut(const StreamOptions& options, std::int64_t epoch) {
    std::deque<Piece> pieces;
    for (std::int64_t begin = 0; begin < options.records; begin += options.records_per_task) {
      pieces.push_back(
          {.epoch = epoch, .records = {begin, std::min(begin + options.records_per_task, options.records)}});
    }
    if (options.seed == 0 || pieces.empty()) return pieces;
    const Permutation order(static_cast<std::int64_t>(pieces.size()), epoch, options.seed);
    std::deque<Piece> shuffled;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      shuffled.push_back(pieces[static_cast<std::size_t>(order.At(static_cast<std::int64_t>(i)))]);
    }
    return shuffled;
  }

  std::int64_t CountLeased(Kind kind) const {
    return std::ranges::count_if(leased_, [&](const auto& one) { return one.second.task.kind == kind; });
  }

  Answer Do(const Begin& begin) {
    Work work{.options = begin.options};
    for (std::int64_t epoch = 1; epoch < begin.options.epochs; ++epoch) work.epochs_left.push_back(epoch);
    work.waiting = Cut(begin.options, 0);
    if (work.waiting.empty()) work.epochs_left.clear();
    if (begin.kind == Kind::kEvaluation) version_ = begin.version;
    Forget(begin.kind);
    works_.insert_or_assign(begin.kind, std::move(work));
    return {};
  }
  Answer Do(const Stop& stop) {
    Forget(stop.kind);
    if (!works_.contains(stop.kind)) return {};
    Work& work = works_.at(stop.kind);
    work.stopped = true;
    work.returned.clear();
    work.waiting.clear();
    work.epochs_left.clear();
    return {};
  }
  Answer Do(const Join& join) {
    if (incarnations_[join.worker] != join.incarnation) GiveBackAll(join.worker);
    incarnations_[join.worker] = join.incarnation;
    known_.insert(join.worker);
    return {};
  }
  Answer Do(const Leave& leave) {
    GiveBackAll(leave.worker);
    incarnations_.erase(leave.worker);
    known_.erase(leave.worker);
    return {};
  }
  Answer Do(const Lease& lease) {
    if (failed_) return {.verdict = Verdict::kFailed};
    bool over = true;
    for (const Kind kind : {Kind::kEvaluation, Kind::kTraining, Kind::kPrediction}) {
      if (!works_.contains(kind)) continue;
      Work& work = works_.at(kind);
      const auto returned = std::ranges::find_if(
          work.returned, [&](const Piece& piece) { return MayHave(lease.worker, kind, piece); });
      if (returned != work.returned.end()) return Give(lease.worker, kind, work.returned, returned);
      if (work.waiting.empty() && !work.epochs_left.empty() &&
          (work.options.overlap || (work.returned.empty() && CountLeased(kind) == 0))) {
        work.waiting = Cut(work.options, work.epochs_left.front());
        work.epochs_left.pop_front();
      }
      if (!work.waiting.empty()) return Give(lease.worker, kind, work.waiting, work.waiting.begin());
      if (!work.epochs_left.empty() || !work.returned.empty() || CountLeased(kind) > 0) over = false;
    }
    return {.verdict = over ? Verdict::kOver : Verdict::kWait};
  }
  Answer Give(WorkerIndex worker, Kind kind, std::deque<Piece>& from, std::deque<Piece>::iterator which) {
    const Piece piece = *which;
    from.erase(which);
    known_.insert(worker);
    const Task task{.id = next_id_++,
                    .kind = kind,
                    .epoch = piece.epoch,
                    .records = piece.records,
                    .version = kind == Kind::kEvaluation ? version_ : 0,
                    .failures = piece.failures};
    leased_[task.id] = {task, worker};
    return {.verdict = Verdict::kTask, .task = task};
  }
  // What has failed on it is for others, if there are some that it has not failed on.
  bool MayHave(WorkerIndex worker, Kind kind, const Piece& piece) const {
    const auto failed = failed_on_.find({kind, piece.epoch, piece.records.end});
    if (failed == failed_on_.end() || !failed->second.contains(worker)) return true;
    return std::ranges::all_of(known_, [&](WorkerIndex known) { return failed->second.contains(known); });
  }
  void Forget(Kind kind) {
    std::erase_if(failed_on_, [&](const auto& range) { return std::get<0>(range.first) == kind; });
  }
  Answer Do(const Advance& advance) {
    if (!leased_.contains(advance.task)) return {.verdict = Verdict::kUnknown};
    Task& task = leased_.at(advance.task).task;
    Answer answer{.task = task};
    std::vector<int>& done = works_.at(task.kind).done[task.epoch];
    done.resize(static_cast<std::size_t>(works_.at(task.kind).options.records));
    while (task.records.begin < std::min(advance.until, answer.task.records.end))
      ++done[static_cast<std::size_t>(task.records.begin++)];
    answer.done = task.records.size() == 0;
    if (answer.done) leased_.erase(advance.task);
    return answer;
  }
  Answer Do(const Finish& finish) {
    if (!IsOf(finish.worker, finish.task)) return {.verdict = Verdict::kUnknown};
    return Do(Advance{finish.task, leased_.at(finish.task).task.records.end});
  }
  Answer Do(const Keep& keep) {
    if (!leased_.contains(keep.task)) return {.verdict = Verdict::kUnknown};
    Queue::Leased& leased = leased_.at(keep.task);
    Answer answer{.task = leased.task};
    const std::int64_t until = std::clamp(keep.until, leased.task.records.begin, leased.task.records.end);
    if (until < leased.task.records.end) {
      Task rest = leased.task;
      rest.records.begin = until;
      GiveBack(rest);
    }
    leased.task.records.end = until;
    leased.worker = kNobody;
    if (leased.task.records.size() == 0) leased_.erase(keep.task);
    return answer;
  }
  Answer Do(const Return& back) {
    if (!IsOf(back.worker, back.task)) return {.verdict = Verdict::kUnknown};
    Answer answer{.task = leased_.at(back.task).task};
    GiveBack(answer.task);
    leased_.erase(back.task);
    return answer;
  }
  Answer Do(const Fail& fail) {
    if (!IsOf(fail.worker, fail.task)) return {.verdict = Verdict::kUnknown};
    Answer answer{.task = leased_.at(fail.task).task};
    Task again = answer.task;
    ++again.failures;
    failed_on_[{again.kind, again.epoch, again.records.end}].insert(fail.worker);
    if (again.failures >= most_failures_ && !failed_) {
      failed_ = true;
      answer.verdict = Verdict::kFailed;
    }
    GiveBack(again);
    leased_.erase(fail.task);
    return answer;
  }
  Answer Do(const Recall&) {
    for (const auto& [id, leased] : leased_) GiveBack(leased.task);
    leased_.clear();
    incarnations_.clear();
    known_.clear();
    return {};
  }

  bool IsOf(WorkerIndex worker, TaskId id) const {
    return leased_.contains(id) && leased_.at(id).worker == worker;
  }
  void GiveBack(const Task& task) {
    Work& work = works_.at(task.kind);
    if (!work.stopped)
      work.returned.push_back({.epoch = task.epoch, .records = task.records, .failures = task.failures});
  }
  void GiveBackAll(WorkerIndex worker) {
    for (const TaskId id : TasksOf(worker)) {
      GiveBack(leased_.at(id).task);
      leased_.erase(id);
    }
  }

  int most_failures_;
  TaskId next_id_ = 1;
  std::int64_t version_ = 0;
  bool failed_ = false;
  std::map<Kind, Work> works_;
  std::map<TaskId, Queue::Leased> leased_;
  std::map<WorkerIndex, std::int64_t> incarnations_;
  std::set<WorkerIndex> known_;  // that have come or have had something, and are not gone
  std::map<std::tuple<Kind, std::int64_t, std::int64_t>, std::set<WorkerIndex>> failed_on_;
};

}  // namespace trainyard::tasks
