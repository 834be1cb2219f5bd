// The bytes that one request may make the server add to what was sent and what is stored: defaults, copies of
// a patch, names of fields in messages, cells of a table. All of them draw from the one budget, so that a
// small request cannot fill the memory by any of them, nor by several together.
#pragma once

#include <cstddef>

#include "base/document.h"

namespace trainyard::apiserver {

class Budget {
 public:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;

  explicit Budget(std::size_t bytes = kBytes) : left_(bytes) {}

  // False: fewer bytes are left, and none of them is taken.
  bool Take(std::size_t bytes) {
    overdrawn_ |= bytes > left_;
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  // About what a copy of the document takes.
  bool Take(const Document& copied) { return Take(EstimateSize(copied, left_)); }
  // A request that reads much may show as much.
  void Add(std::size_t bytes) { left_ += bytes; }

  std::size_t left() const { return left_; }
  // Something did not fit.
  bool overdrawn() const { return overdrawn_; }

 private:
  std::size_t left_;
  bool overdrawn_ = false;
};

}  // namespace trainyard::apiserver
