// usage: trainyard_bench [--quick] [--check] [--json FILE] [--folder FOLDER]
//
// Prints one table. --quick measures for a moment only, to see that it runs. --check exits 1 if a target is
// missed. Files are made in FOLDER (the present one), so that the disk that matters is measured.
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "bench/report.h"

int main(int argc, char** argv) {
  using namespace trainyard::bench;
  Settings settings;
  std::string json;
  std::string parent = ".";
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      settings.time = absl::Milliseconds(50);
      settings.rounds = 1;
    } else if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json = argv[++i];
    } else if (std::strcmp(argv[i], "--folder") == 0 && i + 1 < argc) {
      parent = argv[++i];
    } else {
      std::cerr << "unknown argument '" << argv[i]
                << "': there are --quick, --check, --json FILE, --folder FOLDER\n";
      return 2;
    }
  }
  std::string folder = parent + "/trainyard-bench.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    std::cerr << "cannot make a folder in " << parent << "\n";
    return 1;
  }
  settings.folder = folder;
  std::vector<Row> rows;
  const std::pair<const char*, void (*)(const Settings&, std::vector<Row>&)> parts[] = {
      {"embedded store", EmbeddedStoreRows}, {"watches", WatchRows}, {"etcd", EtcdRows}};
  for (const auto& [name, measure] : parts) {
    std::cerr << "measuring: " << name << "\n";
    measure(settings, rows);
  }
  std::filesystem::remove_all(folder);
  std::cout << PrintTable(rows);
  if (!json.empty()) {
    std::ofstream(json) << PrintJson(rows);
    std::cerr << "written: " << json << "\n";
  }
  const bool reached = std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.reached(); });
  return check && !reached ? 1 : 0;
}
