// usage: trainyard_bench [--quick] [--check] [--part NAME]... [--json FILE] [--folder FOLDER] [--trainyard
// PROGRAM]
//
// Prints one table. --quick measures for a moment only, to see that it runs. --check exits 1 if a target is
// missed. --part measures only that part. Files are made in FOLDER (the present one), so that the disk that
// matters is measured. PROGRAM is the one beside this.
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/log.h"
#include "bench/report.h"

int main(int argc, char** argv) {
  using namespace trainyard::bench;
  trainyard::log::SetLevel(trainyard::log::Level::kWarn);
  const std::pair<std::string, void (*)(const Settings&, std::vector<Row>&)> parts[] = {
      {"store", EmbeddedStoreRows}, {"watches", WatchRows},   {"etcd", EtcdRows},
      {"client", ClientRows},       {"cluster", ClusterRows}, {"pods", PodRows},
      {"operator", OperatorRows},   {"aijob", AiJobRows},     {"operator-real", OperatorOnRealRows},
      {"graph", GraphRows},         {"data", DataRows},       {"tasks", TaskRows},
      {"elastic", ElasticRows},     {"launch", LaunchRows},   {"face", FaceRows}};
  Settings settings;
  settings.trainyard = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "trainyard";
  std::vector<std::string> wanted;
  std::string json;
  std::string parent = ".";
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      settings.time = absl::Milliseconds(50);
      settings.rounds = 1;
      settings.quick = true;
    } else if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json = argv[++i];
    } else if (std::strcmp(argv[i], "--folder") == 0 && i + 1 < argc) {
      parent = argv[++i];
    } else if (std::strcmp(argv[i], "--trainyard") == 0 && i + 1 < argc) {
      settings.trainyard = argv[++i];
    } else if (std::strcmp(argv[i], "--part") == 0 && i + 1 < argc &&
               std::ranges::any_of(parts, [&](const auto& part) { return part.first == argv[i + 1]; })) {
      wanted.emplace_back(argv[++i]);
    } else {
      std::cerr << "unknown argument '" << argv[i]
                << "': there are --quick, --check, --part "
                   "store|watches|etcd|client|cluster|pods|operator|aijob|operator-real|graph|data|tasks|"
                   "elastic|launch|face, "
                   "--json FILE, "
                   "--folder FOLDER, "
                   "--trainyard PROGRAM\n";
      return 2;
    }
  }
  std::string folder = parent + "/trainyard-bench.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    std::cerr << "cannot make a folder in " << parent << "\n";
    return 1;
  }
  settings.folder = std::filesystem::absolute(folder);
  std::vector<Row> rows;
  for (const auto& [name, measure] : parts) {
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    std::cerr << "measuring: " << name << "\n";
    measure(settings, rows);
  }
  std::filesystem::remove_all(folder);
  std::cout << PrintTable(rows);
  if (!json.empty()) {
    std::ofstream(json) << PrintRows(rows);
    std::cerr << "written: " << json << "\n";
  }
  // A figure that could not be measured is a failure in any run; one that misses its target only with
  // --check.
  const bool good = std::ranges::all_of(
      rows, [&](const Row& row) { return row.failure.empty() && (!check || row.reached()); });
  return good ? 0 : 1;
}
