#include "data/recordio/snappy_block.h"

#include <array>
#include <bit>
#include <cstring>

#include "data/endian.h"

namespace trainyard::data {
namespace {

// What the tag of an element says: it is a literal, whose bytes follow, or a copy of what was written before.
struct Element {
  std::uint8_t size = 0;     // 0: a long literal, whose size - 1 follows the tag
  std::uint8_t behind = 0;   // how many bytes of size or distance follow the tag
  std::uint8_t advance = 0;  // from this tag to the next one, unless it is a long literal
  std::int8_t copy = -1;     // all bits set, or for a literal none
  std::uint32_t far = 0;     // to be added to the distance; of a literal, more than any step
};

constexpr Element ElementOf(std::uint32_t tag) {
  const auto high = static_cast<std::uint8_t>(tag >> 2U);
  const auto size = static_cast<std::uint8_t>(high + 1);
  switch (tag & 3U) {
    case 0:
      if (high >= 60) return {.behind = static_cast<std::uint8_t>(high - 59), .copy = 0};
      return {.size = size, .advance = static_cast<std::uint8_t>(1 + size), .copy = 0, .far = 1 << 16};
    case 1:
      return {.size = static_cast<std::uint8_t>(4 + (high & 7U)),
              .behind = 1,
              .advance = 2,
              .far = tag >> 5U << 8U};
    case 2:
      return {.size = size, .behind = 2, .advance = 3};
    default:
      return {.size = size, .behind = 4, .advance = 5};
  }
}

constexpr std::array<Element, 256> AllElements() {
  std::array<Element, 256> elements{};
  for (std::uint32_t tag = 0; tag < 256; ++tag) elements[tag] = ElementOf(tag);
  return elements;
}
constexpr std::array<Element, 256> kElements = AllElements();
constexpr std::uint32_t kMasks[] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff};

// A step of so many bytes, whether they overlap or not.
template <std::size_t kStep>
void CopyStep(const char* from, char* to) {
  char bytes[kStep];
  std::memcpy(bytes, from, kStep);
  std::memcpy(to, bytes, kStep);
}

// Where to copy from, without a branch.
const char* Choose(std::uintptr_t copied, const char* before, std::size_t distance, const char* literal) {
  return reinterpret_cast<const char*>(((reinterpret_cast<std::uintptr_t>(before) - distance) & copied) |
                                       (reinterpret_cast<std::uintptr_t>(literal) & ~copied));
}

// At most 64 bytes; always so many, because how many there are cannot be guessed either.
void CopySteps(const char* from, char* to) {
  for (std::size_t done = 0; done < 64; done += 16) CopyStep<16>(from + done, to + done);
}

// By distance: what a number of that many bytes is to be multiplied by to fill eight bytes with it, and how
// many of the eight are whole repetitions.
struct Repetition {
  std::uint64_t factor = 0;
  std::size_t bytes = 0;
};
static_assert(std::endian::native == std::endian::little);
constexpr Repetition kRepetitions[] = {
    {},
    {.factor = 0x0101010101010101, .bytes = 8},
    {.factor = 0x0001000100010001, .bytes = 8},
    {.factor = 0x0001000001000001, .bytes = 6},
    {.factor = 0x0000000100000001, .bytes = 8},
    {.factor = 0x0000010000000001, .bytes = 5},
    {.factor = 0x0001000000000001, .bytes = 6},
    {.factor = 0x0100000000000001, .bytes = 7},
};

// `size` bytes, at most 64, of which those that are beyond the distance repeat what was just written.
void CopyBack(std::size_t distance, std::size_t size, char* to) {
  const char* const from = to - distance;
  if (distance >= 16) {
    CopySteps(from, to);
  } else if (distance >= 8) {
    for (std::size_t done = 0; done < size; done += 8) CopyStep<8>(from + done, to + done);
  } else {
    const auto [factor, bytes] = kRepetitions[distance];
    std::uint64_t repeated = 0;
    std::memcpy(&repeated, from, 8);
    repeated = (repeated & ((std::uint64_t{1} << (8 * distance)) - 1)) * factor;
    for (std::size_t done = 0; done < size; done += bytes) std::memcpy(to + done, &repeated, 8);
  }
}

// How far a block is unpacked.
struct Unpacking {
  Unpacking(const SnappyBlock& block, char* room)
      : in(block.body.data()),
        in_end(in + block.body.size()),
        out(room),
        to(room),
        to_end(room + block.unpacked) {}

  const char* in;
  const char* const in_end;
  char* const out;
  char* to;
  char* const to_end;
};

// One element that is long, or a copy of what it writes itself.
[[gnu::always_inline]] inline bool UnpackLong(const Element& element, std::uint32_t number, Unpacking& at) {
  const std::size_t distance = std::size_t{number} + element.far;
  std::size_t size = element.size;
  at.in += 1 + element.behind;
  if (at.in > at.in_end) return false;
  if (size == 0) size = number + std::size_t{1};
  if (size > static_cast<std::size_t>(at.to_end - at.to)) return false;
  if (element.copy == 0) {
    if (size > static_cast<std::size_t>(at.in_end - at.in)) return false;
    size <= 64 ? CopySteps(at.in, at.to) : static_cast<void>(std::memcpy(at.to, at.in, size));
    at.in += size;
  } else {
    if (distance == 0 || distance > static_cast<std::size_t>(at.to - at.out)) return false;
    CopyBack(distance, size, at.to);
  }
  at.to += size;
  return true;
}

// The next element; there is one. False if it is damaged.
[[gnu::always_inline]] inline bool UnpackElement(Unpacking& at) {
  const Element& element = kElements[ByteAt(at.in, 0)];
  const std::uint32_t number = LoadLittle32(at.in + 1) & kMasks[element.behind];
  const std::size_t distance = std::size_t{number} + element.far;
  const std::size_t size = element.size;
  // Both kinds in one way as far as it goes: which of them comes next is what a processor cannot guess.
  if (size - 1 >= 16 || size > distance) [[unlikely]]
    return UnpackLong(element, number, at);
  const char* const next = at.in + element.advance;
  if (next > at.in_end || size > static_cast<std::size_t>(at.to_end - at.to)) return false;
  const auto copied = static_cast<std::uintptr_t>(std::intptr_t{element.copy});
  if ((distance & copied) > static_cast<std::size_t>(at.to - at.out)) return false;
  CopyStep<16>(Choose(copied, at.to, distance, at.in + 1), at.to);
  at.in = next;
  at.to += size;
  return true;
}

inline bool Finish(Unpacking& at) {
  while (at.in < at.in_end) {
    if (!UnpackElement(at)) return false;
  }
  return at.to == at.to_end;
}

}  // namespace

bool ParseSnappyBlock(std::string_view packed, SnappyBlock& block) {
  std::uint64_t unpacked = 0;
  for (std::uint32_t i = 0; i < 5 && i < packed.size(); ++i) {
    const std::uint64_t byte = ByteAt(packed.data(), static_cast<int>(i));
    unpacked |= (byte & 0x7fU) << (7 * i);
    if (byte >= 0x80) continue;
    block = {.body = packed.substr(i + 1), .unpacked = unpacked};
    return unpacked <= block.body.size() * kMaxSnappyRatio;
  }
  return false;
}

bool UnpackSnappyBlock(const SnappyBlock& block, char* out) {
  Unpacking at(block, out);
  return Finish(at);
}

bool UnpackSnappyBlocks(const SnappyBlock& one, char* out_one, const SnappyBlock& two, char* out_two) {
  Unpacking first(one, out_one);
  Unpacking second(two, out_two);
  while (first.in < first.in_end && second.in < second.in_end) {
    if (!UnpackElement(first) || !UnpackElement(second)) return false;
  }
  return Finish(first) && Finish(second);
}

}  // namespace trainyard::data
