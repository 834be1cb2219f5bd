// The node's end of the line to a pod's shim, on the node's loop. Nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/process.h"
#include "node/container_launch.h"
#include "node/loop.h"
#include "node/pod_folder.h"
#include "shim/protocol.h"

namespace trainyard::node {

// What a pod's shim is told when it begins.
struct ShimConfig {
  const Machine& machine;
  std::string hostname;
  std::string address;  // empty: the machine's
  bool hosts = true;    // it has names of its own
};
absl::Status WriteShimConfig(const PodFolder& folder, const ShimConfig& config);

// A shim on its way: done when it listens.
class ShimStart {
 public:
  // Called once, with the shim's number or with why there is none.
  using Done = std::function<void(absl::StatusOr<pid_t>)>;
  static absl::StatusOr<std::unique_ptr<ShimStart>> Begin(Loop& loop, const std::string& shim,
                                                          const PodFolder& folder, Done done);
  ~ShimStart();  // what is on its way goes on; nobody is told

 private:
  ShimStart(Loop& loop, Child child, Fd pipe, Done done)
      : loop_(loop), child_(std::move(child)), pipe_(std::move(pipe)), done_(std::move(done)) {}
  void Read();
  void Finish();

  Loop& loop_;
  Child child_;
  Fd pipe_;
  Done done_;
  std::string text_;
};

struct ExecResult {
  bool ok = false;      // it ran and returned 0
  std::string message;  // what it printed, or why it did not run
};

struct ShimRun {
  std::string id;
  const Launch& launch;
  std::vector<std::string> cgroups;
  std::string log;
  std::uint64_t log_bytes = std::uint64_t{16} << 20;
  int log_files = 3;
};

class ShimClient {
 public:
  struct Callbacks {
    std::function<void(const StateEvent&)> event;
    std::function<void()> gone;  // the shim ended; nothing comes any more
  };
  // Says hello. Unavailable: there is no shim.
  static absl::StatusOr<std::unique_ptr<ShimClient>> Connect(Loop& loop, const PodFolder& folder,
                                                             Callbacks callbacks);
  ~ShimClient();  // the shim stays

  // `failed` is called if the shim refuses.
  void Start(const ShimRun& run, std::function<void(std::string why)> failed);
  void Signal(const std::string& id, int signal);
  // A time-out that is infinite is none.
  void Exec(const std::string& id, const Launch& launch, absl::Duration timeout,
            std::function<void(ExecResult)> done);
  void Shutdown();
  // With SIGKILL, and with it all that it runs: what a machine does that loses its power.
  void Kill();

  bool connected() const { return socket_.valid(); }

 private:
  using Answered = std::function<void(const shim::MessageReader* answer)>;  // null: the shim is gone
  ShimClient(Loop& loop, Fd socket, Callbacks callbacks)
      : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks)) {}
  void Send(shim::MessageWriter message, std::uint64_t tag, Answered answered);
  void Flush();
  void OnReady(std::uint32_t events);
  bool TakeMessages();
  void Lose();

  Loop& loop_;
  Fd socket_;
  Callbacks callbacks_;
  std::string in_;
  std::string out_;
  bool writing_ = false;
  std::uint64_t next_tag_ = 1;
  std::map<std::uint64_t, Answered> waiting_;
  // So that a handler notices that it was destroyed by what it called.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace trainyard::node
