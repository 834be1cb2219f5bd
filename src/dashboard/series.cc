#include "dashboard/series.h"

namespace trainyard::dashboard {

void Series::Add(double seconds, double value, bool on_change) {
  if (!points_.empty()) {
    if (on_change && points_.back().second == value) return;
    if (seconds - points_.back().first < least_gap_) {
      points_.back().second = value;
      return;
    }
  }
  points_.emplace_back(seconds, value);
  if (points_.size() <= most_) return;
  std::vector<std::pair<double, double>> half;
  for (std::size_t i = 0; i < points_.size(); i += 2) half.push_back(points_[i]);
  if (half.back() != points_.back()) half.push_back(points_.back());
  points_ = std::move(half);
  least_gap_ = (points_.back().first - points_.front().first) / static_cast<double>(most_);
}

}  // namespace trainyard::dashboard
