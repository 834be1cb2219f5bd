// The framing format of snappy, which RecordIO packs chunks with: a mark at the begin, then frames of at most
// 64 KiB (unpacked), each with its own checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "data/recordio/snappy_block.h"

namespace trainyard::data {

inline constexpr std::size_t kMaxFrameBytes = 65536;  // unpacked

// One frame that has data.
struct SnappyFrame {
  SnappyBlock block;           // or the bytes themselves; unpacked at most kMaxFrameBytes
  std::uint32_t checksum = 0;  // masked, of what it unpacks to
  bool packed = false;
};

// Goes through the frames of a stream without unpacking them.
class SnappyFrameReader {
 public:
  explicit SnappyFrameReader(std::string_view stream) : stream_(stream) {}

  // False at the end, and when the stream is damaged.
  bool Next(SnappyFrame& frame);
  // DataLoss: damaged. It says what, and offset() where.
  const absl::Status& status() const { return status_; }
  // Where the frame that Next() has looked at begins.
  std::uint64_t offset() const { return offset_; }

 private:
  bool Fail(std::string_view what);
  bool ReadData(std::string_view body, bool packed, SnappyFrame& frame);

  std::string_view stream_;
  std::uint64_t offset_ = 0;
  std::uint64_t next_ = 0;
  absl::Status status_;
};

// Writes frame.block.unpacked bytes; it may read and write kSnappySlop bytes more. DataLoss: damaged, or the
// checksum is another one.
absl::Status Unpack(const SnappyFrame& frame, char* out);

// Every stream begins with this.
void AppendSnappyMark(std::string& out);
// The bytes as frames of their own: no frame for no bytes. Packed where that saves an eighth.
void AppendSnappyFrames(std::string_view bytes, std::string& out);

}  // namespace trainyard::data
