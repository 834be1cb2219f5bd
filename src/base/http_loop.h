// Drives a daemon of libmicrohttpd in a thread of its own, and stops it between two rounds. Accepts its
// connections and decides which of them stay.
//
// The library can do that itself, but its thread (0.9.75) takes every answer queued while it is being stopped
// for given and then reads the answer that is not there: a bad request at the wrong moment crashed the
// process. It accepts no more at its limit, however silent its clients are, and may forget to begin again.
#pragma once

#include <microhttpd.h>

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/connection_table.h"
#include "base/fd.h"

namespace trainyard {

struct HttpLoopOptions {
  ConnectionLimits limits;
  // From the connection, or the end of the request before it, to the last byte of a request.
  absl::Duration request_timeout = absl::Seconds(30);
  // While the client takes nothing of an answer.
  absl::Duration write_timeout = absl::Seconds(30);
  MHD_AccessHandlerCallback on_request = nullptr;
  MHD_RequestCompletedCallback on_completed = nullptr;  // may be null
  void* self = nullptr;                                 // for both
};

class HttpLoop {
 public:
  HttpLoop();
  ~HttpLoop() { Stop(); }
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // Once. `listener` does not block.
  absl::Status Start(Fd listener, const HttpLoopOptions& options);
  // Closes all connections, of which none may be suspended.
  void Stop();
  // From any thread, in place of MHD_resume_connection(), which would not wake the loop.
  void Resume(MHD_Connection* connection);
  // On the loop's thread: the request is whole, and its client may ask. Until it is completed the connection
  // stays, whatever else comes.
  void Serve(MHD_Connection* connection);

 private:
  static void OnConnection(void* self, MHD_Connection* connection, void** context,
                           MHD_ConnectionNotificationCode code);
  static void OnCompleted(void* self, MHD_Connection* connection, void** state,
                          MHD_RequestTerminationCode code);
  void Run();
  void Wake();
  int Timeout(SteadyTime now) const;
  void Accept(SteadyTime now);
  void Close(ConnectionTable::Id id);
  void CloseLate(SteadyTime now);

  const Fd wake_;
  Fd listener_;
  HttpLoopOptions options_;
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;

  // Of the loop's thread.
  std::optional<ConnectionTable> table_;
  SteadyTime accept_again_;
  SteadyTime warn_again_;
};

}  // namespace trainyard
