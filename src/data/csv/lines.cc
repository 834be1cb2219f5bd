#include "data/csv/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "data/damage.h"

namespace trainyard::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The next place of the byte, or the text's end.
std::size_t Find(std::string_view text, std::size_t from, char byte) {
  const void* found =
      from < text.size() ? std::memchr(text.data() + from, byte, text.size() - from) : nullptr;
  return found == nullptr ? text.size()
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Behind the quote that closes the one at `open`, or npos.
std::size_t SkipQuoted(std::string_view text, std::size_t open) {
  std::size_t at = open + 1;
  while (true) {
    at = Find(text, at, '"');
    if (at == text.size()) return std::string_view::npos;
    if (at + 1 == text.size() || text[at + 1] != '"') return at + 1;
    at += 2;
  }
}

// The first line feed behind `start` that is not between quotes, or the text's end; npos if the text ends
// between quotes. `feed` is the first one of all.
std::size_t SkipQuotes(std::string_view text, std::size_t start, std::size_t feed, char delimiter) {
  std::size_t at = start;
  while (true) {
    const std::size_t quote = Find(text.substr(0, feed), at, '"');
    if (quote == feed) return feed;
    if (quote != start && text[quote - 1] != delimiter) {
      at = quote + 1;
      continue;
    }
    at = SkipQuoted(text, quote);
    if (at == std::string_view::npos) return at;
    if (at > feed) feed = Find(text, at, '\n');
  }
}

}  // namespace

CsvLine FindLine(std::string_view text, std::size_t start, const CsvOptions& options) {
  const std::size_t first = Find(text, start, '\n');
  const std::size_t feed = options.quotes ? SkipQuotes(text, start, first, options.delimiter) : first;
  if (feed == std::string_view::npos) return {.end = text.size(), .next = text.size(), .closed = false};
  const bool ended = feed < text.size();
  CsvLine line{.end = feed, .next = ended ? feed + 1 : feed, .breaks = ended ? 1U : 0U};
  if (ended && feed > start && text[feed - 1] == '\r') --line.end;
  if (feed != first) {
    line.breaks = static_cast<std::uint64_t>(std::count(text.data() + start, text.data() + line.next, '\n'));
  }
  return line;
}

void Advance(CsvIndex::Place& place, const CsvLine& line) {
  ++place.record;
  place.offset = line.next;
  place.line += line.breaks;
}

CsvIndex::Place CsvBegin(std::string_view text) {
  return {.offset = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0};
}

absl::Status NeverClosed(const CsvIndex::Place& place) {
  return DamageAt(place.offset, StrCat("a quote is opened in the record of line ", place.line,
                                       " and never closed: close it, or turn quotes off"));
}

absl::StatusOr<CsvIndex> CsvIndex::Build(std::string_view text, const CsvOptions& options) {
  CsvIndex index;
  Place at = CsvBegin(text);
  bool header = options.header;
  while (at.offset < text.size()) {
    const CsvLine line = FindLine(text, at.offset, options);
    if (!line.closed) return NeverClosed(at);
    if (!header && at.record % kStride == 0) index.places_.push_back(at);
    Advance(at, line);
    if (std::exchange(header, false)) at.record = 0;
  }
  index.count_ = at.record;
  return index;
}

}  // namespace trainyard::data
