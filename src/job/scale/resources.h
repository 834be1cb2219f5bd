// Amounts of what nodes have and pods take, by name: "cpu", "memory", "nvidia.com/gpu".
#pragma once

#include <cstdint>
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
  void Add(const std::string& name, std::int64_t amount) { amounts_[name] += amount; }
  void Add(const Resources& other, std::int64_t times = 1) {
    for (const auto& [name, amount] : other.amounts_) amounts_[name] += amount * times;
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
  std::map<std::string, std::int64_t, std::less<>> amounts_;
};

}  // namespace trainyard::job::scale
