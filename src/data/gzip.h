// gzip in memory: unpacking as much as is asked for and no more, and packing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::data {

// More than this many bytes from one cannot be had: by this a claimed size is known to be false.
inline constexpr std::uint64_t kMaxGzipRatio = 1032;

bool LooksLikeGzip(std::string_view bytes);

// Unpacks what may be several gzip members one behind the other; nothing else may be behind them.
class GzipReader {
 public:
  // `packed` outlives it.
  explicit GzipReader(std::string_view packed);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // The next `size` bytes; fewer only when there are no more, and then every checksum has been verified.
  // DataLoss: damaged, at offset().
  absl::StatusOr<std::size_t> Read(char* out, std::size_t size);
  // How many packed bytes have been looked at.
  std::uint64_t offset() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Appends one gzip member to a text.
class GzipWriter {
 public:
  // `out` outlives it, and may grow by others only before the first Add().
  explicit GzipWriter(std::string& out);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void Add(std::string_view bytes);
  // Once; the member is complete.
  void Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::data
