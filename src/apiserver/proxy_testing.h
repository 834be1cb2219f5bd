// Both ends of a proxied request, for tests: a backend on loopback, and a client that takes what it is sent
// as slowly as the test wants.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "http/responder.h"

namespace trainyard::apiserver::proxy_testing {

inline constexpr absl::Duration kClientPatience = absl::Seconds(30);

// One connection as the backend has it; a read or write that waits too long fails.
class Accepted {
 public:
  explicit Accepted(Fd fd) : fd_(std::move(fd)) {
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  // What has come when `end` has; all there is if the other side ends before.
  std::string ReadTo(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(fd_.get(), &byte, 1, 0) == 1) text += byte;
    return text;
  }
  std::string ReadHead() { return ReadTo("\r\n\r\n"); }
  std::size_t ReadAll(std::size_t most) {
    std::vector<char> buffer(1 << 16);
    std::size_t all = 0;
    while (all < most) {
      const ssize_t got = ::recv(fd_.get(), buffer.data(), std::min(buffer.size(), most - all), 0);
      if (got <= 0) break;
      all += static_cast<std::size_t>(got);
    }
    return all;
  }
  bool AtEnd() {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, 0) <= 0;
  }
  bool Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void Close() { fd_.Reset(); }

 private:
  Fd fd_;
};

class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    TY_CHECK(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 ::listen(fd_.get(), 16) == 0 &&
                 ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
             "loopback has a port");
    port_ = ntohs(address.sin_port);
  }
  Accepted Accept() { return Accepted(Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC))); }
  std::uint16_t port() const { return port_; }

 private:
  Fd fd_;
  std::uint16_t port_ = 0;
};

// What the client is sent. It takes everything at once unless it is slow; then it takes what Drain() says.
class Client : public std::enable_shared_from_this<Client> {
 public:
  explicit Client(bool slow = false) : slow_(slow) {}

  class Body final : public http::BodyWriter {
   public:
    explicit Body(std::shared_ptr<Client> client) : held_(std::move(client)), client_(*held_) {}
    ~Body() override {
      MutexLock lock(client_.mu_);
      client_.released_ = true;
      client_.changed_.SignalAll();
    }
    bool Write(std::shared_ptr<const std::string> piece) override {
      MutexLock lock(client_.mu_);
      client_.text_ += *piece;
      if (client_.slow_) client_.backlog_ += piece->size();
      client_.most_backlog_ = std::max(client_.most_backlog_, client_.backlog_);
      client_.changed_.SignalAll();
      return true;
    }
    std::size_t Backlog() override {
      MutexLock lock(client_.mu_);
      return client_.backlog_;
    }
    void OnRoom(std::size_t /*bytes*/, std::function<void()> room) override {
      MutexLock lock(client_.mu_);
      client_.room_ = std::move(room);
      client_.changed_.SignalAll();
    }
    void Close() override {
      MutexLock lock(client_.mu_);
      client_.closed_ = true;
      client_.changed_.SignalAll();
    }
    void OnGone(std::function<void()> gone) override {
      MutexLock lock(client_.mu_);
      client_.gone_ = std::move(gone);
    }

   private:
    const std::shared_ptr<Client> held_;
    Client& client_;
  };

  class Answer final : public http::Responder {
   public:
    explicit Answer(std::shared_ptr<Client> client) : held_(std::move(client)), client_(*held_) {}
    void Send(kube::Response response) override {
      MutexLock lock(client_.mu_);
      client_.text_ = response.body;
      client_.head_ = std::move(response);
      client_.closed_ = client_.released_ = true;
      client_.changed_.SignalAll();
    }
    std::shared_ptr<http::BodyWriter> Stream(kube::Response head) override {
      MutexLock lock(client_.mu_);
      client_.head_ = std::move(head);
      client_.changed_.SignalAll();
      return std::make_shared<Body>(held_);
    }
    void OnGone(std::function<void()> gone) override {
      MutexLock lock(client_.mu_);
      client_.gone_ = std::move(gone);
      client_.changed_.SignalAll();
    }

   private:
    const std::shared_ptr<Client> held_;
    Client& client_;
  };

  std::unique_ptr<http::Responder> responder() { return std::make_unique<Answer>(shared_from_this()); }

  std::string WaitForText(std::string_view end) {
    MutexLock lock(mu_);
    while (!text_.ends_with(end) && !released_ && Wait()) {
    }
    return text_;
  }
  kube::Response WaitForHead() {
    MutexLock lock(mu_);
    while (!head_ && Wait()) {
    }
    return head_.value_or(kube::Response{.code = 0});
  }
  // True: the answer is complete. False: it was cut off, or goes on.
  bool WaitForEnd() {
    MutexLock lock(mu_);
    while (!released_ && Wait()) {
    }
    return closed_;
  }
  // Takes all that waits, once whoever writes has stopped for it.
  bool Drain() {
    std::function<void()> room;
    {
      MutexLock lock(mu_);
      while (!room_ && !released_ && Wait()) {
      }
      if (!room_) return false;
      backlog_ = 0;
      room.swap(room_);
    }
    room();
    return true;
  }
  void Leave() {
    std::function<void()> gone;
    {
      MutexLock lock(mu_);
      while (!gone_ && Wait()) {
      }
      gone.swap(gone_);
    }
    gone();
  }
  std::size_t most_backlog() {
    MutexLock lock(mu_);
    return most_backlog_;
  }

 private:
  bool Wait() TY_REQUIRES(mu_) { return changed_.WaitUntil(mu_, Clock::System().Steady() + kClientPatience); }

  const bool slow_;
  Mutex mu_;
  CondVar changed_;
  std::optional<kube::Response> head_ TY_GUARDED_BY(mu_);
  std::string text_ TY_GUARDED_BY(mu_);
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;
  std::size_t most_backlog_ TY_GUARDED_BY(mu_) = 0;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool released_ TY_GUARDED_BY(mu_) = false;
  std::function<void()> gone_ TY_GUARDED_BY(mu_);
  std::function<void()> room_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::apiserver::proxy_testing
