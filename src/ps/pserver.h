// A pserver at work: takes calls of trainers and of the lead, and keeps its parameters, its checkpoints and
// its generation in line with the job's.
//
// pserver-0 is the lead (ps/lead.h). In sync mode it decides of which gradients a step is made, tells the
// others, and counts the step as done when all have applied it. A pserver that was restarted takes the whole
// job back to the newest step that every pserver has a checkpoint of, under a new generation; whoever speaks
// of an older one is refused and begins there.
//
// Other trainers and other pservers (ps/scaling.h) come with a new generation too. It stands in the store;
// the lead has all others follow before it does itself. With other trainers the parameters stay where they
// are. With another number of pservers each reads what it needs of the checkpoints of all and goes on with
// that, in the same process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

struct PserverOptions {
  JobKeys keys;
  std::string graph;  // its id
  std::string pod_name;
  std::string pod_ip = "127.0.0.1";
  std::string listen = "127.0.0.1:0";
  std::string token;
  std::string checkpoint_directory;
  absl::Duration lease = absl::Seconds(2);
  int threads = 1;  // that update parameters
};

class Pserver {
 public:
  // Reads its graph, restores or initialises its parameters, serves and registers.
  static absl::StatusOr<std::unique_ptr<Pserver>> Start(kv::Store& store, PserverOptions options);
  // Stops serving and ends its lease.
  virtual ~Pserver() = default;

  // Waits until the job is complete or has no place for this pserver any more (OK), has failed
  // (FailedPrecondition) or was deleted (NotFound), the lease is lost (Unavailable), or Stop() (Cancelled).
  // Others say what went wrong.
  virtual absl::Status Wait() = 0;
  // From any thread, also from a signal's.
  virtual void Stop() = 0;
  virtual int port() const = 0;
  virtual std::int64_t step() const = 0;
};

}  // namespace trainyard::ps
