// Unpacking one block of snappy. Ours, because the distribution's library takes up to twice the time for
// blocks of the size of records: it calls memmove for every few bytes that it copies. Packing is left to the
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard::data {

// More than this many bytes from one cannot be had: three bytes of a block copy 64 at most.
inline constexpr std::uint64_t kMaxSnappyRatio = 22;

// Copying is done in steps that may go beyond the last byte: so many more bytes than the block has can be
// read behind it, and written behind what it unpacks to.
inline constexpr std::size_t kSnappySlop = 64;

struct SnappyBlock {
  std::string_view body;       // without the length before it
  std::uint64_t unpacked = 0;  // bytes that it says it has; at most kMaxSnappyRatio times its size
};
// False if it does not begin like a block, or says what cannot be.
bool ParseSnappyBlock(std::string_view packed, SnappyBlock& block);

// Writes block.unpacked bytes. False if the block is damaged; then they are anything.
bool UnpackSnappyBlock(const SnappyBlock& block, char* out);

// The same of two at once, each to a place of its own. Where an element ends is known only when the one
// before it has been read, and while a processor waits for one block it can go on with the other.
bool UnpackSnappyBlocks(const SnappyBlock& one, char* out_one, const SnappyBlock& two, char* out_two);

}  // namespace trainyard::data
