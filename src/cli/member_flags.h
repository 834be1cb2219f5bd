// The flags of a process that works for the master of an elastic job: a worker or a pserver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/worker_process.h"

namespace trainyard::cli {

class MemberFlags {
 public:
  // `index` is "--worker-index", `index_help` what it means.
  void Declare(Flags& flags, const std::string& index, const std::string& index_help);

  // Puts them into the options of either. Misuse: what is missing or cannot be.
  template <typename Options>
  absl::Status Take(Options& options) const {
    TY_RETURN_IF_ERROR(Check());
    options.master = master_;
    options.pod = pod_.empty() ? HostName() : pod_;
    if (index_) options.index = static_cast<int>(*index_);
    if (patience_) options.patience = *patience_;
    TY_ASSIGN_OR_RETURN(options.token, JobToken(token_file_));
    return absl::OkStatus();
  }

 private:
  absl::Status Check() const;

  std::string index_flag_;
  std::string master_, token_file_, pod_;
  std::optional<std::int64_t> index_;
  std::optional<absl::Duration> patience_;
};

}  // namespace trainyard::cli
