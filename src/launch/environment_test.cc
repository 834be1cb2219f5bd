#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/task.h"

namespace trainyard::launch {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

Lineup LineupOf(std::vector<MemberId> present) {
  Lineup lineup{.present = std::move(present), .attempt = 2};
  int last = 1;
  for (const MemberId& member : lineup.present) lineup.hosts[member] = "10.0.0." + std::to_string(last++);
  return lineup;
}

const Lineup kWorkers = LineupOf({{Role::kWorker, 0}, {Role::kWorker, 1}});
const Lineup kServers = LineupOf(
    {{Role::kPs, 0}, {Role::kChief, 0}, {Role::kWorker, 0}, {Role::kWorker, 1}, {Role::kEvaluator, 0}});

TEST(TfConfig, NamesAllWorkersAndWhichOneThisIs) {
  EXPECT_EQ(TfConfig(kWorkers, {Role::kWorker, 1}),
            R"({"cluster":{"worker":["10.0.0.1:2222","10.0.0.2:2222"]},"task":{"type":"worker","index":1}})");
}

TEST(TfConfig, HasNoGapsWhereMembersAreMissing) {
  EXPECT_EQ(TfConfig(LineupOf({{Role::kWorker, 1}, {Role::kWorker, 4}}), {Role::kWorker, 4}),
            R"({"cluster":{"worker":["10.0.0.1:2222","10.0.0.2:2222"]},"task":{"type":"worker","index":1}})");
}

TEST(TfConfig, HasTheEvaluatorInNobodysClusterButItsOwn) {
  EXPECT_EQ(TfConfig(kServers, {Role::kPs, 0}),
            R"({"cluster":{"chief":["10.0.0.2:2222"],"worker":["10.0.0.3:2222","10.0.0.4:2222"],)"
            R"("ps":["10.0.0.1:2222"]},"task":{"type":"ps","index":0}})");
  EXPECT_EQ(
      TfConfig(kServers, {Role::kEvaluator, 0}),
      R"({"cluster":{"chief":["10.0.0.2:2222"],"worker":["10.0.0.3:2222","10.0.0.4:2222"],)"
      R"("ps":["10.0.0.1:2222"],"evaluator":["10.0.0.5:2222"]},"task":{"type":"evaluator","index":0}})");
}

TEST(TfConfig, WritesAddressesOfSixInBrackets) {
  Lineup lineup = LineupOf({{Role::kWorker, 0}});
  lineup.hosts[{Role::kWorker, 0}] = "fd00::7";
  EXPECT_EQ(TfConfig(lineup, {Role::kWorker, 0}),
            R"({"cluster":{"worker":["[fd00::7]:2222"]},"task":{"type":"worker","index":0}})");
}

TEST(EnvironmentOf, RanksTheChiefBeforeTheWorkersAndNobodyElse) {
  const TaskSpec spec{.name = "t", .strategy = Strategy::kParameterServer};
  const auto chief = EnvironmentOf(spec, kServers, {Role::kChief, 0});
  EXPECT_THAT(chief, Contains(Pair("RANK", "0")));
  EXPECT_THAT(chief, Contains(Pair("WORLD_SIZE", "3")));
  EXPECT_THAT(chief, Contains(Pair("NUM_WORKERS", "3")));
  EXPECT_THAT(chief, Contains(Pair("GRPC_FAIL_FAST", "use_caller")));
  const auto worker = EnvironmentOf(spec, kServers, {Role::kWorker, 1});
  EXPECT_THAT(worker, Contains(Pair("RANK", "2")));
  EXPECT_THAT(worker, Contains(Pair("MASTER_ADDR", "10.0.0.2")));
  EXPECT_THAT(worker, Contains(Pair("MASTER_PORT", "29500")));
  EXPECT_THAT(worker, Contains(Pair("TRAINYARD_ATTEMPT", "2")));
  for (const Role role : {Role::kPs, Role::kEvaluator})
    EXPECT_THAT(EnvironmentOf(spec, kServers, {role, 0}), Not(Contains(Key("RANK"))));
}

TEST(EnvironmentOf, KeepsWhatTheUserHasSet) {
  const TaskSpec spec{.name = "t", .env = {{"MASTER_PORT", "1"}, {"EPOCHS", "3"}}};
  const auto env = EnvironmentOf(spec, kWorkers, {Role::kWorker, 0});
  EXPECT_THAT(env, Contains(Pair("MASTER_PORT", "1")));
  EXPECT_THAT(env, Contains(Pair("EPOCHS", "3")));
}

}  // namespace
}  // namespace trainyard::launch
