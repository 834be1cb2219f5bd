#include "job/exit_codes.h"

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
