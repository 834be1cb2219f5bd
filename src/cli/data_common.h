// What the data commands share: which files, of which format, and how they tell how far they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "cli/command.h"
#include "data/open.h"

namespace trainyard::cli {

// PATHS... and what has to be said of them.
class RecordFileFlags {
 public:
  void Declare(Flags& flags);
  const std::vector<std::string>& paths() const { return paths_; }
  // Usage errors.
  absl::StatusOr<data::OpenOptions> Options() const;

 private:
  std::vector<std::string> paths_;
  std::string format_ = "auto";
  std::string delimiter_ = ",";
  bool skip_header_ = false;
  bool no_quotes_ = false;
};

// A line on standard error that is written over while something goes on. Nothing where that is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether enough time has gone by to show something new.
  bool Due();
  void Show(std::string_view text);
  // Before anything else is printed.
  void Clear();

 private:
  const bool terminal_;
  SteadyTime next_;
  bool shown_ = false;
};

// "1 file", "2 files".
std::string Counted(std::uint64_t count, std::string_view what);

// "37%".
std::string Percent(std::uint64_t part, std::uint64_t whole);

}  // namespace trainyard::cli
