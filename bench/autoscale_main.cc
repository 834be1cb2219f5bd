// usage: autoscale_replay [--nodes N] [--pods-per-node N] [--max-load-desired PART] FILE.csv
//
// Replays a list of jobs (arrival, min, max, work) on a cluster of that size, once with the autoscaler's rule
// and once without, and prints how long jobs waited and took and how much of the cluster was used.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/replay.h"

namespace {

using trainyard::job::scale::ReplayOptions;
using trainyard::job::scale::ReplayResult;

constexpr std::size_t kMostBytes = std::size_t{64} * 1024 * 1024;

int Fail(int code, std::string_view message) {
  std::cerr << "autoscale_replay: " << message << "\n";
  return code;
}

std::string Seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", value);
  return text;
}
std::string Percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", value * 100);
  return text;
}
std::string Change(double with, double without) {
  if (without == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", (with - without) / without * 100);
  return text;
}

void Print(const ReplayResult& with, const ReplayResult& without) {
  const std::vector<std::vector<std::string>> rows = {
      {"", "fixed", "elastic", "change"},
      {"mean pending time", Seconds(without.mean_pending), Seconds(with.mean_pending),
       Change(with.mean_pending, without.mean_pending)},
      {"mean completion time", Seconds(without.mean_completion), Seconds(with.mean_completion),
       Change(with.mean_completion, without.mean_completion)},
      {"until the last has ended", Seconds(without.makespan), Seconds(with.makespan),
       Change(with.makespan, without.makespan)},
      {"utilisation", Percent(without.utilisation), Percent(with.utilisation),
       Change(with.utilisation, without.utilisation)},
      {"changes of size", std::to_string(without.changes), std::to_string(with.changes), ""},
  };
  std::cout << trainyard::Table(rows, 3) << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  namespace scale = trainyard::job::scale;
  ReplayOptions options{.nodes = 0};
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto number = i + 1 < argc ? trainyard::ParseNumber<int>(argv[i + 1]) : std::nullopt;
    const bool counted = number && *number > 0 && *number <= 1'000'000;
    if (flag == "--nodes" && counted) {
      options.nodes = *number;
      ++i;
    } else if (flag == "--pods-per-node" && counted) {
      options.pods_per_node = *number;
      ++i;
    } else if (flag == "--max-load-desired" && i + 1 < argc) {
      const char* text = argv[++i];
      const auto [end, error] = std::from_chars(text, text + std::strlen(text), options.limits.max_load);
      const bool part =
          error == std::errc() && *end == '\0' && options.limits.max_load > 0 && options.limits.max_load <= 1;
      if (!part) return Fail(2, "--max-load-desired is a part of the whole, as 0.97");
    } else if (!flag.starts_with('-') && file.empty()) {
      file = flag;
    } else {
      return Fail(
          2, "usage: autoscale_replay [--nodes N] [--pods-per-node N] [--max-load-desired PART] FILE.csv");
    }
  }
  if (std::int64_t{options.nodes} * options.pods_per_node > 10'000'000)
    return Fail(2, "a cluster of up to 10,000,000 places for pods can be replayed");
  if (file.empty() || options.nodes == 0)
    return Fail(2, "name the size of the cluster with --nodes, and a file of jobs");
  const auto text = trainyard::ReadFile(file, kMostBytes);
  if (!text.ok()) return Fail(1, trainyard::Message(text.status()));
  const auto jobs = scale::ParseReplayJobs(*text);
  if (!jobs.ok()) return Fail(1, trainyard::StrCat(file, ": ", trainyard::Message(jobs.status())));
  const auto with = scale::Replay(*jobs, options);
  options.elastic = false;
  const auto without = scale::Replay(*jobs, options);
  for (const auto* result : {&with, &without}) {
    if (!result->ok()) return Fail(1, trainyard::StrCat(file, ": ", trainyard::Message(result->status())));
  }
  std::cout << jobs->size() << " jobs on " << options.nodes << " nodes with places for "
            << options.pods_per_node << " pods each\n";
  Print(*with, *without);
  return 0;
}
