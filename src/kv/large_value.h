// Values above the store's request limit, in chunks that appear and vanish as one:
//
//   KEY                            a head that names the generation, its number of chunks, its size and
//   checksum KEY/.chunk/GENERATION/000000   the chunks, written before the head that names them
//
// A reader reads head and chunks at one revision, so it never mixes two generations. What a writer that died
// left behind is deleted by the next one that writes the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "kv/store.h"

namespace trainyard::kv {

struct LargeValue {
  std::string value;
  Revision mod_revision = 0;  // of the head: what PutLarge() expects
};

// Stores `value` if the head was last modified at `expected` (0: does not exist; unset: whatever it is) and
// returns the new head's revision. Aborted: it has been changed since.
absl::StatusOr<Revision> PutLarge(Store& store, IdSource& ids, std::string_view key, std::string_view value,
                                  std::optional<Revision> expected = std::nullopt);

// Also returns a value that was put whole. DataLoss: chunks are missing or are not what was put.
absl::StatusOr<std::optional<LargeValue>> GetLarge(Store& store, std::string_view key);

// The head and all chunks; false if there was nothing of either.
absl::StatusOr<bool> DeleteLarge(Store& store, std::string_view key);

}  // namespace trainyard::kv
