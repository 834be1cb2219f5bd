// What a controller reports of its passes, for metrics.
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace trainyard::reconcile {

// All calls may be made from many threads at once.
class PassMeter {
 public:
  virtual ~PassMeter() = default;

  virtual void PodsCreated(int count) = 0;
  virtual void PodsDeleted(int count) = 0;
  virtual void ServicesCreated(int count) = 0;
  virtual void ServicesDeleted(int count) = 0;
  // A pod or container of a role failed and was started again.
  virtual void Restarted(std::string_view role, std::string_view cause) = 0;
  virtual void Planned(absl::Duration took) = 0;
  virtual void Passed(absl::Duration took, bool failed) = 0;
  // How long a key was ready before its pass began.
  virtual void Waited(absl::Duration time) = 0;
};

}  // namespace trainyard::reconcile
