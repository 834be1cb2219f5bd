// Amounts of what nodes have and pods take, by name: "cpu", "memory", "nvidia.com/gpu".
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace trainyard::job::scale {

class Resources {
 public:
  Resources() = default;
  Resources(std::initializer_list<std::pair<const std::string, std::int64_t>> amounts) : amounts_(amounts) {}

  std::int64_t Get(std::string_view name) const {
    const auto found = amounts_.find(name);
    return found == amounts_.end() ? 0 : found->second;
  }
  // More than fits is the most that does.
  void Add(const std::string& name, std::int64_t amount) {
    std::int64_t& sum = amounts_[name];
    if (__builtin_add_overflow(sum, amount, &sum)) sum = amount > 0 ? kMost : -kMost;
  }
  void Add(const Resources& other, std::int64_t times = 1) {
    for (const auto& [name, amount] : other.amounts_) {
      std::int64_t product = 0;
      if (__builtin_mul_overflow(amount, times, &product))
        product = (amount > 0) == (times > 0) ? kMost : -kMost;
      Add(name, product);
    }
  }
  // Whether there is as much of everything as the other has.
  bool Holds(const Resources& other) const {
    for (const auto& [name, amount] : other.amounts_) {
      if (amount > 0 && Get(name) < amount) return false;
    }
    return true;
  }
  const std::map<std::string, std::int64_t, std::less<>>& amounts() const { return amounts_; }
  bool operator==(const Resources&) const = default;

 private:
  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::map<std::string, std::int64_t, std::less<>> amounts_;
};

}  // namespace trainyard::job::scale
