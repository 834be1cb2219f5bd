// The agent's clients: a listener and a bounded number of connections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/connection.h"
#include "agent/poller.h"
#include "agent/sys.h"

namespace trainyard::agent {

inline constexpr std::size_t kMaxConnections = 64;

class Server {
 public:
  Server(Poller& poller, Calls& calls, Timeouts timeouts)
      : poller_(poller), calls_(calls), timeouts_(timeouts) {}

  // "0.0.0.0:7896" or "[::]:7896"; port 0: any.
  Failure Listen(const std::string& address);
  // Where it listens, with the port that it has got.
  std::string address() const { return address_; }

  void OnAccept(std::uint64_t now);
  void OnClient(std::uint32_t serial, std::uint32_t events, std::uint64_t now);
  // To be called on every turn of the loop, after everything else.
  void Advance(std::uint64_t now);
  std::uint64_t deadline() const;
  // No answer is under way.
  bool quiet() const;

 private:
  struct Client {
    std::uint32_t serial = 0;
    std::optional<std::uint32_t> watched;  // what the poller was asked for
    std::unique_ptr<Connection> connection;
  };
  bool MakeRoom();

  Poller& poller_;
  Calls& calls_;
  const Timeouts timeouts_;
  OwnedFd listener_;
  std::string address_;
  std::uint32_t next_serial_ = 1;
  std::vector<Client> clients_;
};

}  // namespace trainyard::agent
