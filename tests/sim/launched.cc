#include "tests/sim/launched.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/config.h"
#include "base/text.h"
#include "job/names.h"
#include "job/progress.h"
#include "launch/task.h"
#include "tests/sim/documents.h"

namespace trainyard::sim {
namespace {

constexpr int kStopped = 143;

// What stands between two texts; empty: it is not there.
std::string_view Between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, std::min(rest.find_first_of(end), rest.size()));
}

std::optional<std::int64_t> NumberOf(std::string_view url, std::string_view name) {
  return ParseNumber<std::int64_t>(Between(url, StrCat(name, "="), "&."));
}

http::Answer Refusal(int code, std::string_view why) {
  return {.code = code, .body = PrintJson(Object{{"error", why}})};
}

}  // namespace

// ---- the agents

Agents::Agent* Agents::Find(const std::string& ip) {
  for (const Document& pod : cluster_.ListPods()) {
    if (StringAt(pod, {"status", "podIP"}) != ip) continue;
    if (StringAt(pod, {"status", "phase"}) != "Running" || cluster_.IsOnLostNode(pod)) return nullptr;
    Agent& agent = agents_[ip];
    if (agent.uid.empty()) {
      agent.uid = UidOf(pod);
      agent.status.incarnation = StrCat(random_.Next());
    }
    return &agent;
  }
  return nullptr;
}

// What is asked for once is done at once; what waits is answered by a step.
http::Calls::Id Agents::Begin(http::Call call, Done done) {
  const Id id = ++last_;
  if (call.method == "GET") {
    polls_.emplace(id, Poll{std::move(call), std::move(done), cluster_.clock().Steady()});
    return id;
  }
  Agent* const agent = Lost() ? nullptr : Find(std::string(Between(call.url, "//", ":")));
  if (agent == nullptr) {
    done(absl::UnavailableError("no answer"));
    return id;
  }
  http::Answer answer = Handle(*agent, call, StrCat("/", Between(call.url, ":7896/", "?")));
  if (Lost()) {
    done(absl::UnavailableError("no answer"));
  } else {
    done(std::move(answer));
  }
  return id;
}

http::Calls::Id Agents::Follow(http::Call, Some, Done done) {
  done(absl::UnavailableError("nothing is followed here"));
  return ++last_;
}

http::Answer Agents::Handle(Agent& agent, const http::Call& call, std::string_view path) {
  agent::Status& status = agent.status;
  const auto set = [&](agent::State state, std::string_view reason) {
    status.state = state;
    status.reason = reason;
    ++status.version;
  };
  if (path == "/config") {
    agent::ParsedConfig parsed = agent::ParseConfig(call.body);
    if (!parsed.config) return Refusal(400, parsed.wrong);
    if (agent.ends) return Refusal(409, "the agent is ending");
    const agent::Decision decision = agent::DecideConfig(agent.attempts, *parsed.config);
    if (decision.verdict == agent::Verdict::kRefuse) return Refusal(409, decision.why);
    if (decision.verdict == agent::Verdict::kDo) {
      agent.attempts = {.config = std::move(parsed.config)};
      status.attempt = agent.attempts.config->attempt;
      status.exit = {};
      set(agent::State::kConfigured, "waits to be run");
    }
  } else if (path == "/run") {
    const agent::Decision decision = agent::DecideRun(agent.attempts, NumberOf(call.url, "attempt"));
    if (decision.verdict == agent::Verdict::kRefuse) return Refusal(409, decision.why);
    if (decision.verdict == agent::Verdict::kDo) {
      if (agent.ends) return Refusal(409, "the agent is ending");
      agent.attempts.was_run = agent.attempts.active = true;
      set(agent::State::kRunning, "runs");
      promises_.ScriptRuns(agent.uid, *status.attempt);
    }
  } else if (path == "/stop") {
    if (agent.attempts.active) set(agent::State::kStopping, "was told to stop");
  } else if (path == "/end") {
    agent.ends = true;
    if (const auto code = NumberOf(call.url, "code")) agent.code = static_cast<int>(*code);
    if (agent.attempts.active) set(agent::State::kStopping, "was told to stop");
  }
  return {.code = 200, .body = agent::PrintStatus(status)};
}

std::optional<absl::StatusOr<http::Answer>> Agents::Answer(const Poll& poll) {
  const absl::Duration waited = cluster_.clock().Steady() - poll.begun;
  if (waited < poll.call.delay) return std::nullopt;
  Agent* const agent = Find(std::string(Between(poll.call.url, "//", ":")));
  if (agent == nullptr) return absl::UnavailableError("no answer");
  const auto after = NumberOf(poll.call.url, "after");
  const auto wait = NumberOf(poll.call.url, "wait").value_or(0);
  if (after == static_cast<std::int64_t>(agent->status.version) && waited < absl::Seconds(wait))
    return std::nullopt;
  if (Lost()) return absl::UnavailableError("no answer");
  return http::Answer{.code = 200, .body = agent::PrintStatus(agent->status)};
}

void Agents::Step(bool calm) {
  std::map<std::string, const Document*> by_ip;
  const Objects pods = cluster_.ListPods();
  for (const Document& pod : pods) {
    if (Launcher::IsTask(pod) && StringAt(pod, {"status", "phase"}) == "Running")
      by_ip.emplace(StringAt(pod, {"status", "podIP"}), &pod);
  }
  std::erase_if(agents_, [&](const auto& known) { return !by_ip.contains(known.first); });
  for (auto& [ip, agent] : agents_) {
    const Document& pod = *by_ip.at(ip);
    if (!cluster_.IsOnLostNode(pod)) StepAgent(agent, pod, calm);
  }
  std::vector<Id> ids;
  for (const auto& [id, poll] : polls_) ids.push_back(id);
  for (const Id id : ids) {
    const auto poll = polls_.find(id);
    if (poll == polls_.end()) continue;
    auto answer = Answer(poll->second);
    if (!answer) continue;
    const Done done = std::move(poll->second.done);
    polls_.erase(poll);
    done(*std::move(answer));
  }
}

void Agents::StepAgent(Agent& agent, const Document& pod, bool calm) {
  static constexpr int kExits[] = {0, 0, 0, 1, 3, kStopped};
  agent::Status& status = agent.status;
  const bool server = LabelOf(pod, job::kRoleLabel) == job::Print(job::MemberRole::kPs);
  const bool stops = status.state == agent::State::kStopping;
  const bool over = !server && (calm || random_.Below(100) < 4);
  if (agent.attempts.active && (stops || over)) {
    agent.attempts.active = false;
    status.exit.code = stops ? kStopped : calm ? 0 : kExits[random_.Below(std::size(kExits))];
    status.state = agent::State::kExited;
    status.reason = agent::PrintExit(status.exit);
    status.ended_millis = static_cast<std::uint64_t>(absl::ToUnixMillis(cluster_.clock().Now()));
    ++status.version;
    cluster_.story().Tell(StrCat("the script of ", KeyOf(pod).name, " ", status.reason));
  }
  if (agent.ends && !agent.attempts.active)
    cluster_.EndPod(pod, agent.code.value_or(agent::ExitCodeOf(status)), {});
}

// ---- the launcher

Launcher::Launcher(Cluster& cluster, Promises& promises, std::uint64_t seed)
    : cluster_(cluster), promises_(promises), random_(seed), agents_(cluster, promises, random_.Next()) {}

Launcher::~Launcher() = default;

bool Launcher::IsTask(const Document& object) { return !LabelOf(object, launch::kTaskLabel).empty(); }

absl::StatusOr<Document> Launcher::Create(const std::string& name) {
  const auto chance = [this](std::uint64_t percent) { return random_.Below(100) < percent; };
  launch::TaskSpec spec{.name = name, .workers = 1 + static_cast<int>(random_.Below(3)), .image = "x"};
  if (chance(40)) {
    spec.strategy = launch::Strategy::kParameterServer;
    spec.ps = 1;
    spec.evaluator = chance(30);
  } else if (chance(40)) {
    spec.min_workers = 1;
    spec.max_workers = spec.workers + static_cast<int>(random_.Below(2));
  }
  spec.max_restarts = static_cast<int>(random_.Below(8));
  spec.cpu = "500m";
  if (const absl::Status valid = launch::Validate(spec); !valid.ok()) return valid;
  const auto secret = cluster_.user().Create(kube::Resource::Secrets(), std::string(kNamespace),
                                             PrintJson(launch::TaskSecret(kNamespace, spec, "secret")));
  if (!secret.ok()) return secret.status();
  if (controller_ == nullptr) StartProcess();
  return launch::TaskJob(kNamespace, spec, {});
}

void Launcher::StartProcess() {
  controller_.reset();
  api_.reset();
  if (transport_) writes_ += transport_->writes;
  transport_ = std::make_unique<FaultyTransport>(
      cluster_.transport(), random_.Next(),
      FaultyTransport::Hooks{.before_write = [this](const kube::Request& request) {
        cluster_.story().Tell(StrCat("  the launcher: ", request.method, " ", request.target));
      }});
  transport_->rates = rates_;
  if (crashes_ && random_.Below(2) == 0) transport_->writes_until_crash = static_cast<int>(random_.Below(30));
  api_ = std::make_unique<kube::Api>(*transport_, cluster_.clock(), IdSource(random_.Next()),
                                     kube::RetryPolicy{.attempts = 1});
  controller_ = std::make_unique<launch::Controller>(
      *api_, agents_, cluster_.clock(),
      launch::ControllerOptions{.ns = std::string(kNamespace), .seed = random_.Next()});
}

void Launcher::SetRates(const FaultRates& rates, bool crashes) {
  rates_ = rates;
  rates_.stale = 0;
  crashes_ = crashes;
  agents_.SetLost(rates.lost);
  if (transport_ == nullptr) return;
  transport_->rates = rates_;
  if (!crashes) transport_->writes_until_crash.reset();
}

void Launcher::Step(bool calm) {
  if (controller_ == nullptr) return;
  if (transport_->crashed) {
    cluster_.story().Tell("the launcher has crashed");
    StartProcess();
  }
  bool busy = true;
  for (std::uint64_t i = calm ? 100 : random_.Below(8); i > 0 && busy; --i) busy = controller_->Step();
  agents_.Step(calm);
}

}  // namespace trainyard::sim
