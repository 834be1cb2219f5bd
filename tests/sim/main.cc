// usage: operator_sim [--first SEED] [--count N] [--trace]
//
// Runs so many seeded schedules and ends with 1 if a promise was broken in one of them; the seed is printed,
// and the same seed is the same history: operator_sim --first SEED --count 1 --trace shows it.
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "tests/sim/schedule.h"

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t count = 100;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto number = i + 1 < argc ? trainyard::ParseNumber<std::uint64_t>(argv[i + 1]) : std::nullopt;
    if (flag == "--trace") {
      trace = true;
    } else if (flag == "--first" && number) {
      first = *number;
      ++i;
    } else if (flag == "--count" && number) {
      count = *number;
      ++i;
    } else {
      std::cerr << "usage: operator_sim [--first SEED] [--count N] [--trace]\n";
      return 2;
    }
  }
  trainyard::log::Configure(trace ? trainyard::log::Level::kWarn : trainyard::log::Level::kOff,
                            trainyard::log::Format::kText);
  std::uint64_t writes = 0;
  std::uint64_t crashes = 0;
  std::uint64_t finished = 0;
  std::uint64_t lost_masters = 0;
  std::uint64_t recreated = 0;
  std::uint64_t gave_back = 0;
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const trainyard::sim::ScheduleResult result = trainyard::sim::RunSchedule(seed, trace);
    writes += static_cast<std::uint64_t>(result.writes);
    crashes += static_cast<std::uint64_t>(result.crashes);
    finished += static_cast<std::uint64_t>(result.finished);
    lost_masters += static_cast<std::uint64_t>(result.lost_masters);
    recreated += static_cast<std::uint64_t>(result.recreated_masters);
    gave_back += static_cast<std::uint64_t>(result.gangs_gave_back);
    if (result.broken.empty()) continue;
    std::cout << "seed " << seed << ": " << result.broken.front() << "\n";
    if (++failed == 10) break;
  }
  std::cout << count << " schedules from seed " << first << ": " << finished << " jobs ended, " << writes
            << " writes, " << crashes << " crashes of operators, " << failed << " failed\n"
            << "with the node of a working master lost: " << lost_masters
            << "; recreated in time where that was awaited: " << recreated
            << "; gangs that gave back a part of their nodes: " << gave_back << "\n";
  if (failed > 0) std::cout << "operator_sim --first SEED --count 1 --trace shows what happened\n";
  // A simulation in which nothing happens proves nothing.
  const bool many = count >= 100;
  const bool idle = finished == 0 || (many && (crashes == 0 || recreated == 0 || gave_back == 0));
  // A tenth of the histories lose a master with its node.
  const bool spared = many && failed == 0 && lost_masters * 10 < count;
  if (spared) std::cout << "too few masters were lost with their nodes\n";
  return failed > 0 || idle || spared ? 1 : 0;
}
