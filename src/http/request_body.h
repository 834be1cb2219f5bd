// The body of a request on its way from the connection that receives it to whoever uses it, in another
// thread, while it is still coming.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace trainyard::http {

// All calls from any thread; none blocks. What waits to be taken is bounded by whoever gives: it gives no
// more while there is no room.
class RequestBody {
 public:
  // `room` tells the giver, without a lock held, that there is room again.
  explicit RequestBody(std::function<void()> room) : room_(std::move(room)) {}

  // The giver's side.
  bool HasRoom();
  void Add(std::string_view bytes);
  void End();  // nothing follows

  // The taker's side.
  struct Taken {
    std::string bytes;
    bool whole = false;  // nothing follows
  };
  // What has come since the last call.
  Taken Take();
  // `news` is called, without a lock held, when there is something to take that was not; at once if there is.
  void OnNews(std::function<void()> news);

 private:
  static constexpr std::size_t kMostBytes = std::size_t{256} * 1024;
  void Tell();

  const std::function<void()> room_;
  Mutex mu_;
  std::string bytes_ TY_GUARDED_BY(mu_);
  bool whole_ TY_GUARDED_BY(mu_) = false;
  bool told_ TY_GUARDED_BY(mu_) = false;  // since the last Take()
  std::function<void()> news_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::http
