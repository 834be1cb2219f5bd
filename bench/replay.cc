#include "bench/replay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "base/text.h"

namespace trainyard::job::scale {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kInstant = 1e-9;
constexpr double kMostSeconds = 1e9;
const Resources kOnePod = {{"cpu", 1000}};

std::optional<double> ParseSeconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

struct Pod {
  int node = -1;          // none yet
  double ready = kNever;  // when it begins to work
  double gone = kNever;   // when it is gone, if it was told to go
};

struct Job {
  ReplayJob spec;
  int size = 0;
  double left = 0;  // of the work
  std::vector<Pod> pods;
  double begun = kNever;
  double ended = kNever;

  bool Lives(double now) const { return spec.arrival <= now && ended == kNever; }
  int CountWorking(double now) const {
    return static_cast<int>(std::ranges::count_if(
        pods, [&](const Pod& pod) { return pod.ready <= now + kInstant && pod.gone == kNever; }));
  }
  // Of a job that is not elastic all pods begin together.
  double Speed(double now) const {
    const int working = CountWorking(now);
    return working >= std::min(size, spec.least) ? working : 0;
  }
};

class Simulation {
 public:
  Simulation(const std::vector<ReplayJob>& jobs, const ReplayOptions& options)
      : options_(options), free_(static_cast<std::size_t>(options.nodes), options.pods_per_node) {
    for (const ReplayJob& spec : jobs) {
      Job job{.spec = spec, .left = spec.work};
      if (!options.elastic) job.spec.least = spec.most;
      job.size = job.spec.least;
      jobs_.push_back(std::move(job));
    }
    std::ranges::stable_sort(jobs_, {}, [](const Job& job) { return job.spec.arrival; });
    now_ = jobs_.empty() ? 0 : jobs_.front().spec.arrival;
    begin_ = now_;
    next_pass_ = now_;
  }

  ReplayResult Run() {
    while (std::ranges::any_of(jobs_, [](const Job& job) { return job.ended == kNever; })) {
      RemoveGone();
      Schedule();
      if (options_.elastic && now_ + kInstant >= next_pass_) {
        // As long as nothing happens it would decide the same again.
        const int before = changes_;
        Autoscale();
        awake_ = changes_ != before;
        next_pass_ = now_ + options_.period;
        Schedule();
      }
      Advance(NextEvent());
    }
    return Sum();
  }

 private:
  // ---- what happens

  void RemoveGone() {
    for (Job& job : jobs_) {
      std::erase_if(job.pods, [&](const Pod& pod) {
        if (pod.gone > now_ + kInstant) return false;
        if (pod.node >= 0) ++free_[static_cast<std::size_t>(pod.node)];
        return true;
      });
    }
  }

  // First come, first served. A job begins with all that it must have; later it takes what it gets.
  void Schedule() {
    for (Job& job : jobs_) {
      if (!job.Lives(now_)) continue;
      const auto kept =
          static_cast<int>(std::ranges::count(job.pods, kNever, [](const Pod& pod) { return pod.gone; }));
      int missing = job.size - kept;
      const int room = std::accumulate(free_.begin(), free_.end(), 0);
      if (kept == 0 && room < job.spec.least) return;  // those that came later wait too
      for (; missing > 0; --missing) {
        const auto node = std::ranges::max_element(free_);
        if (*node == 0) return;
        --*node;
        job.pods.push_back(
            {.node = static_cast<int>(node - free_.begin()), .ready = now_ + options_.start_time});
      }
    }
  }

  void Autoscale() {
    Cluster cluster;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      Node node{.name = StrCat(i)};
      node.free.Add(kOnePod, free_[i]);
      cluster.total.Add(kOnePod, options_.pods_per_node);
      cluster.nodes.push_back(std::move(node));
    }
    std::vector<ElasticRole> roles;
    std::vector<Job*> of_roles;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Job& job = jobs_[i];
      for (const Pod& pod : job.pods) {
        if (pod.gone != kNever) cluster.nodes[static_cast<std::size_t>(pod.node)].leaving.Add(kOnePod);
      }
      if (!job.Lives(now_)) continue;
      ElasticRole role{.job = StrCat(i),
                       .role = "trainer",
                       .least = job.spec.least,
                       .most = job.spec.most,
                       .now = job.size,
                       .each = kOnePod};
      for (const Pod& pod : job.pods) {
        if (pod.gone == kNever) role.pods.push_back(StrCat(pod.node));
      }
      role.waits = role.pods.empty();
      role.settled = static_cast<int>(job.pods.size()) == job.size && job.CountWorking(now_) == job.size;
      cluster.requested.Add(kOnePod, job.size);
      roles.push_back(std::move(role));
      of_roles.push_back(&job);
    }
    for (const Change& change : PlanScaling(cluster, roles, {}, options_.limits)) {
      const auto role = std::ranges::find(roles, change.job, &ElasticRole::job);
      Resize(*of_roles[static_cast<std::size_t>(role - roles.begin())], change.to);
      ++changes_;
    }
  }

  void Resize(Job& job, int size) {
    job.size = size;
    int kept = 0;
    for (Pod& pod : job.pods) {
      if (pod.gone == kNever && ++kept > size) pod.gone = now_ + options_.stop_time;
    }
  }

  // ---- time

  double NextEvent() const {
    double next = options_.elastic && awake_ ? next_pass_ : kNever;
    for (const Job& job : jobs_) {
      if (job.ended != kNever) {
        for (const Pod& pod : job.pods) next = std::min(next, pod.gone);
        continue;
      }
      if (job.spec.arrival > now_) next = std::min(next, job.spec.arrival);
      for (const Pod& pod : job.pods) {
        if (pod.ready > now_ + kInstant) next = std::min(next, pod.ready);
        next = std::min(next, pod.gone);
      }
      if (const double speed = job.Speed(now_); speed > 0) next = std::min(next, now_ + job.left / speed);
    }
    return std::max(next, now_ + kInstant);
  }

  void Advance(double next) {
    const double time = next - now_;
    if (next + kInstant < next_pass_ || !awake_) {  // something else than the autoscaler's turn comes
      awake_ = true;
      next_pass_ = std::max(next_pass_, next);
    }
    for (Job& job : jobs_) {
      if (job.ended != kNever) continue;
      if (const double speed = job.Speed(now_); speed > 0) {
        job.begun = std::min(job.begun, now_);
        job.left -= speed * time;
        used_ += speed * time;
      }
    }
    now_ = next;
    for (Job& job : jobs_) {
      if (job.ended != kNever || job.begun == kNever || job.left > kInstant * 1e3) continue;
      job.ended = now_;
      for (Pod& pod : job.pods) pod.gone = std::min(pod.gone, now_ + options_.stop_time);
    }
  }

  ReplayResult Sum() const {
    ReplayResult result{.changes = changes_};
    for (const Job& job : jobs_) {
      result.pending.push_back(job.begun - job.spec.arrival);
      result.completion.push_back(job.ended - job.spec.arrival);
    }
    const auto count = static_cast<double>(std::max<std::size_t>(jobs_.size(), 1));
    result.mean_pending = std::accumulate(result.pending.begin(), result.pending.end(), 0.0) / count;
    result.mean_completion = std::accumulate(result.completion.begin(), result.completion.end(), 0.0) / count;
    result.makespan = now_ - begin_;
    const double all = static_cast<double>(options_.nodes) * options_.pods_per_node * result.makespan;
    result.utilisation = all > 0 ? used_ / all : 0;
    return result;
  }

  const ReplayOptions options_;
  std::vector<int> free_;  // places for pods, by node
  std::vector<Job> jobs_;
  double begin_ = 0;
  double now_ = 0;
  double next_pass_ = 0;
  bool awake_ = true;  // the autoscaler has something to look at
  double used_ = 0;    // seconds of pods
  int changes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ReplayJob>> ParseReplayJobs(std::string_view csv) {
  if (csv.starts_with("\xEF\xBB\xBF")) csv.remove_prefix(3);  // some editors begin a file so
  std::vector<ReplayJob> jobs;
  int number = 0;
  bool first = true;
  for (const std::string_view raw : Split(csv, '\n')) {
    ++number;
    const std::string_view line = Trimmed(raw);
    if (line.empty() || line.front() == '#') continue;
    const bool is_first = std::exchange(first, false);
    if (is_first && line.starts_with("arrival")) continue;
    const std::vector<std::string_view> fields = Split(line, ',');
    const auto wrong = [&](std::string_view what) {
      return absl::InvalidArgumentError(StrCat("line ", number, ": ", what));
    };
    if (fields.size() != 4) return wrong("a job has four fields: arrival, min, max, work");
    const auto arrival = ParseSeconds(Trimmed(fields[0]));
    const auto least = ParseNumber<int>(Trimmed(fields[1]));
    const auto most = ParseNumber<int>(Trimmed(fields[2]));
    const auto work = ParseSeconds(Trimmed(fields[3]));
    if (!arrival || *arrival > kMostSeconds) return wrong("the arrival is no number of seconds up to 1e9");
    if (!least || *least < 1) return wrong("the min is no number of pods");
    if (!most || *most < *least) return wrong("the max is no number of pods, or is below the min");
    if (!work || *work <= 0 || *work > kMostSeconds)
      return wrong("the work is no number of seconds up to 1e9");
    jobs.push_back({.arrival = *arrival, .least = *least, .most = *most, .work = *work});
  }
  if (jobs.empty()) return absl::InvalidArgumentError("there is no job in it");
  return jobs;
}

absl::StatusOr<ReplayResult> Replay(const std::vector<ReplayJob>& jobs, const ReplayOptions& options) {
  const int places = options.nodes * options.pods_per_node;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const int needs = options.elastic ? jobs[i].least : jobs[i].most;
    if (needs > places) {
      return absl::InvalidArgumentError(StrCat("job ", i + 1, " needs ", needs, " pods to begin",
                                               options.elastic ? "" : " where it cannot be scaled",
                                               ", and the cluster has places for ", places));
    }
  }
  return Simulation(jobs, options).Run();
}

}  // namespace trainyard::job::scale
