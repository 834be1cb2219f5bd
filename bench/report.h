// The table that bench/run prints: a figure, the limit that was measured beside it in the same run, and their
// ratio.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::bench {

struct Row {
  std::string name;
  double figure = 0;
  std::string unit;
  std::string limit_name;  // what the limit is; empty: there is none
  double limit = 0;
  // What the row must reach: a ratio, or where there is no peer the figure itself.
  std::optional<double> least_ratio;
  std::optional<double> least_figure;
  std::optional<double> most_figure;  // for a time or a size
  std::string failure;                // why there is no figure; a target is then missed

  double ratio() const { return limit > 0 ? figure / limit : 0; }
  bool reached() const {
    if (!failure.empty()) return false;
    return (!least_ratio || ratio() >= *least_ratio) && (!least_figure || figure >= *least_figure) &&
           (!most_figure || figure <= *most_figure);
  }
};

// Adds the row, with the figure or with why there is none.
void Add(std::vector<Row>& rows, Row row, const absl::StatusOr<double>& figure);

std::string PrintTable(const std::vector<Row>& rows);
std::string PrintRows(const std::vector<Row>& rows);

// Runs `work` in `threads` threads for about `time`; `work(thread)` does one operation. Operations a second.
double Rate(int threads, absl::Duration time, const std::function<void(int)>& work);

// Of numbers that must not be none.
double Median(std::vector<double> values);

// Measures two things in turns, so that what else the machine does falls on both alike; the median of each.
struct Pair {
  double figure = 0;
  double limit = 0;
};
Pair Alternate(int rounds, const std::function<double()>& figure, const std::function<double()>& limit);

struct Settings {
  absl::Duration time = absl::Seconds(1);  // of one measurement
  int rounds = 5;
  bool quick = false;     // only that it runs: everything is small
  std::string folder;     // for files; on the disk that is to be measured
  std::string trainyard;  // the program
};

// Each adds its rows.
void EmbeddedStoreRows(const Settings& settings, std::vector<Row>& rows);
void WatchRows(const Settings& settings, std::vector<Row>& rows);
void EtcdRows(const Settings& settings, std::vector<Row>& rows);
void ClientRows(const Settings& settings, std::vector<Row>& rows);
void ClusterRows(const Settings& settings, std::vector<Row>& rows);
void PodRows(const Settings& settings, std::vector<Row>& rows);
void OperatorRows(const Settings& settings, std::vector<Row>& rows);
void AiJobRows(const Settings& settings, std::vector<Row>& rows);
void OperatorOnRealRows(const Settings& settings, std::vector<Row>& rows);
void GraphRows(const Settings& settings, std::vector<Row>& rows);
void DataRows(const Settings& settings, std::vector<Row>& rows);
void TaskRows(const Settings& settings, std::vector<Row>& rows);
void ElasticRows(const Settings& settings, std::vector<Row>& rows);
void FaceRows(const Settings& settings, std::vector<Row>& rows);
void LaunchRows(const Settings& settings, std::vector<Row>& rows);

}  // namespace trainyard::bench
