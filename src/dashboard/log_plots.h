// A job's learning over time, from what its members write into their logs: read while somebody looks at the
// job, and no more of it than can be shown. So a plot has also what was before anybody looked.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api.h"
#include "view/job.h"

namespace trainyard::dashboard {

// A value over time, in a bounded number of points.

// When there are too many points, every second one goes.
class Series {
 public:
  explicit Series(std::size_t most = 600) : most_(most) {}
  // Seconds since 1970. A point is taken only if it is so much later than the last one, or, with `on_change`,
  // if the value is another.
  void Add(double seconds, double value, bool on_change = false);
  const std::vector<std::pair<double, double>>& points() const { return points_; }
  bool operator==(const Series&) const = default;

 private:
  std::size_t most_;
  double least_gap_ = 0;
  std::vector<std::pair<double, double>> points_;
};

// By name: "loss", "accuracy".
using Plots = std::map<std::string, Series>;

// Whose logs are read: the first member of each role but parameter servers, a few at most, those that speak
// for the whole job first. Of an elastic job it is the master's alone.
std::vector<std::string> ChooseTellers(const view::JobPage& page);

class LogPlots {
 public:
  // The transport and the clock outlive it.
  LogPlots(kube::Transport& transport, Clock& clock);

  // Reads what was written since it was last asked for the job, once a second at most. A metric that several
  // members tell of is the first one's. A log that cannot be read tells nothing. From many threads.
  Plots Read(const view::JobPage& page);

 private:
  struct JobLogs {
    Mutex mu;
    SteadyTime next TY_GUARDED_BY(mu);
    std::map<std::string, absl::Time> pods TY_GUARDED_BY(mu);     // by uid: when the last line was written
    std::map<std::string, std::string> owners TY_GUARDED_BY(mu);  // of metrics: which member tells them
    Plots plots TY_GUARDED_BY(mu);
    SteadyTime used;  // under the other lock
  };
  std::shared_ptr<JobLogs> Find(const std::string& uid);
  void Update(const view::JobPage& page, JobLogs& logs) TY_REQUIRES(logs.mu);
  static void TakeGone(const view::JobPage& page, const std::vector<std::string>& tellers, JobLogs& logs)
      TY_REQUIRES(logs.mu);
  static void TakeLine(const std::string& member, absl::Time time, std::string_view text, JobLogs& logs)
      TY_REQUIRES(logs.mu);

  Clock& clock_;
  kube::Api api_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<JobLogs>> jobs_ TY_GUARDED_BY(mu_);  // by uid
};

}  // namespace trainyard::dashboard
