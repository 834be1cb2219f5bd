// Memory that a cursor unpacks into, and uses again for the next chunk and the next file.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
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
    Bytes larger(static_cast<char*>(::operator new(capacity, kAlignment)));
    // What is large is gone through from end to end: in pages of 4 KiB, getting them takes an eighth of the
    // time that unpacking takes. Only advice.
    if (capacity >= kLarge) (void)::madvise(larger.get(), capacity, MADV_HUGEPAGE);
    if (kept > 0) std::memcpy(larger.get(), bytes_.get(), kept);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

 private:
  static constexpr std::size_t kLarge = 4 << 20;
  static constexpr std::align_val_t kAlignment{4096};
  struct Delete {
    void operator()(char* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  using Bytes = std::unique_ptr<char, Delete>;

  Bytes bytes_;
  std::size_t capacity_ = 0;
};

struct Scratch {
  ByteBuffer packed;
  ByteBuffer unpacked;
  ByteBuffer aside;  // a frame, before it is put where it belongs
  std::vector<std::uint32_t> offsets;
};

}  // namespace trainyard::data
