#include "http/request_body.h"

#include <utility>

namespace trainyard::http {

bool RequestBody::HasRoom() {
  MutexLock lock(mu_);
  return bytes_.size() < kMostBytes;
}

void RequestBody::Add(std::string_view bytes) {
  if (bytes.empty()) return;
  {
    MutexLock lock(mu_);
    bytes_ += bytes;
  }
  Tell();
}

void RequestBody::End() {
  {
    MutexLock lock(mu_);
    whole_ = true;
  }
  Tell();
}

void RequestBody::Tell() {
  std::function<void()> news;
  {
    MutexLock lock(mu_);
    const bool something = !bytes_.empty() || whole_;
    if (told_ || !something || news_ == nullptr) return;
    told_ = true;
    news = news_;
  }
  news();
}

RequestBody::Taken RequestBody::Take() {
  Taken taken;
  bool was_full = false;
  {
    MutexLock lock(mu_);
    was_full = bytes_.size() >= kMostBytes;
    taken = {.bytes = std::exchange(bytes_, {}), .whole = whole_};
    told_ = false;
  }
  if (was_full) room_();
  return taken;
}

void RequestBody::OnNews(std::function<void()> news) {
  {
    MutexLock lock(mu_);
    news_ = std::move(news);
  }
  Tell();
}

}  // namespace trainyard::http
