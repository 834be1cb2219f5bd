#include "dashboard/log_plots.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/rfc3339.h"
#include "base/text.h"
#include "kube/http.h"
#include "view/log_metrics.h"

namespace trainyard::dashboard {
namespace {

constexpr std::size_t kMostJobs = 20;
constexpr std::size_t kMostTellers = 4;
constexpr std::size_t kMostPlots = 12;
constexpr int kMostLines = 5000;
constexpr int kMostBytes = 1 << 20;
constexpr absl::Duration kBetweenReads = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Seconds(2);

// "worker" of "worker-1".
std::string_view RoleOf(std::string_view member) {
  const std::size_t dash = member.rfind('-');
  return dash == std::string_view::npos || !ParseNumber<int>(member.substr(dash + 1))
             ? member
             : member.substr(0, dash);
}

bool KeepsParameters(std::string_view role) { return role == "ps" || role == "pserver"; }

std::size_t RankOf(std::string_view role) {
  constexpr std::array<std::string_view, 4> kFirst = {"chief", "master", "trainer", "worker"};
  return static_cast<std::size_t>(std::ranges::find(kFirst, role) - kFirst.begin());
}

std::string LogTarget(const view::JobPage& page, const view::Member& member) {
  std::string target = StrCat(kube::ResourcePath(kube::Resource::Pods(), page.job.ns, member.pod, "log"),
                              "?timestamps=true&limitBytes=", kMostBytes);
  if (!member.container.empty()) StrAppend(target, "&container=", kube::PercentEncoded(member.container));
  return target;
}

kube::Operation ReadOf(std::string target) {
  return {.request = {.target = std::move(target), .accept = "*/*", .timeout = kPatience}};
}

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// "2024-05-01T10:00:00.123456789Z text" in two; the second is empty where there is no time.
std::pair<absl::Time, std::string_view> SplitTime(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.empty() || line[0] < '0' || line[0] > '9')
    return {absl::InfinitePast(), ""};
  const auto time = ParseTime(line.substr(0, space));
  if (!time.ok()) return {absl::InfinitePast(), ""};
  return {*time, line.substr(space + 1)};
}

}  // namespace

std::vector<std::string> ChooseTellers(const view::JobPage& page) {
  std::vector<std::string> names;
  names.reserve(page.members.size() + page.history.size());
  for (const view::Member& member : page.members) names.push_back(member.name);
  for (const kube::GonePod& gone : page.history) names.push_back(gone.member);
  std::ranges::sort(names, view::NameLess);
  std::vector<std::string> tellers;
  std::set<std::string, std::less<>> roles;
  for (std::string& name : names) {
    const std::string_view role = RoleOf(name);
    if (page.job.kind == view::Kind::kElastic ? role != "master" : KeepsParameters(role)) continue;
    if (roles.emplace(role).second) tellers.push_back(std::move(name));
  }
  std::ranges::stable_sort(tellers, {}, [](const std::string& name) { return RankOf(RoleOf(name)); });
  if (tellers.size() > kMostTellers) tellers.resize(kMostTellers);
  return tellers;
}

LogPlots::LogPlots(kube::Transport& transport, Clock& clock)
    : clock_(clock), api_(transport, clock, IdSource::Random(), {.attempts = 1}) {}

std::shared_ptr<LogPlots::JobLogs> LogPlots::Find(const std::string& uid) {
  const MutexLock lock(mu_);
  std::shared_ptr<JobLogs>& logs = jobs_[uid];
  if (logs == nullptr) logs = std::make_shared<JobLogs>();
  logs->used = clock_.Steady();
  const std::shared_ptr<JobLogs> found = logs;
  if (jobs_.size() > kMostJobs) {
    const auto oldest = std::ranges::min_element(jobs_, {}, [&](const auto& one) {
      return one.second == found ? SteadyTime::Never() : one.second->used;
    });
    jobs_.erase(oldest);
  }
  return found;
}

Plots LogPlots::Read(const view::JobPage& page) {
  const std::shared_ptr<JobLogs> logs = Find(page.job.uid);
  // Of one job one reads at a time, and the others take what it has found.
  const MutexLock lock(logs->mu);
  if (clock_.Steady() >= logs->next) {
    Update(page, *logs);
    logs->next = clock_.Steady() + kBetweenReads;
  }
  return logs->plots;
}

void LogPlots::Update(const view::JobPage& page, JobLogs& logs) {
  const std::vector<std::string> tellers = ChooseTellers(page);
  TakeGone(page, tellers, logs);
  std::vector<const view::Member*> members;
  std::vector<kube::Operation> reads;
  for (const std::string& name : tellers) {
    const auto member = std::ranges::find(page.members, name, &view::Member::name);
    if (member == page.members.end()) continue;
    std::string target = LogTarget(page, *member);
    if (const auto known = logs.pods.find(member->uid); known != logs.pods.end()) {
      StrAppend(target, "&sinceTime=", kube::PercentEncoded(PrintTime(known->second)));
    } else {
      StrAppend(target, "&tailLines=", kMostLines);
      if (member->has_previous) {
        members.push_back(&*member);
        reads.push_back(ReadOf(StrCat(target, "&previous=true")));
      }
    }
    members.push_back(&*member);
    reads.push_back(ReadOf(std::move(target)));
  }
  const auto answers = api_.Do(std::move(reads));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) continue;  // it has not begun, or is gone
    const auto known = logs.pods.find(members[i]->uid);
    const absl::Time before = known == logs.pods.end() ? absl::InfinitePast() : known->second;
    absl::Time last = before;
    for (const std::string_view line : Split(std::string_view(*answers[i]), '\n')) {
      const auto [time, text] = SplitTime(line);
      if (time <= before) continue;  // it was asked for by whole seconds
      last = std::max(last, time);
      TakeLine(members[i]->name, time, text, logs);
    }
    if (last != absl::InfinitePast()) logs.pods[members[i]->uid] = last;
  }
}

// What is kept of pods that are gone has times only where they wrote them themselves.
void LogPlots::TakeGone(const view::JobPage& page, const std::vector<std::string>& tellers, JobLogs& logs) {
  for (const kube::GonePod& gone : page.history) {
    if (std::ranges::find(tellers, gone.member) == tellers.end()) continue;
    if (!logs.pods.try_emplace(gone.uid, gone.ended).second) continue;
    for (const std::string_view line : Split(std::string_view(gone.log), '\n')) {
      const auto [time, text] = SplitTime(line);
      TakeLine(gone.member, time, text, logs);
    }
  }
}

void LogPlots::TakeLine(const std::string& member, absl::Time time, std::string_view text, JobLogs& logs) {
  if (time == absl::InfinitePast()) return;
  for (const auto& [name, value] : view::ParseMetrics(text)) {
    if (!logs.owners.contains(name) && logs.owners.size() >= kMostPlots) continue;
    if (logs.owners.try_emplace(name, member).first->second != member) continue;
    Series& series = logs.plots[name];
    // A plot goes forward only; what comes late was told by another pod of the member.
    if (!series.points().empty() && Seconds(time) < series.points().back().first) continue;
    series.Add(Seconds(time), value);
  }
}

void Series::Add(double seconds, double value, bool on_change) {
  if (!points_.empty()) {
    if (on_change && points_.back().second == value) return;
    if (seconds - points_.back().first < least_gap_) {
      points_.back().second = value;
      return;
    }
  }
  points_.emplace_back(seconds, value);
  if (points_.size() <= most_) return;
  std::vector<std::pair<double, double>> half;
  for (std::size_t i = 0; i < points_.size(); i += 2) half.push_back(points_[i]);
  if (half.back() != points_.back()) half.push_back(points_.back());
  points_ = std::move(half);
  least_gap_ = (points_.back().first - points_.front().first) / static_cast<double>(most_);
}

}  // namespace trainyard::dashboard
