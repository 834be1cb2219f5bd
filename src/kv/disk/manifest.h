// Which segment files make up a store, in order; replaced as a whole, so it is always one of two whole
// truths.
//
//   trainyard-store 1
//   segment 3 size 1048576 end 1048320
//   segment 4 size 2097152 active
//   checksum 5f2d09aa
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv/disk/file_system.h"

namespace trainyard::kv {

struct ManifestEntry {
  std::uint32_t id = 0;
  std::uint64_t size = 0;  // of the file
  std::uint64_t end = 0;   // of its records; 0: it is the active one, which must be the last
  bool operator==(const ManifestEntry&) const = default;
};
using Manifest = std::vector<ManifestEntry>;

std::string Print(const Manifest& manifest);
// DataLoss if it is damaged, FailedPrecondition if a newer version wrote it.
absl::StatusOr<Manifest> ParseManifest(std::string_view text);

// NotFound if the folder has none.
absl::StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& folder);
// Durable when it returns OK. After an error the old one stands, or, if the error is DataLoss, either.
absl::Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest);

}  // namespace trainyard::kv
