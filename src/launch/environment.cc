#include "launch/environment.h"

#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {

// "[::1]:2222"
std::string AddressOf(const Lineup& lineup, const MemberId& member, int port) {
  const std::string& host = lineup.hosts.at(member);
  const bool six = host.find(':') != std::string::npos;
  return StrCat(six ? "[" : "", host, six ? "]" : "", ":", port);
}

std::vector<MemberId> Of(const Lineup& lineup, Role role) {
  std::vector<MemberId> members;
  for (const MemberId& member : lineup.present) {
    if (member.role == role) members.push_back(member);
  }
  return members;
}

int PlaceOf(const std::vector<MemberId>& members, const MemberId& member) {
  return static_cast<int>(std::ranges::find(members, member) - members.begin());
}

// Those that compute together, by rank.
std::vector<MemberId> Ranks(const Lineup& lineup) {
  std::vector<MemberId> ranks = Of(lineup, Role::kChief);
  for (const MemberId& worker : Of(lineup, Role::kWorker)) ranks.push_back(worker);
  return ranks;
}

}  // namespace

std::string TfConfig(const Lineup& lineup, const MemberId& member) {
  Object cluster;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kPs, Role::kEvaluator}) {
    if (role == Role::kEvaluator && member.role != Role::kEvaluator) continue;
    Array addresses;
    for (const MemberId& one : Of(lineup, role))
      addresses.emplace_back(AddressOf(lineup, one, kTensorFlowPort));
    if (!addresses.empty()) cluster[Name(role)] = std::move(addresses);
  }
  return PrintJson(Object{
      {"cluster", std::move(cluster)},
      {"task", Object{{"type", Name(member.role)}, {"index", PlaceOf(Of(lineup, member.role), member)}}}});
}

std::map<std::string, std::string> EnvironmentOf(const TaskSpec& spec, const Lineup& lineup,
                                                 const MemberId& member) {
  const std::vector<MemberId> ranks = Ranks(lineup);
  std::map<std::string, std::string> env = spec.env;
  env.emplace("TF_CONFIG", TfConfig(lineup, member));
  env.emplace("NUM_WORKERS", std::to_string(ranks.size()));
  env.emplace("TRAINYARD_TASK", spec.name);
  env.emplace("TRAINYARD_MEMBER", Print(member));
  env.emplace("TRAINYARD_ATTEMPT", std::to_string(lineup.attempt));
  if (!ranks.empty()) {
    env.emplace("MASTER_ADDR", lineup.hosts.at(ranks.front()));
    env.emplace("MASTER_PORT", std::to_string(kTorchPort));
    env.emplace("WORLD_SIZE", std::to_string(ranks.size()));
  }
  if (member.role == Role::kChief || member.role == Role::kWorker) {
    env.emplace("RANK", std::to_string(PlaceOf(ranks, member)));
    env.emplace("LOCAL_RANK", "0");
    env.emplace("LOCAL_WORLD_SIZE", "1");
  }
  // Without it TensorFlow's coordinator does not hear of lost workers.
  if (spec.strategy == Strategy::kParameterServer) env.emplace("GRPC_FAIL_FAST", "use_caller");
  return env;
}

}  // namespace trainyard::launch
