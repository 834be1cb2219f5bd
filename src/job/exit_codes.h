// Sets of exit codes, as users write them: "137, 128" or "1,128-255".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::job {

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

}  // namespace trainyard::job
