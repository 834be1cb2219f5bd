#include "data/recordio/snappy_frames.h"

#include <snappy.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/text.h"
#include "data/endian.h"

namespace trainyard::data {
namespace {

constexpr std::string_view kMark("\xff\x06\x00\x00sNaPpY", 10);
constexpr std::size_t kFrameHeaderBytes = 4;
constexpr std::size_t kChecksumBytes = 4;

constexpr std::uint32_t kPackedFrame = 0x00;
constexpr std::uint32_t kStoredFrame = 0x01;
constexpr std::uint32_t kFirstSkippedFrame = 0x80;
constexpr std::uint32_t kMarkFrame = 0xff;

// A block that is shorter is never worth packing; the encoders that we agree with do not try.
constexpr std::size_t kLeastPacked = 17;

std::uint32_t MaskedChecksum(std::string_view bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

}  // namespace

bool SnappyFrameReader::Next(SnappyFrame& frame) {
  while (next_ < stream_.size()) {
    offset_ = next_;
    const std::string_view rest = stream_.substr(offset_);
    if (offset_ == 0 && !rest.starts_with(kMark)) return Fail("the snappy data does not begin with its mark");
    if (rest.size() < kFrameHeaderBytes) return Fail("the header of a snappy frame is cut");
    const std::uint32_t header = LoadLittle32(rest.data());
    const std::uint32_t type = header & 0xffU;
    const std::uint32_t length = header >> 8U;
    if (length > rest.size() - kFrameHeaderBytes) return Fail("a snappy frame is cut");
    const std::string_view body = rest.substr(kFrameHeaderBytes, length);
    next_ += kFrameHeaderBytes + length;
    if (type == kPackedFrame || type == kStoredFrame) return ReadData(body, type == kPackedFrame, frame);
    if (type == kMarkFrame) {
      if (!rest.starts_with(kMark)) return Fail("the mark of the snappy data is wrong");
    } else if (type < kFirstSkippedFrame) {
      return Fail(StrCat("a snappy frame has the unknown type ", type));
    }
  }
  return false;
}

bool SnappyFrameReader::ReadData(std::string_view body, bool packed, SnappyFrame& frame) {
  if (body.size() < kChecksumBytes) return Fail("a snappy frame has no checksum");
  frame.checksum = LoadLittle32(body.data());
  frame.packed = packed;
  body.remove_prefix(kChecksumBytes);
  frame.block = {.body = body, .unpacked = body.size()};
  if (packed && !ParseSnappyBlock(body, frame.block))
    return Fail("a snappy frame does not say how long it is");
  if (frame.block.unpacked > kMaxFrameBytes) {
    return Fail(StrCat("a snappy frame says that it has ", frame.block.unpacked, " bytes"));
  }
  return true;
}

bool SnappyFrameReader::Fail(std::string_view what) {
  status_ = absl::DataLossError(std::string(what));
  next_ = stream_.size();
  return false;
}

absl::Status SnappyUnpacker::Add(const SnappyFrame& frame, char* out) {
  frames_[held_] = {.frame = frame, .out = out};
  if (frame.packed) (first_ == kNone ? first_ : second_) = held_;
  ++held_;
  return second_ != kNone || held_ == kMostHeld ? Flush() : absl::OkStatus();
}

// What is written behind the first block by its last steps is not yet there, so it may be anything; the
// second block is therefore unpacked elsewhere.
bool SnappyUnpacker::UnpackBlocks() {
  if (first_ == kNone) return true;
  const Held& first = frames_[first_];
  if (second_ == kNone) return UnpackSnappyBlock(first.frame.block, first.out);
  aside_.Reserve(kMaxFrameBytes + kSnappySlop);
  return UnpackSnappyBlocks(first.frame.block, first.out, frames_[second_].frame.block, aside_.data());
}

absl::Status SnappyUnpacker::Flush() {
  if (!UnpackBlocks()) return absl::DataLossError("a snappy frame cannot be unpacked");
  for (std::size_t i = 0; i < held_; ++i) {
    const auto& [frame, out] = frames_[i];
    const std::size_t size = frame.block.unpacked;
    if (i != first_) std::memcpy(out, i == second_ ? aside_.data() : frame.block.body.data(), size);
    if (MaskedChecksum({out, size}) != frame.checksum) {
      return absl::DataLossError("the checksum of a snappy frame does not match");
    }
  }
  held_ = 0;
  first_ = second_ = kNone;
  return absl::OkStatus();
}

void AppendSnappyMark(std::string& out) { out += kMark; }

void AppendSnappyFrames(std::string_view bytes, std::string& out) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxFrameBytes))) {
    const std::string_view block = bytes.substr(0, kMaxFrameBytes);
    const std::size_t start = out.size();
    const std::size_t body = start + kFrameHeaderBytes + kChecksumBytes;
    std::size_t length = block.size();
    if (block.size() >= kLeastPacked) {
      out.resize(body + snappy::MaxCompressedLength(block.size()));
      snappy::RawCompress(block.data(), block.size(), out.data() + body, &length);
    }
    const bool packed = length < block.size() - block.size() / 8;
    if (!packed) {
      length = block.size();
      out.resize(body);
      out += block;
    }
    out.resize(body + length);
    StoreLittle32((packed ? kPackedFrame : kStoredFrame) | static_cast<std::uint32_t>(length + 4) << 8U,
                  out.data() + start);
    StoreLittle32(MaskedChecksum(block), out.data() + start + kFrameHeaderBytes);
  }
}

}  // namespace trainyard::data
