#include "launch/agent_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "launch/task.h"

namespace trainyard::launch {
namespace {

constexpr int kPollSeconds = 20;
constexpr absl::Duration kPollTimeout = absl::Seconds(kPollSeconds + 10);
constexpr absl::Duration kFirstDelay = absl::Milliseconds(5);
constexpr absl::Duration kMostDelay = absl::Seconds(1);
constexpr absl::Duration kMostAtFirst = absl::Milliseconds(20);  // while it is being started
constexpr int kStartingTries = 200;
constexpr int kSilentAfter = 2;  // calls in a row that were not answered

std::optional<AgentState> ParseState(std::string_view text) {
  constexpr std::pair<std::string_view, AgentState> kStates[] = {
      {"idle", AgentState::kIdle},       {"configured", AgentState::kConfigured},
      {"running", AgentState::kRunning}, {"stopping", AgentState::kStopping},
      {"exited", AgentState::kExited},   {"failed", AgentState::kFailed}};
  for (const auto& [name, state] : kStates) {
    if (name == text) return state;
  }
  return std::nullopt;
}

}  // namespace

// Whoever answers after the watch has gone finds nobody.
struct AgentWatch::Shared {
  Mutex mu;
  AgentWatch* watch TY_GUARDED_BY(mu) = nullptr;
};

std::string AgentPlace::Url(std::string_view path) const {
  const bool six = ip.find(':') != std::string::npos;
  return StrCat("http://", six ? "[" : "", ip, six ? "]" : "", ":", kAgentPort, path);
}

absl::StatusOr<AgentStatus> ParseAgentStatus(std::string_view json) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  AgentStatus status;
  const auto state = ParseState(StringAt(document, {"state"}));
  const auto attempt = IntAt(document, {"attempt"}).value_or(0);  // null before the first
  const auto version = IntAt(document, {"version"});
  if (!state || !std::in_range<int>(attempt) || !version)
    return absl::InvalidArgumentError("it is no agent's status");
  status.seen.state = *state;
  status.seen.attempt = static_cast<int>(attempt);
  status.seen.reason = StringAt(document, {"reason"});
  status.incarnation = StringAt(document, {"incarnation"});
  status.version = *version;
  if (absl::Time ended;
      absl::ParseTime(absl::RFC3339_full, std::string(StringAt(document, {"endedAt"})), &ended, nullptr))
    status.seen.ended = ended;
  if (const auto code = IntAt(document, {"exitCode"}); code && std::in_range<int>(*code))
    status.seen.exit_code = static_cast<int>(*code);
  return status;
}

AgentWatch::AgentWatch(http::Calls& calls, Clock& clock,
                       std::function<void(const kube::ObjectKey& task)> changed)
    : calls_(calls), clock_(clock), changed_(std::move(changed)), shared_(std::make_shared<Shared>()) {
  const MutexLock lock(shared_->mu);
  shared_->watch = this;
}

AgentWatch::~AgentWatch() {
  {
    const MutexLock lock(shared_->mu);
    shared_->watch = nullptr;
  }
  const MutexLock lock(mu_);
  for (const auto& [uid, agent] : agents_) calls_.Cancel(agent.call);
}

void AgentWatch::Watch(const AgentPlace& place) {
  {
    const MutexLock lock(mu_);
    if (!agents_.try_emplace(place.pod_uid, Agent{.place = place, .since = clock_.Now()}).second) return;
  }
  Ask(place.pod_uid);
}

void AgentWatch::Forget(const std::string& pod_uid) {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  if (found == agents_.end()) return;
  calls_.Cancel(found->second.call);
  agents_.erase(found);
}

void AgentWatch::Rest(const std::string& pod_uid) {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  if (found == agents_.end() || std::exchange(found->second.rests, true)) return;
  calls_.Cancel(found->second.call);
}

std::optional<absl::Time> AgentWatch::AskedSince(const std::string& pod_uid) const {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  return found == agents_.end() ? std::nullopt : std::optional<absl::Time>(found->second.since);
}

std::optional<SeenAgent> AgentWatch::Find(const std::string& pod_uid) const {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  if (found == agents_.end() || !found->second.status) return std::nullopt;
  return found->second.status->seen;
}

bool AgentWatch::Take(const std::string& pod_uid, const AgentStatus& status) {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  return found != agents_.end() && Learn(found->second, status);
}

bool AgentWatch::Learn(Agent& agent, const AgentStatus& status) {
  auto& known = agent.status;
  const bool older = known && known->incarnation == status.incarnation && known->version > status.version;
  if (older) return false;
  const bool news = !known || !(known->seen == status.seen);
  known = status;
  return news;
}

void AgentWatch::Ask(const std::string& pod_uid) {
  const MutexLock lock(mu_);
  const auto found = agents_.find(pod_uid);
  if (found == agents_.end() || found->second.rests) return;
  Agent& agent = found->second;
  http::Call call{
      .url = agent.place.Url(agent.status && agent.failures == 0
                                 ? StrCat("/status?after=", agent.status->version, "&wait=", kPollSeconds)
                                 : "/status"),
      .token = agent.place.token,
      .timeout = agent.failures == 0 && agent.status ? kPollTimeout : absl::Seconds(5)};
  const bool starting = !agent.status && agent.failures < kStartingTries;
  if (agent.failures > 0)
    call.delay =
        std::min(kFirstDelay * (1 << std::min(agent.failures - 1, 10)), starting ? kMostAtFirst : kMostDelay);
  agent.call =
      calls_.Begin(std::move(call), [shared = shared_, pod_uid](const absl::StatusOr<http::Answer>& answer) {
        if (absl::IsCancelled(answer.status())) return;
        const MutexLock alive(shared->mu);
        if (shared->watch != nullptr) shared->watch->OnAnswer(pod_uid, answer);
      });
}

void AgentWatch::OnAnswer(const std::string& pod_uid, const absl::StatusOr<http::Answer>& answer) {
  std::optional<kube::ObjectKey> task;
  {
    const MutexLock lock(mu_);
    const auto found = agents_.find(pod_uid);
    if (found == agents_.end()) return;
    Agent& agent = found->second;
    const absl::StatusOr<AgentStatus> status =
        !answer.ok()          ? answer.status()
        : answer->code == 200 ? ParseAgentStatus(answer->body)
                              : absl::StatusOr<AgentStatus>(absl::UnavailableError(http::ErrorOf(*answer)));
    if (!status.ok())
      log::Debug("an agent does not answer", {{"task", agent.place.task.name}, {"error", status.status()}});
    if (status.ok()) {
      agent.failures = 0;
      if (Learn(agent, *status)) task = agent.place.task;
    } else if (++agent.failures >= kSilentAfter && agent.status && !agent.status->seen.silent_since) {
      agent.status->seen.silent_since = clock_.Now();
      task = agent.place.task;
    }
  }
  if (task) changed_(*task);
  Ask(pod_uid);
}

}  // namespace trainyard::launch
