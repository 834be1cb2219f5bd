#include "job/restart_rules.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "base/text.h"

namespace trainyard::job {
namespace {

std::optional<int> ParseCode(std::string_view text) {
  const auto code = ParseNumber<int>(Trimmed(text));
  return code && *code >= 0 && *code <= kLastExitCode ? code : std::nullopt;
}

}  // namespace

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

absl::StatusOr<ExitCodes> ExitCodes::Parse(std::string_view text) {
  ExitCodes codes;
  if (Trimmed(text).empty()) return codes;
  for (const std::string_view raw : Split(text, ',')) {
    const std::string_view part = Trimmed(raw);
    const std::size_t dash = part.find('-');
    const auto first = ParseCode(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseCode(part.substr(dash + 1));
    if (!first || !last) {
      return absl::InvalidArgumentError(StrCat("'", Escaped(part), "' is no exit code and no range of them: ",
                                               "they are whole numbers from 0 to ", kLastExitCode));
    }
    if (*first > *last) {
      return absl::InvalidArgumentError(
          StrCat("the range ", *first, "-", *last, " is empty: the lower code comes first"));
    }
    codes.ranges_.emplace_back(*first, *last);
  }
  return codes;
}

std::string ExitCodes::Print() const {
  std::string out;
  for (const auto& [first, last] : ranges_) {
    StrAppend(out, out.empty() ? "" : ",", first);
    if (last != first) StrAppend(out, "-", last);
  }
  return out;
}

bool ExitCodes::Contains(int code) const {
  return std::ranges::any_of(
      ranges_, [code](const auto& range) { return code >= range.first && code <= range.second; });
}

}  // namespace trainyard::job
