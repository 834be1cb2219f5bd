#include "http/exchange.h"

#include "base/check.h"

namespace trainyard::http {

bool Exchange::Changed() {
  if (gone_ || woken_) return false;
  woken_ = true;
  return true;
}

void Exchange::Send(Response response) {
  std::function<void()> dropped;  // outside the lock: it may own the responder that ends with it
  {
    MutexLock lock(mu_);
    fresh_.whole = std::move(response);
    over_ = true;
    dropped.swap(on_gone_);
    if (!Changed()) return;
  }
  wake_();
}

void Exchange::Begin(Response head) {
  {
    MutexLock lock(mu_);
    fresh_.head = std::move(head);
    if (!Changed()) return;
  }
  wake_();
}

bool Exchange::Write(std::shared_ptr<const std::string> piece) {
  bool fits = true;
  {
    MutexLock lock(mu_);
    if (gone_ || over_ || lagging_) return false;
    if (piece->empty()) return true;
    backlog_ += piece->size();
    fits = backlog_ <= max_backlog_bytes_;
    if (fits) {
      fresh_.pieces.push_back(std::move(piece));
    } else {
      // The reader hears that it lost something by the body breaking off; who writes hears it by OnGone().
      lagging_ = true;
      fresh_.cut = true;
    }
    if (!Changed()) return fits;
  }
  wake_();
  return fits;
}

std::size_t Exchange::Backlog() {
  MutexLock lock(mu_);
  return gone_ ? 0 : backlog_;
}

void Exchange::OnRoom(std::size_t bytes, std::function<void()> room) {
  {
    MutexLock lock(mu_);
    if (gone_ || over_) return;
    room_at_ = bytes;
    if (backlog_ > bytes) {
      on_room_.swap(room);
      return;
    }
  }
  room();
}

void Exchange::End(bool complete) {
  std::function<void()> dropped;  // outside the lock: it may own the writer that ends with it
  std::function<void()> dropped_room;
  {
    MutexLock lock(mu_);
    if (over_) return;
    over_ = true;
    dropped.swap(on_gone_);
    dropped_room.swap(on_room_);
    (complete ? fresh_.closed : fresh_.cut) = true;
    if (!Changed()) return;
  }
  wake_();
}

void Exchange::OnGone(std::function<void()> gone) {
  {
    MutexLock lock(mu_);
    if (over_) return;
    if (!gone_) {
      on_gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

Exchange::Collected Exchange::Collect() {
  MutexLock lock(mu_);
  woken_ = false;
  return std::exchange(fresh_, {});
}

void Exchange::Sent(std::size_t bytes) {
  std::function<void()> room;
  {
    MutexLock lock(mu_);
    backlog_ -= bytes;
    if (backlog_ <= room_at_) room.swap(on_room_);
  }
  if (room != nullptr) room();
}

void Exchange::Abandon() {
  std::function<void()> gone;
  std::function<void()> room;  // freed outside the lock, as is what was not sent
  Collected dropped;
  {
    MutexLock lock(mu_);
    if (gone_) return;
    gone_ = true;
    gone.swap(on_gone_);
    room.swap(on_room_);
    dropped = std::exchange(fresh_, {});
  }
  if (gone != nullptr) gone();
}

namespace {

class ExchangeWriter final : public BodyWriter {
 public:
  explicit ExchangeWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeWriter() override { exchange_->Cut(); }
  bool Write(std::shared_ptr<const std::string> piece) override { return exchange_->Write(std::move(piece)); }
  std::size_t Backlog() override { return exchange_->Backlog(); }
  void OnRoom(std::size_t bytes, std::function<void()> room) override {
    exchange_->OnRoom(bytes, std::move(room));
  }
  void Close() override { exchange_->Close(); }
  void OnGone(std::function<void()> gone) override { exchange_->OnGone(std::move(gone)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

class ExchangeResponder final : public Responder {
 public:
  ExchangeResponder(std::shared_ptr<Exchange> exchange, ErrorPrinter print_error)
      : exchange_(std::move(exchange)), print_error_(print_error) {}
  ~ExchangeResponder() override {
    if (exchange_ == nullptr) return;
    exchange_->Send(print_error_(500, "the server gave the request up without an answer"));
  }
  void Send(Response response) override { Take()->Send(std::move(response)); }
  std::shared_ptr<BodyWriter> Stream(Response head) override {
    std::shared_ptr<Exchange> exchange = Take();
    exchange->Begin(std::move(head));
    return std::make_shared<ExchangeWriter>(std::move(exchange));
  }
  void OnGone(std::function<void()> gone) override { exchange_->OnGone(std::move(gone)); }

 private:
  std::shared_ptr<Exchange> Take() {
    TY_CHECK(exchange_ != nullptr, "a request is answered once");
    return std::exchange(exchange_, nullptr);
  }
  std::shared_ptr<Exchange> exchange_;
  const ErrorPrinter print_error_;
};

}  // namespace

std::unique_ptr<Responder> NewResponder(std::shared_ptr<Exchange> exchange, ErrorPrinter print_error) {
  return std::make_unique<ExchangeResponder>(std::move(exchange), print_error);
}

}  // namespace trainyard::http
