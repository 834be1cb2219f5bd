// A page to watch the cluster's jobs by, for whoever knows its token.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/http.h"

namespace trainyard::dashboard {

struct DashboardOptions {
  std::string address = "127.0.0.1:0";  // HOST:PORT; port 0: any that is free
  bool other_port = false;              // if that one is taken, any that is free
  std::string token;                    // "": a new one is made
  std::string cluster = "embedded";     // what it is called on the page
  std::string ns;                       // only jobs of this namespace; "": all
  // How often jobs are looked at while nobody has the page open, so that it is known how large they were.
  // Zero: not at all, for a server that is others' too.
  absl::Duration look_every = absl::ZeroDuration();
};

class Dashboard {
 public:
  // The transport and the clock outlive it. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(kube::Transport& transport, Clock& clock,
                                                          DashboardOptions options);
  virtual ~Dashboard() = default;
  // What a browser opens, with the token in it.
  virtual std::string Url() const = 0;
};

}  // namespace trainyard::dashboard
