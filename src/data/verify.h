// Reading the whole of a record file to find all damage to it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "data/format.h"
#include "data/open.h"

namespace trainyard::data {

// Bytes [begin, end) of a file that no record can be read from.
struct Damage {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string message;  // "damaged at byte 30: the checksum of the chunk does not match"
  bool operator==(const Damage&) const = default;
};

struct Verification {
  Format format = Format::kAuto;
  std::uint64_t bytes = 0;    // of the file
  std::uint64_t chunks = 0;   // whole ones; of RecordIO
  std::uint64_t records = 0;  // whole ones
  std::uint64_t damages = 0;
  bool operator==(const Verification&) const = default;
};

struct VerifyCalls {
  absl::FunctionRef<void(const Damage&)> damage;
  absl::FunctionRef<void(std::uint64_t)> progress;  // how many bytes of the file have been read, now and then
};

// Reads every byte and verifies every checksum. What counts as damage:
//   recordio   a chunk whose header, checksum or records are wrong. Reading goes on with the next chunk:
//   where the
//              header says, or else at the next bytes that are like a chunk. A file that was cut exactly
//              between two chunks is a shorter file, and nobody can tell.
//   csv        a quote that is wrong or never closed, or another number of columns than the first record has
//   idx        a header that is wrong, another size than it says, a gzip checksum
// Errors name the file: it cannot be read, cannot be told what it is, or was changed meanwhile.
absl::StatusOr<Verification> VerifyFile(const std::string& path, const OpenOptions& options,
                                        const VerifyCalls& calls);

}  // namespace trainyard::data
