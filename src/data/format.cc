#include "data/format.h"

#include <array>

#include "base/text.h"

namespace trainyard::data {
namespace {

constexpr std::array kFormats = {Format::kAuto, Format::kRecordIo, Format::kCsv, Format::kIdx};

}  // namespace

std::string_view NameOf(Format format) {
  switch (format) {
    case Format::kAuto:
      return "auto";
    case Format::kRecordIo:
      return "recordio";
    case Format::kCsv:
      return "csv";
    case Format::kIdx:
      return "idx";
  }
  return "";
}

absl::StatusOr<Format> ParseFormat(std::string_view name) {
  for (const Format format : kFormats) {
    if (NameOf(format) == name) return format;
  }
  return absl::InvalidArgumentError(
      StrCat("unknown format '", name, "': there are auto, recordio, csv and idx"));
}

}  // namespace trainyard::data
