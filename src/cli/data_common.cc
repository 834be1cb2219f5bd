#include "cli/data_common.h"

#include <unistd.h>

#include <iostream>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kBetween = absl::Milliseconds(100);

}  // namespace

void RecordFileFlags::Declare(Flags& flags) {
  flags.Arguments("PATHS", "Record files, folders of them, or globs in quotes", paths_);
  flags.Text({.name = "--format",
              .value = "FORMAT",
              .help = "What the files are: recordio, csv, idx, or auto: as they look (auto)",
              .one_of = {"auto", "recordio", "csv", "idx"}},
             format_);
  flags.Switch({.name = "--skip-header", .help = "CSV: the first line of each file is no record"},
               skip_header_);
  flags.Text(
      {.name = "--delimiter", .value = "CHARACTER", .help = "CSV: what is between columns, or tab (,)"},
      delimiter_);
  flags.Switch({.name = "--no-quotes", .help = "CSV: a quote is a character like others, as in plain text"},
               no_quotes_);
}

absl::StatusOr<data::OpenOptions> RecordFileFlags::Options() const {
  const std::string delimiter = delimiter_ == "tab" || delimiter_ == "\\t" ? "\t" : delimiter_;
  if (delimiter.size() != 1 || delimiter.find_first_of("\"\r\n") != std::string::npos) {
    return UsageError(
        StrCat("--delimiter: '", Escaped(delimiter_), "' is not one character, or is one that cannot be"));
  }
  TY_ASSIGN_OR_RETURN(const data::Format format, data::ParseFormat(format_));
  return data::OpenOptions{.format = format,
                           .csv = {.delimiter = delimiter[0], .header = skip_header_, .quotes = !no_quotes_}};
}

ProgressLine::ProgressLine()
    : terminal_(::isatty(STDERR_FILENO) != 0), next_(Clock::System().Steady() + kBetween) {}

bool ProgressLine::Due() {
  if (!terminal_) return false;
  const SteadyTime now = Clock::System().Steady();
  if (now < next_) return false;
  next_ = now + kBetween;
  return true;
}

void ProgressLine::Show(std::string_view text) {
  std::cerr << "\r\x1b[K" << text << std::flush;
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  shown_ = false;
}

std::string Counted(std::uint64_t count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  const double share = whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  return StrCat(static_cast<int>(100 * share), "%");
}

}  // namespace trainyard::cli
