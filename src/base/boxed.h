// A value that mostly is not there, and then takes eight bytes, where an optional takes room for all of it.
#pragma once

#include <memory>
#include <utility>

namespace trainyard {

// Copies are copies of the value, and equal values are equal.
template <typename T>
class Boxed {
 public:
  Boxed() = default;                                                 // nothing
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT: as an optional is made
  Boxed(const Boxed& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed&& other) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Boxed() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  friend bool operator==(const Boxed& a, const Boxed& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace trainyard
