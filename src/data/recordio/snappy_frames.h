// The framing format of snappy, which RecordIO packs chunks with: a mark at the begin, then frames of at most
// 64 KiB (unpacked), each with its own checksum.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "data/recordio/snappy_block.h"
#include "data/scratch.h"

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

// Unpacks frames to one behind the other, two at a time where it can.
class SnappyUnpacker {
 public:
  // `aside` outlives it, and is used by nobody else.
  explicit SnappyUnpacker(ByteBuffer& aside) : aside_(aside) {}

  // The frame's bytes are to be at `out`, which is behind those of the frames before; kSnappySlop bytes more
  // may be read and written there. They may come only with the next frame or Flush(), and are verified then.
  // DataLoss: damaged, or a checksum is another one; no more is to be added then.
  absl::Status Add(const SnappyFrame& frame, char* out);
  absl::Status Flush();
  // Whether all that was added is unpacked.
  bool empty() const { return held_ == 0; }

 private:
  struct Held {
    SnappyFrame frame;
    char* out = nullptr;
  };
  static constexpr std::size_t kMostHeld = 8;
  static constexpr std::size_t kNone = kMostHeld;

  bool UnpackBlocks();

  ByteBuffer& aside_;
  std::array<Held, kMostHeld> frames_;
  std::size_t held_ = 0;
  std::size_t first_ = kNone;   // of those that are packed
  std::size_t second_ = kNone;  // likewise; it is the last one
};

// Every stream begins with this.
void AppendSnappyMark(std::string& out);
// The bytes as frames of their own: no frame for no bytes. Packed where that saves an eighth.
void AppendSnappyFrames(std::string_view bytes, std::string& out);

}  // namespace trainyard::data
