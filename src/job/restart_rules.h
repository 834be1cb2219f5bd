// After what a pod is made again. The restart policies of every kind of job are rows of a table of these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::job {

// Sets of exit codes, as users write them: "137, 128" or "1,128-255".

inline constexpr int kLastExitCode = 255;

class ExitCodes {
 public:
  ExitCodes() = default;
  ExitCodes(int first, int last) : ranges_{{first, last}} {}
  // Codes and ranges of them, separated by commas; blanks do not matter. An empty text is the empty set.
  // InvalidArgument: it is no such list; the message says what is wrong with which part.
  static absl::StatusOr<ExitCodes> Parse(std::string_view text);
  std::string Print() const;  // "1,128-255": as it was written, without blanks

  bool Contains(int code) const;
  bool operator==(const ExitCodes&) const = default;

 private:
  std::vector<std::pair<int, int>> ranges_;  // both ends included
};

// As users name them.
enum class RestartPolicy : std::uint8_t {
  kAlways,
  kOnFailure,
  kNever,
  kExitCode,
  kOnNodeFail,
  kOnNodeFailWithExitCode,
};
std::string_view Print(RestartPolicy policy);  // "Always", ...

// Who else is made again with a pod that is.
enum class RestartScope : std::uint8_t { kPod, kRole, kJob };

// What the kubelet starts again by itself, without the pod being another.
enum class InPlace : std::uint8_t { kNothing, kFailures, kEverything };

struct RestartRules {
  RestartPolicy policy = RestartPolicy::kNever;
  InPlace in_place = InPlace::kNothing;
  bool failures = false;                          // of its own program
  std::optional<ExitCodes> codes;                 // of these, only those that ended with one of the codes
  bool without_code = true;                       // and those that ended without any
  bool node_failures = false;                     // its node is lost, or its accelerator
  bool disruptions = false;                       // it was evicted, preempted or not taken
  bool creation = false;                          // its containers could not be made for too long
  bool counts_all = false;                        // also what is nobody's fault counts towards limits
  absl::Duration first_wait = absl::Seconds(10);  // of the second failure; doubles with each one
  bool operator==(const RestartRules&) const = default;
};

// What a TFJob's policies mean: Always, OnFailure, Never and ExitCode. What is nobody's fault does not count,
// or spot nodes would fail every long job.
RestartRules TfRestartRules(RestartPolicy policy);

// What an AITrainingJob's policies mean, all of them; `codes` are those worth another try under ExitCode and
// OnNodeFailWithExitCode. Whatever the cause, a restart counts, but for the shutdown of a node.
RestartRules AiRestartRules(RestartPolicy policy, const ExitCodes& codes);

}  // namespace trainyard::job
