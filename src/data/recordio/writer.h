// Writing RecordIO files, in the new layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "data/recordio/chunk.h"
#include "data/recordio/layout.h"

namespace trainyard::data {

inline constexpr std::uint64_t kDefaultChunkBytes = 32 << 20;

struct RecordIoWriterOptions {
  Compressor compressor = Compressor::kSnappy;
  // How many bytes the records of a chunk have at most, without their lengths; 0 for the default. Every
  // record has fewer. A chunk also ends before it unpacks to more than kMaxChunkBytes, so that readers take
  // it.
  std::uint64_t max_chunk_bytes = kDefaultChunkBytes;
};

// Used by one thread. The file is made under another, hidden name, so that nobody reads half of it, and
// gets its own when it is complete. A process that is killed leaves the hidden one behind.
class RecordIoWriter {
 public:
  // An error names the file. InvalidArgument: a chunk may not be so large.
  static absl::StatusOr<std::unique_ptr<RecordIoWriter>> Create(const std::string& path,
                                                                RecordIoWriterOptions options = {});
  // Without Close(), no file is made and one that was there stays.
  ~RecordIoWriter();
  RecordIoWriter(const RecordIoWriter&) = delete;
  RecordIoWriter& operator=(const RecordIoWriter&) = delete;

  // InvalidArgument: the record is too large for any chunk; it is left out and others may follow. After any
  // other error, every call returns that error.
  absl::Status Write(std::string_view record);

  // Writes what is still held, makes it durable and gives the file its name, in place of one that had it. The
  // last call.
  absl::Status Close();

  // Of the file as it is now: what was added last may not be in it yet.
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  RecordIoWriter(std::string path, std::string draft, Fd file, RecordIoWriterOptions options);
  absl::Status Flush();
  absl::Status Publish();

  const std::string path_;
  const std::string draft_;  // its name until it is closed
  Fd file_;
  const std::uint64_t max_chunk_bytes_;
  ChunkEncoder chunk_;
  std::uint64_t written_bytes_ = 0;
  absl::Status broken_;
};

}  // namespace trainyard::data
