// A value over time, in a bounded number of points.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace trainyard::dashboard {

// When there are too many points, every second one goes.
class Series {
 public:
  explicit Series(std::size_t most = 600) : most_(most) {}
  // Seconds since 1970. A point is taken only if it is so much later than the last one, or, with `on_change`,
  // if the value is another.
  void Add(double seconds, double value, bool on_change = false);
  const std::vector<std::pair<double, double>>& points() const { return points_; }
  bool operator==(const Series&) const = default;

 private:
  std::size_t most_;
  double least_gap_ = 0;
  std::vector<std::pair<double, double>> points_;
};

}  // namespace trainyard::dashboard
