// Gives each pod an address of its own in 127.0.0.0/8, where every address is this machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::node {

// 65,000 addresses, by a number that differs from cluster to cluster, so that those of two users of one
// machine hardly meet. Not thread-safe.
class PodAddresses {
 public:
  // 127.16.0.0/16 … 127.79.0.0/16; the seed says which, and where in it the first is. Services have theirs
  // above.
  explicit PodAddresses(std::uint32_t seed);

  // The pod's address, the same each time. One that was released is given out again as late as possible.
  // Nothing: all are taken.
  std::optional<std::string> Allocate(const std::string& pod_uid);
  // The pod has it already. False: another pod has it, or it is none of this range.
  bool Take(const std::string& pod_uid, std::string_view address);
  void Release(const std::string& pod_uid);

 private:
  std::string Print(std::uint16_t number) const;

  std::uint32_t second_;
  std::uint16_t next_;
  std::map<std::string, std::uint16_t> by_pod_;
  std::map<std::uint16_t, std::string> by_number_;
};

}  // namespace trainyard::node
