// IDX, the format of MNIST. A file begins with two zeros, the type of its elements, the number of its
// dimensions and each dimension (32 bits, big-endian); the elements follow, row by row, and nothing else. A
// record is one item of the first dimension, its bytes as they lie in the file: numbers are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "data/record_source.h"

namespace trainyard::data {

inline constexpr std::size_t kMaxIdxHeaderBytes = 4 + 4 * 255;

struct IdxHeader {
  std::size_t bytes = 0;  // of the header itself
  std::uint32_t items = 0;
  std::uint64_t item_bytes = 0;
  ItemShape shape;
  std::uint64_t FileBytes() const { return bytes + items * item_bytes; }
};

bool LooksLikeIdx(std::string_view bytes);

// `start` is the first kMaxIdxHeaderBytes bytes of a file, or all of it. DataLoss: it is not the begin of an
// IDX file, or its items are empty or larger than a file can be; the message names the byte.
absl::StatusOr<IdxHeader> ParseIdxHeader(std::string_view start);

}  // namespace trainyard::data
