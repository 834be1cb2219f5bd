// The autoscaler's rule: how many pods each elastic role is to have, given what the cluster has and what all
// pods take of it, also other people's.
//
// The fulfilment of a role is (now - least) / (most - least). While there is room, the least fulfilled grows
// by one pod at a time; while more is asked for than may be, or a job waits for room, the most fulfilled
// shrinks. A role whose last change has not settled is left alone, unless somebody waits.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::job::scale {

// Amounts of what nodes have and pods take, by name: "cpu", "memory", "nvidia.com/gpu".

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

struct Node {
  std::string name;
  Resources free;        // what it has and the pods that are bound to it have not taken
  Resources leaving;     // what pods that are told to go still take
  std::string only_for;  // pods that ask for this alone go there; empty: all
  bool operator==(const Node&) const = default;
};

struct Cluster {
  Resources total;      // of all nodes that take pods
  Resources requested;  // by all pods that stay or are to come, bound or not
  std::vector<Node> nodes;
  bool operator==(const Cluster&) const = default;
};

// A role of a job whose size is the autoscaler's.
struct ElasticRole {
  std::string job;   // "default/mnist"
  std::string role;  // its name
  int least = 1;
  int most = 1;
  int now = 1;          // as it was last decided
  Resources each;       // what one pod takes
  bool settled = true;  // as many pods run as were decided
  bool waits = false;   // none of the job's pods has a node
  // The nodes of its pods by index; empty: it has none yet.
  std::vector<std::string> pods;
  bool operator==(const ElasticRole&) const = default;
};

// Others that wait for room: jobs that are not elastic, and other people's pods.
struct WaitingPods {
  std::string job;
  std::vector<Resources> pods;
  bool operator==(const WaitingPods&) const = default;
};

struct Change {
  std::string job;
  std::string role;
  int from = 0;
  int to = 0;
  std::string why;
  bool operator==(const Change&) const = default;
};

struct Limits {
  double max_load = 0.97;  // of the cpu; accelerators and memory may be taken to the last one
};

// (now - least) / (most - least); 1 if there is nothing between them.
double Fulfilment(const ElasticRole& role);

// What is over the limits: "cpu"; empty: nothing.
std::string FindOverload(const Cluster& cluster, const Limits& limits);

// The changes to be made now, in the order of the roles. Never below the least, never above the most.
std::vector<Change> PlanScaling(const Cluster& cluster, const std::vector<ElasticRole>& roles,
                                const std::vector<WaitingPods>& waiting, const Limits& limits);

}  // namespace trainyard::job::scale
