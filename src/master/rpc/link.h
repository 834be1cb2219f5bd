// A worker's line to the master. It is kept up: when it breaks it is made anew, and what was not answered is
// asked again, so whoever asks sees no more than that an answer takes its time. All that can be asked may be
// asked twice.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "master/wire.pb.h"
#include "ps/rpc/frame.h"

namespace trainyard::master {

struct LinkOptions {
  std::string address;  // HOST:PORT
  std::string token;
  int worker = -1;
  std::int64_t incarnation = 0;
  std::string pod;
  std::string pserver_address;                  // of a pserver: where workers find it; "": it is a worker
  absl::Duration patience = absl::Minutes(10);  // with a master that cannot be reached
  // While it connects: told how to stop that, and when it is over told of nothing to stop.
  std::function<void(std::function<void()> stop)> on_running = [](const std::function<void()>&) {};
  // What it works on; asked on a thread of the link's own.
  std::function<std::vector<std::int64_t>()> holding;
  // The master was greeted again; likewise. It must not wait for answers.
  std::function<void(const wire::Welcome&)> on_welcome;
};

// Above 0, and no other process's.
std::int64_t NewIncarnation();

struct Reply {
  wire::Answer head;
  ps::Unpacked message;  // with its payload
};

// From any thread.
class Link {
 public:
  // Connects and says hello. Unavailable: the master could not be reached in time. Others as the master says.
  static absl::StatusOr<std::unique_ptr<Link>> Connect(LinkOptions options);
  virtual ~Link() = default;

  // What the master said last when it was greeted.
  virtual wire::Welcome welcome() const = 0;
  // Waits for the answer. Cancelled: after Stop(). Unavailable: the master is away for longer than the
  // patience. Others: the master refuses.
  virtual absl::StatusOr<Reply> Ask(wire::Request request, std::vector<ps::Payload> payloads = {}) = 0;
  // Without waiting; `done` comes once, on the link's own thread, and must not block.
  using Done = std::function<void(absl::StatusOr<Reply>)>;
  virtual void Start(wire::Request request, std::vector<ps::Payload> payloads, Done done) = 0;
  // Ends all that waits.
  virtual void Stop() = 0;
};

}  // namespace trainyard::master
