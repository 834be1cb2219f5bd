#include "graph/kernel/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace trainyard::graph {
namespace {

// values[i] for steps before boundaries[i], the last one after all of them.
double Piecewise(const Op& op, std::int64_t step) {
  const Ints& boundaries = op.IntList("boundaries");
  const auto next = std::upper_bound(boundaries.begin(), boundaries.end(), step);
  return op.FloatList("values")[static_cast<std::size_t>(next - boundaries.begin())];
}

// From base down to end in decay_steps, then end; or, in cycles, down again from above over longer and longer
// times.
double Polynomial(const Op& op, double step) {
  const double end = op.Float("end");
  auto length = static_cast<double>(op.Int("decay_steps"));
  if (op.Bool("cycle")) length *= std::max(1.0, std::ceil(step / length));
  const double left = 1 - std::min(step, length) / length;
  return (op.Float("base") - end) * std::pow(left, op.Float("power")) + end;
}

}  // namespace

double RateAt(const Op& op, std::int64_t step) {
  const std::string& kind = op.String("kind");
  if (kind == "piecewise") return Piecewise(op, step);
  if (kind == "polynomial") return Polynomial(op, static_cast<double>(step));
  double decays = static_cast<double>(step) / static_cast<double>(op.Int("decay_steps"));
  if (op.Bool("staircase")) decays = std::floor(decays);
  const double base = op.Float("base");
  const double rate = op.Float("decay_rate");
  if (kind == "exponential") return base * std::pow(rate, decays);
  if (kind == "natural_exp") return base * std::exp(-rate * decays);
  return base / (1 + rate * decays);  // inverse_time
}

}  // namespace trainyard::graph
