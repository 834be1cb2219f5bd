// Reads the log of one run of a container as a client asked for it, across the files that it was cut into and
// while it is still written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/fd.h"

namespace trainyard::node {

struct LogView {
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<absl::Time> since;
  std::optional<std::int64_t> limit_bytes;
};

// Used by one thread at a time.
class LogReader {
 public:
  // `path` is the file being written; PATH.1, PATH.2, … are its older parts.
  LogReader(std::string path, const LogView& view);

  // Finds where to begin. NotFound: there is no such log.
  absl::Status Open();

  enum class Progress : std::uint8_t {
    kMore,    // there may be more at once
    kCaught,  // all that has been written so far
    kFull,    // the limit is reached: nothing follows
  };
  // Appends about `bytes` of what comes next to `out`.
  Progress Read(std::size_t bytes, std::string& out);

 private:
  // The entry at the front of `line`, as the client wants to see it.
  void Print(std::string_view line, std::string& out);
  // The part that was written after the one being read.
  std::optional<unsigned> NextPart() const;
  // Goes on with it. False: there is none.
  bool OpenNext();
  bool OpenAt(unsigned part, std::int64_t offset);

  const std::string path_;
  const bool timestamps_;
  const std::string since_;  // as entries have it; empty: from the beginning
  const std::optional<std::int64_t> tail_lines_;
  std::optional<std::int64_t> room_;  // bytes that may still be sent
  Fd file_;
  std::int64_t offset_ = 0;
  std::string torn_;  // the beginning of an entry that is not whole yet
  bool at_line_start_ = true;
};

}  // namespace trainyard::node
