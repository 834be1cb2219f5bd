#include "agent/attempts.h"

namespace trainyard::agent {
namespace {

std::string Name(std::int64_t attempt) { return "attempt " + std::to_string(attempt); }
Decision Refuse(std::string why) { return {.verdict = Verdict::kRefuse, .why = std::move(why)}; }

}  // namespace

Decision DecideConfig(const Attempts& attempts, const ScriptConfig& posted) {
  if (!attempts.config) return {.verdict = Verdict::kDo};
  const std::int64_t present = attempts.config->attempt;
  if (posted.attempt < present) {
    return Refuse(Name(posted.attempt) + " is over: " + Name(present) + " is configured; send a higher one");
  }
  if (posted == *attempts.config) return {.verdict = Verdict::kRepeat};
  if (posted.attempt == present && attempts.was_run) {
    return Refuse(Name(present) + " was run with another configuration; send a higher attempt");
  }
  if (attempts.active) return Refuse(Name(present) + " runs: POST /stop and wait for its end first");
  return {.verdict = Verdict::kDo};
}

Decision DecideRun(const Attempts& attempts, std::optional<std::int64_t> attempt) {
  if (!attempts.config) return Refuse("there is no configuration yet: POST /config first");
  const std::int64_t present = attempts.config->attempt;
  if (attempt && *attempt != present) {
    return Refuse(Name(present) + " is configured, not " + Name(*attempt) + ": POST /config first");
  }
  return {.verdict = attempts.was_run ? Verdict::kRepeat : Verdict::kDo};
}

}  // namespace trainyard::agent
