// What a member's script finds in its environment: TF_CONFIG by TensorFlow's rules, and what PyTorch scripts
// read. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/task.h"

namespace trainyard::launch {

inline constexpr int kTensorFlowPort = 2222;
inline constexpr int kTorchPort = 29500;

// Who is in an attempt, and where: hosts by name or address.
struct Lineup {
  std::vector<MemberId> present;  // in their order
  std::map<MemberId, std::string> hosts;
  int attempt = 1;
};

// TF_CONFIG of one member. The cluster is the same for all; a member's index is its place among those of its
// role that are present, so that indexes have no gaps when some are missing. The evaluator is in nobody's
// cluster but its own.
std::string TfConfig(const Lineup& lineup, const MemberId& member);

// All variables of one member. Those of the task go before: a user's own value of one of ours is kept.
std::map<std::string, std::string> EnvironmentOf(const TaskSpec& spec, const Lineup& lineup,
                                                 const MemberId& member);

}  // namespace trainyard::launch
