// What a launcher may do when: attempts only grow, and each is run once. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/config.h"

namespace trainyard::agent {

// Where the attempts stand.
struct Attempts {
  std::optional<ScriptConfig> config;  // of the present one
  bool was_run = false;                // the present one was begun, whatever became of it
  bool active = false;                 // and has not ended
};

enum class Verdict : std::uint8_t {
  kDo,
  kRepeat,  // it has been done already
  kRefuse,  // a conflict
};

struct Decision {
  Verdict verdict = Verdict::kRefuse;
  std::string why;  // of a refusal: what, and what to do

  bool operator==(const Decision&) const = default;
};

Decision DecideConfig(const Attempts& attempts, const ScriptConfig& posted);

// `attempt`: which one the launcher means; none: the present one.
Decision DecideRun(const Attempts& attempts, std::optional<std::int64_t> attempt);

}  // namespace trainyard::agent
