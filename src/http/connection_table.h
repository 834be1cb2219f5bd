// Which connections a server keeps, and which it closes to make room for others.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/steady_time.h"

namespace trainyard::http {

struct ConnectionLimits {
  std::size_t most = 256;           // connections in all
  std::size_t most_strangers = 64;  // of clients that have not shown yet that they may ask
};

//   kStranger ──▶ kServed ◀──▶ kIdle
enum class Standing : std::uint8_t {
  kStranger,  // no request of an admitted client has arrived yet
  kServed,    // a request of an admitted client is being answered; never closed for another connection
  kIdle,      // an admitted client's, between two requests
};

// Decides and does nothing. One thread uses it.
class ConnectionTable {
 public:
  using Id = std::uintptr_t;
  explicit ConnectionTable(const ConnectionLimits& limits) : limits_(limits) {}

  // A stranger connects. `peer` stands for its machine: see PeerOf().
  void Add(Id id, std::string peer, SteadyTime now);
  // `since`: when it began to wait for its present request. Does nothing if there is no such connection.
  void Update(Id id, Standing standing, SteadyTime since);
  void Remove(Id id);

  std::size_t size() const { return connections_.size(); }
  // A connection more has a place, if need be that of Excess().
  bool HasRoom() const;
  // The connection to close now, if there are too many: with too many strangers, of the peer with most of
  // them the one that waits longest; else the one that is idle longest.
  std::optional<Id> Excess() const;

 private:
  using Waiting = std::set<std::pair<SteadyTime, Id>>;
  struct Connection {
    std::string peer;
    Standing standing;
    SteadyTime since;
  };
  std::size_t strangers() const;
  void File(Id id, const Connection& connection);
  void Unfile(Id id, const Connection& connection);

  const ConnectionLimits limits_;
  std::unordered_map<Id, Connection> connections_;
  std::map<std::string, Waiting> strangers_;  // by peer
  Waiting idle_;
};

// The address without its port; of IPv6 the network, for a machine has a whole one.
std::string PeerOf(const sockaddr* address);

// `wanted`, or the half of the files that this process may open.
std::size_t MostConnections(std::size_t wanted);

}  // namespace trainyard::http
