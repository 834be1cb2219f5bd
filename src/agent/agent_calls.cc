// The agent's calls: what a launcher may ask for, and what it is told.
#include <algorithm>
#include <charconv>

#include "agent/agent.h"

namespace trainyard::agent {
namespace {

constexpr std::uint64_t kMaxWaitMillis = 300'000;

// A parameter of a query: a number, none, or nonsense.
template <typename T>
bool TakeNumber(const Request& request, std::string_view name, std::optional<T>& out) {
  const std::string* text = request.Find(name);
  if (text == nullptr) return true;
  T number{};
  const char* const text_end = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), text_end, number);
  if (error != std::errc() || end != text_end) return false;
  out = number;
  return true;
}

bool TakeSeconds(const Request& request, std::string_view name, std::optional<std::uint64_t>& millis) {
  const std::string* text = request.Find(name);
  if (text == nullptr) return true;
  millis = ParseMillis(*text);
  return millis.has_value();
}

bool SameSecret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char c = given.empty() ? '\0' : given[i % given.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(c ^ secret[i]));
  }
  return difference == 0;
}

}  // namespace

bool Agent::Trusts(const Request& head) const {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view given = head.authorization;
  bool bearer = given.size() > kScheme.size();
  for (std::size_t i = 0; bearer && i < kScheme.size(); ++i) bearer = (given[i] | 0x20) == kScheme[i];
  given.remove_prefix(bearer ? kScheme.size() : given.size());
  return SameSecret(given, config_.token);
}

std::optional<Answer> Agent::Refuse(const Request& head) {
  if (head.path == "/healthz" || Trusts(head)) return std::nullopt;
  return ErrorAnswer(401, head.authorization.empty()
                              ? "no token: send the agent's token: Authorization: Bearer TOKEN"
                              : "wrong token: send the agent's token: Authorization: Bearer TOKEN");
}

Reply Agent::Handle(const Request& request) {
  struct Route {
    std::string_view path;
    std::string_view allow;
    Reply (Agent::*handle)(const Request&);
  };
  static constexpr Route kRoutes[] = {
      {"/config", "POST", &Agent::HandleConfig}, {"/run", "GET, POST", &Agent::HandleRun},
      {"/status", "GET", &Agent::HandleStatus},  {"/logs", "GET", &Agent::HandleLogs},
      {"/stop", "POST", &Agent::HandleStop},     {"/end", "POST", &Agent::HandleEnd},
      {"/healthz", "GET", &Agent::HandleHealth},
  };
  for (const Route& route : kRoutes) {
    if (request.path != route.path) continue;
    if ((", " + std::string(route.allow) + ",").find(" " + request.method + ",") != std::string::npos) {
      return (this->*route.handle)(request);
    }
    Answer answer = ErrorAnswer(405, request.path + " takes " + std::string(route.allow));
    answer.allow = route.allow;
    return answer;
  }
  return ErrorAnswer(404, "there is no " + request.path +
                              ": there are /config, /run, /status, /logs, /stop, /end and /healthz");
}

Reply Agent::HandleHealth(const Request&) { return Answer{.body = "ok", .type = "text/plain"}; }

Reply Agent::HandleConfig(const Request& request) {
  ParsedConfig parsed = ParseConfig(request.body);
  if (!parsed.config) return ErrorAnswer(400, parsed.wrong);
  if (ending_) return ErrorAnswer(409, "the agent is ending: there will be no further attempt here");
  const Decision decision = DecideConfig(Standing(), *parsed.config);
  if (decision.verdict == Verdict::kRefuse) return ErrorAnswer(409, decision.why);
  if (decision.verdict == Verdict::kDo) TakeConfig(*std::move(parsed.config));
  return StatusAnswer();
}

Reply Agent::HandleRun(const Request& request) {
  std::optional<std::int64_t> attempt;
  if (!TakeNumber(request, "attempt", attempt)) return ErrorAnswer(400, "attempt is a whole number");
  const Decision decision = DecideRun(Standing(), attempt);
  if (decision.verdict == Verdict::kRefuse) return ErrorAnswer(409, decision.why);
  if (decision.verdict == Verdict::kDo) {
    if (ending_) return ErrorAnswer(409, "the agent is ending: nothing is started here any more");
    StartScript();
  }
  // Whether the program can be run is known in a moment; the answer says so.
  return Pending{.ready = [this, run = run_.get()](bool late) -> std::optional<Answer> {
                   const bool same = run == run_.get();
                   if (same && !late && run->stage() == RunStage::kLaunching) return std::nullopt;
                   if (same && !late && !run->failure().empty() && !run->over()) return std::nullopt;
                   return RunAnswer();
                 },
                 .until = SteadyMillis() + config_.options.request_timeout_millis};
}

Answer Agent::RunAnswer() const {
  return status_.state == State::kFailed ? ErrorAnswer(424, status_.reason) : StatusAnswer();
}

Reply Agent::HandleStatus(const Request& request) {
  std::optional<std::uint64_t> after;
  std::optional<std::uint64_t> wait;
  if (!TakeNumber(request, "after", after)) return ErrorAnswer(400, "after is the version of a status");
  if (!TakeSeconds(request, "wait", wait)) return ErrorAnswer(400, "wait is a number of seconds");
  // A version from the future is one of another life of the agent: that launcher has to know at once.
  if (!after || !wait || *after != status_.version) return StatusAnswer();
  return Pending{.ready = [this, seen = *after](bool late) -> std::optional<Answer> {
                   if (!late && status_.version == seen && !ShallEnd()) return std::nullopt;
                   return StatusAnswer();
                 },
                 .until = SteadyMillis() + std::min(*wait, kMaxWaitMillis)};
}

Reply Agent::HandleLogs(const Request& request) {
  std::optional<std::int64_t> attempt;
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> tail;
  std::optional<int> follow;
  if (!TakeNumber(request, "attempt", attempt)) return ErrorAnswer(400, "attempt is a whole number");
  if (!TakeNumber(request, "from", from)) return ErrorAnswer(400, "from is an offset in bytes");
  if (!TakeNumber(request, "tail", tail)) return ErrorAnswer(400, "tail is a number of lines");
  if (!TakeNumber(request, "follow", follow)) return ErrorAnswer(400, "follow is 1 or 0");
  if (!script_) return ErrorAnswer(409, "there is no configuration yet: POST /config first");
  const std::shared_ptr<AttemptLog>* log = FindLog(attempt.value_or(script_->attempt));
  if (log == nullptr) {
    std::string there = "there are logs of attempt " + std::to_string(script_->attempt);
    if (previous_log_ != nullptr) there += " and " + std::to_string(previous_attempt_);
    return ErrorAnswer(404, "attempt " + std::to_string(*attempt) + " is not kept here: " + there);
  }
  const AttemptLog& bytes = **log;
  std::uint64_t begin = tail ? bytes.FindTail(*tail) : 0;
  begin = std::max({begin, from.value_or(0), bytes.begin()});
  if (begin > bytes.end()) {
    return ErrorAnswer(400, "from is behind the end: there are " + std::to_string(bytes.end()) + " bytes");
  }
  return LogStream{.log = *log, .from = begin, .follow = follow.value_or(0) != 0};
}

const std::shared_ptr<AttemptLog>* Agent::FindLog(std::int64_t attempt) const {
  if (script_ && attempt == script_->attempt) return &log_;
  return previous_log_ != nullptr && attempt == previous_attempt_ ? &previous_log_ : nullptr;
}

Reply Agent::HandleStop(const Request& request) {
  std::optional<std::int64_t> attempt;
  std::optional<std::uint64_t> grace;
  if (!TakeNumber(request, "attempt", attempt)) return ErrorAnswer(400, "attempt is a whole number");
  if (!TakeSeconds(request, "grace", grace)) return ErrorAnswer(400, "grace is a number of seconds");
  if (attempt && script_ && *attempt != script_->attempt) {
    return ErrorAnswer(409, "attempt " + std::to_string(script_->attempt) + " is the present one, not " +
                                std::to_string(*attempt));
  }
  if (Active()) StopScript(SteadyMillis() + grace.value_or(kDefaultGraceMillis));
  return StatusAnswer();
}

Reply Agent::HandleEnd(const Request& request) {
  std::optional<std::uint64_t> grace;
  std::optional<std::uint8_t> code;
  if (!TakeSeconds(request, "grace", grace)) return ErrorAnswer(400, "grace is a number of seconds");
  if (!TakeNumber(request, "code", code)) return ErrorAnswer(400, "code is an exit code, from 0 to 255");
  if (code) asked_code_ = code;
  BeginEnd(SteadyMillis() + grace.value_or(kDefaultGraceMillis), kNever);
  return Pending{.ready = [this](bool) -> std::optional<Answer> {
    if (!ShallEnd()) return std::nullopt;
    return StatusAnswer();
  }};
}

Answer Agent::StatusAnswer() const {
  Status status = status_;
  if (log_ != nullptr) {
    status.log_bytes = log_->end();
    status.log_dropped = log_->begin();
  }
  status.copy_dropped = own_out_.dropped() + own_err_.dropped();
  return {.body = PrintStatus(status)};
}

Attempts Agent::Standing() const {
  return {.config = script_, .was_run = run_ != nullptr, .active = Active()};
}

void Agent::TakeConfig(ScriptConfig config) {
  if (log_ != nullptr) log_->Close();  // whoever follows an attempt that never was is told its end
  if (run_ != nullptr) {
    previous_log_ = std::move(log_);
    previous_attempt_ = script_->attempt;
  }
  run_.reset();
  log_ = std::make_shared<AttemptLog>(log_space_);
  status_.attempt = config.attempt;
  status_.state = State::kConfigured;
  status_.reason = "waits to be run";
  status_.pid.reset();
  status_.exit = {};
  status_.started_millis.reset();
  status_.ended_millis.reset();
  script_ = std::move(config);
  Change();
}

void Agent::StartScript() {
  run_ = std::make_unique<ScriptRun>(poller_, ScriptRun::Outputs{own_out_, own_err_}, log_);
  status_.started_millis = WallMillis();
  const Failure failure = run_->Start(PlanLaunch(config_.options, *script_, config_.environment));
  status_.state = failure.ok() ? State::kRunning : State::kFailed;
  status_.reason = failure.ok() ? "runs" : failure.Text();
  if (failure.ok()) status_.pid = run_->pid();
  if (!failure.ok()) exit_code_ = ExitCodeOf(status_);
  Change();
}

void Agent::StopScript(std::uint64_t kill_at) {
  run_->Stop(kill_at);
  if (status_.state == State::kStopping) return;
  status_.state = State::kStopping;
  status_.reason = "was told to stop";
  Change();
}

}  // namespace trainyard::agent
