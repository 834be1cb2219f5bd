// Gradients of one step, as they come from workers: added up, and made one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "graph/kernel/tensor.h"

namespace trainyard::master {

using Gradients = std::map<std::string, graph::Value, std::less<>>;

// The mean over all records: each report counts by how many it is of, whether its values are dense or some
// rows. A variable that a report does not have has the gradient zero there.
class GradientSum {
 public:
  // The values must fit those that came before; takes their memory. A dense and a sparse value of the same
  // variable make a dense one.
  void Add(Gradients gradients, std::int64_t records);
  // What there is, and begins anew.
  Gradients TakeMean();

  int reports() const { return reports_; }
  std::int64_t records() const { return records_; }

 private:
  Gradients sum_;  // of one report alone: as it came
  int reports_ = 0;
  std::int64_t records_ = 0;
};

}  // namespace trainyard::master
