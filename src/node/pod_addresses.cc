#include "node/pod_addresses.h"

#include "base/text.h"

namespace trainyard::node {
namespace {

constexpr std::uint16_t kFirst = 1;
constexpr std::uint16_t kLast = 65534;

}  // namespace

PodAddresses::PodAddresses(std::uint32_t seed)
    : second_(16 + seed % 64), next_(static_cast<std::uint16_t>(kFirst + seed / 64 % kLast)) {}

std::string PodAddresses::Print(std::uint16_t number) const {
  return StrCat("127.", second_, ".", number >> 8, ".", number & 255);
}

std::optional<std::string> PodAddresses::Allocate(const std::string& pod_uid) {
  if (const auto known = by_pod_.find(pod_uid); known != by_pod_.end()) return Print(known->second);
  if (by_number_.size() >= kLast) return std::nullopt;
  while (by_number_.contains(next_)) next_ = next_ == kLast ? kFirst : static_cast<std::uint16_t>(next_ + 1);
  const std::uint16_t number = next_;
  next_ = number == kLast ? kFirst : static_cast<std::uint16_t>(number + 1);
  by_pod_[pod_uid] = number;
  by_number_[number] = pod_uid;
  return Print(number);
}

bool PodAddresses::Take(const std::string& pod_uid, std::string_view address) {
  const std::vector<std::string_view> parts = Split(address, '.');
  if (parts.size() != 4 || parts[0] != "127" || ParseNumber<std::uint32_t>(parts[1]) != second_) return false;
  const auto third = ParseNumber<std::uint16_t>(parts[2]);
  const auto fourth = ParseNumber<std::uint16_t>(parts[3]);
  if (!third || !fourth || *third > 255 || *fourth > 255) return false;
  const auto number = static_cast<std::uint16_t>(*third << 8 | *fourth);
  if (number < kFirst || number > kLast) return false;
  const auto [owner, fresh] = by_number_.emplace(number, pod_uid);
  if (!fresh) return owner->second == pod_uid;
  Release(pod_uid);
  by_number_[number] = pod_uid;
  by_pod_[pod_uid] = number;
  return true;
}

void PodAddresses::Release(const std::string& pod_uid) {
  const auto known = by_pod_.find(pod_uid);
  if (known == by_pod_.end()) return;
  by_number_.erase(known->second);
  by_pod_.erase(known);
}

}  // namespace trainyard::node
