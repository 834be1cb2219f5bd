// --dashboard-address, of the commands that serve the dashboard.
#pragma once

#include <string>

#include "cli/command.h"
#include "dashboard/dashboard.h"

namespace trainyard::cli {

class DashboardFlag {
 public:
  // `by_default` is for the help: where it is, if nothing is given.
  void Declare(Flags& flags, const std::string& by_default);
  bool IsOff() const { return address_ == "none" || address_.empty(); }
  // Somebody wants it just there: then it must be there, or nothing is started.
  bool IsGiven() const { return address_ != kDefault; }
  // Fills in where it is: what was given, or else this machine's loopback, at `port` if that is free.
  void Place(std::uint16_t port, dashboard::DashboardOptions& options) const;

 private:
  static constexpr std::string_view kDefault = "default";
  std::string address_{kDefault};
};

}  // namespace trainyard::cli
