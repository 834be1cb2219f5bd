#include "cli/member_flags.h"

namespace trainyard::cli {

void MemberFlags::Declare(Flags& flags, const std::string& index, const std::string& index_help) {
  index_flag_ = index;
  flags.Text({.name = "--master", .value = "HOST:PORT", .help = "Where the master is", .everywhere = true},
             master_);
  flags.Number({.name = index, .value = "N", .help = index_help, .everywhere = true}, index_);
  flags.Text({.name = "--token-file",
              .value = "FILE",
              .help = "The job's token: whoever lacks it is refused ($TRAINYARD_JOB_TOKEN)"},
             token_file_);
  flags.Text({.name = "--pod-name",
              .value = "NAME",
              .help = "What the master calls it (the host's name)",
              .everywhere = true},
             pod_);
  flags.Duration({.name = "--patience",
                  .value = "TIME",
                  .help = "How long it waits for a master that cannot be reached (10m)"},
                 patience_);
}

absl::Status MemberFlags::Check() const {
  if (master_.empty()) return UsageError("--master is missing: say where the master is, as HOST:PORT");
  const std::size_t colon = master_.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : ParseNumber<std::uint16_t>(std::string_view(master_).substr(colon + 1));
  if (!port || *port == 0 || colon == 0)
    return UsageError(StrCat("--master: '", trainyard::Shortened(Escaped(master_), 64),
                             "' is not an address: write HOST:PORT"));
  if (index_ && (*index_ < 0 || *index_ > INT32_MAX))
    return UsageError(StrCat(index_flag_, " must not be below 0"));
  return absl::OkStatus();
}

}  // namespace trainyard::cli
