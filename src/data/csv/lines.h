// Where the lines of a CSV file (RFC 4180) are. A record is a line's bytes as they are, quotes and all,
// without its end ("\n" or "\r\n"); between quotes, a line's end is part of the record. An empty line is an
// empty record, and what follows the last line's end is none if it is empty. A byte order mark is not part of
// the first line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::data {

struct CsvOptions {
  char delimiter = ',';
  bool header = false;  // the first record of each file is none
  bool quotes = true;   // off: a quote is a byte like others, as in plain lines of text
};

struct CsvLine {
  std::size_t end = 0;       // of its bytes
  std::size_t next = 0;      // where the next one begins
  std::uint64_t breaks = 0;  // how many lines of the text it has, the last one not counted if it has no end
  bool closed = true;        // false: the text ends within quotes
};
// The line that begins at `start`, which is within the text. A quote counts where a field begins; elsewhere
// it is a byte like others.
CsvLine FindLine(std::string_view text, std::size_t start, const CsvOptions& options);

// Finds records by their numbers. It notes every kStride-th one, which takes a two-hundredth of the file's
// size for lines of 80 bytes, and less than the file's size for any.
class CsvIndex {
 public:
  static constexpr std::uint64_t kStride = 64;
  struct Place {
    std::uint64_t record = 0;
    std::uint64_t offset = 0;
    std::uint64_t line = 1;  // as editors count
  };

  // DataLoss: a quote is never closed; the message names its byte and line.
  static absl::StatusOr<CsvIndex> Build(std::string_view text, const CsvOptions& options);

  std::uint64_t Count() const { return count_; }
  // The last noted record at or before this one, which exists.
  const Place& Before(std::uint64_t record) const { return places_[record / kStride]; }

 private:
  std::vector<Place> places_;
  std::uint64_t count_ = 0;
};

// Where the first line begins.
CsvIndex::Place CsvBegin(std::string_view text);

// A quote is opened in the record there, and never closed.
absl::Status NeverClosed(const CsvIndex::Place& place);

// Goes on from one record to the next.
void Advance(CsvIndex::Place& place, const CsvLine& line);

}  // namespace trainyard::data
