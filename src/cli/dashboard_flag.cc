#include "cli/dashboard_flag.h"

#include "base/text.h"

namespace trainyard::cli {

void DashboardFlag::Declare(Flags& flags, const std::string& by_default) {
  flags.Text({.name = "--dashboard-address",
              .value = "ADDRESS",
              .help = StrCat("Where a page to watch jobs by is served, as 127.0.0.1:8090, or none (",
                             by_default, ")")},
             address_);
}

void DashboardFlag::Place(std::uint16_t port, dashboard::DashboardOptions& options) const {
  options.address = IsGiven() ? address_ : StrCat("127.0.0.1:", port);
  options.other_port = !IsGiven();
}

}  // namespace trainyard::cli
