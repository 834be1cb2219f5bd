// Memory that a cursor unpacks into, and uses again for the next chunk and the next file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace trainyard::data {

// Bytes whose first content is whatever was there: filling them with zeros first would cost as much as
// unpacking into them.
class ByteBuffer {
 public:
  char* data() { return bytes_.get(); }
  const char* data() const { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }

  // Room for so many; the first `kept` bytes stay.
  void Reserve(std::size_t capacity, std::size_t kept = 0) {
    if (capacity <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (kept > 0) std::memcpy(larger.get(), bytes_.get(), kept);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

struct Scratch {
  ByteBuffer packed;
  ByteBuffer unpacked;
  std::vector<std::uint32_t> offsets;
};

}  // namespace trainyard::data
