#include "job/restart_rules.h"

namespace trainyard::job {

std::string_view Print(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kExitCode:
      return "ExitCode";
    case RestartPolicy::kOnNodeFail:
      return "OnNodeFail";
    case RestartPolicy::kOnNodeFailWithExitCode:
      return "OnNodeFailWithExitCode";
  }
  return "";
}

RestartRules TfRestartRules(RestartPolicy policy) {
  constexpr int kFirstSignal = 128;
  RestartRules rules{.policy = policy, .failures = true, .node_failures = true, .disruptions = true};
  switch (policy) {
    case RestartPolicy::kAlways:
      rules.in_place = InPlace::kEverything;
      return rules;
    case RestartPolicy::kOnFailure:
      rules.in_place = InPlace::kFailures;
      return rules;
    case RestartPolicy::kExitCode:
      rules.codes = ExitCodes(kFirstSignal, kLastExitCode);
      return rules;
    case RestartPolicy::kNever:
    case RestartPolicy::kOnNodeFail:
    case RestartPolicy::kOnNodeFailWithExitCode:
      break;
  }
  return {.policy = policy};
}

RestartRules AiRestartRules(RestartPolicy policy, const ExitCodes& codes) {
  RestartRules rules{
      .policy = policy, .without_code = false, .disruptions = true, .creation = true, .counts_all = true};
  switch (policy) {
    case RestartPolicy::kNever:
      rules.disruptions = false;
      return rules;
    case RestartPolicy::kAlways:
      rules.failures = rules.node_failures = true;
      return rules;
    case RestartPolicy::kOnFailure:
      rules.failures = true;
      return rules;
    case RestartPolicy::kOnNodeFail:
      rules.node_failures = true;
      return rules;
    case RestartPolicy::kExitCode:
      rules.failures = true;
      rules.codes = codes;
      return rules;
    case RestartPolicy::kOnNodeFailWithExitCode:
      rules.failures = rules.node_failures = true;
      rules.codes = codes;
      return rules;
  }
  return rules;
}

}  // namespace trainyard::job
