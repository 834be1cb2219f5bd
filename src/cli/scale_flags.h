// What commands that scale share: how much of the cluster may be asked for.
#pragma once

#include <charconv>
#include <string>

#include "absl/status/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "job/scale/autoscale.h"

namespace trainyard::cli {

// --max-load-desired
class MaxLoadFlag {
 public:
  void Declare(Flags& flags) {
    flags.Text({.name = "--max-load-desired",
                .value = "PART",
                .help = "How much of the cluster's cpu the autoscaler lets be asked for, up to 1 (0.97)"},
               text_);
  }
  absl::StatusOr<job::scale::Limits> Get() const {
    job::scale::Limits limits;
    if (text_.empty()) return limits;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), limits.max_load);
    const bool whole = error == std::errc() && end == text_.data() + text_.size();
    if (!whole || !(limits.max_load > 0) || limits.max_load > 1) {
      return UsageError(
          StrCat("--max-load-desired: '", Escaped(text_), "' is no part of the whole: write it as 0.97"));
    }
    return limits;
  }

 private:
  std::string text_;
};

}  // namespace trainyard::cli
