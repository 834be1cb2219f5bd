// Drives a daemon of libmicrohttpd in a thread of its own, and stops it between two rounds.
//
// The library can do that itself, but its thread (0.9.75) takes every answer queued while it is being stopped
// for given and then reads the answer that is not there: a bad request at the wrong moment crashed the
// process.
#pragma once

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "base/fd.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace trainyard {

class HttpLoop {
 public:
  HttpLoop();
  ~HttpLoop() { Stop(); }
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // Once. `daemon` polls by MHD_USE_EPOLL and has no thread; it belongs to the loop from now on, also if this
  // fails.
  absl::Status Start(MHD_Daemon* daemon);
  // Closes all connections, of which none may be suspended.
  void Stop();
  // From any thread, in place of MHD_resume_connection(), which would not wake the loop.
  void Resume(MHD_Connection* connection);

 private:
  void Run();
  void Wake();

  const Fd wake_;
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace trainyard
