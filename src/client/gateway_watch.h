// One watch over a store's gateway: a connection of its own, made anew from where it was when it breaks.
//
//            opened, confirmed               it breaks
//   [asking] ─────────────────▶ [watching] ────────────▶ [asking] from the first revision not seen
//      │                            │
//      └── refused, or compacted ───┴──▶ failed: Next() says so once what came before has been taken
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "client/gateway_client.h"
#include "client/gateway_json.h"
#include "kube/http.h"
#include "kv/store.h"

namespace trainyard::client {

// What the watcher and the thread that reads for it share. The client must outlive the thread.
class GatewayWatch {
 public:
  GatewayWatch(GatewayClient& client, kv::WatchRequest request);

  // The thread's part; returns after Cancel(), or when the watch has failed.
  void Run();

  // The caller's part. Waits until the store has confirmed the watch; what is written from then on will be
  // seen.
  absl::Status AwaitConfirmed();
  absl::StatusOr<kv::WatchBatch> Next(absl::Duration timeout);
  void Cancel();
  // After Cancel(): on_ready has been called for the last time.
  void AwaitQuiet();

 private:
  // From the opening of one connection to its end; says why it ended.
  absl::Status Follow();
  absl::Status ReadLines(kube::BodyReader& body);
  absl::Duration Patience();
  absl::Status TakeLine(std::string_view line);
  absl::Status Take(WatchAnswer answer);
  absl::Status Refusal(const WatchAnswer& answer) TY_REQUIRES(mu_);
  void Confirm(kv::Revision revision) TY_REQUIRES(mu_);
  // True if on_ready is to be called.
  bool Announce() TY_REQUIRES(mu_);
  void CallOnReady();
  // Whether to try again after such an end; false once the watch has failed.
  bool GoesOn(const absl::Status& ended, int failures);
  bool Pause(absl::Duration pause);

  static constexpr std::size_t kMostQueued = 8192;  // events; beyond it nothing is read

  GatewayClient& client_;
  const kv::WatchRequest request_;
  Mutex mu_;
  CondVar changed_;
  std::shared_ptr<kube::BodyReader> body_ TY_GUARDED_BY(mu_);  // null while there is no connection
  std::deque<kv::WatchBatch> queue_ TY_GUARDED_BY(mu_);
  std::size_t queued_events_ TY_GUARDED_BY(mu_) = 0;
  kv::Revision next_revision_ TY_GUARDED_BY(mu_);  // the first not seen; 0: whatever is next when it is made
  absl::Status failure_ TY_GUARDED_BY(mu_);
  bool confirmed_ TY_GUARDED_BY(mu_) = false;
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
  bool announced_ TY_GUARDED_BY(mu_) = false;
  bool calling_ TY_GUARDED_BY(mu_) = false;
  const SteadyTime confirm_by_;
};

}  // namespace trainyard::client
