#include "http/connection_table.h"

#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>

namespace trainyard::http {

void ConnectionTable::Add(Id id, std::string peer, SteadyTime now) {
  Remove(id);
  const auto added = connections_.emplace(
      id, Connection{.peer = std::move(peer), .standing = Standing::kStranger, .since = now});
  File(id, added.first->second);
}

void ConnectionTable::Update(Id id, Standing standing, SteadyTime since) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.standing == standing && connection.since == since) return;
  Unfile(id, connection);
  connection.standing = standing;
  connection.since = since;
  File(id, connection);
}

void ConnectionTable::Remove(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Unfile(id, found->second);
  connections_.erase(found);
}

void ConnectionTable::File(Id id, const Connection& connection) {
  if (connection.standing == Standing::kStranger) strangers_[connection.peer].emplace(connection.since, id);
  if (connection.standing == Standing::kIdle) idle_.emplace(connection.since, id);
}

void ConnectionTable::Unfile(Id id, const Connection& connection) {
  if (connection.standing == Standing::kIdle) idle_.erase({connection.since, id});
  if (connection.standing != Standing::kStranger) return;
  const auto peer = strangers_.find(connection.peer);
  peer->second.erase({connection.since, id});
  if (peer->second.empty()) strangers_.erase(peer);
}

std::size_t ConnectionTable::strangers() const {
  std::size_t count = 0;
  for (const auto& [peer, waiting] : strangers_) count += waiting.size();
  return count;
}

bool ConnectionTable::HasRoom() const {
  return size() < limits_.most || !idle_.empty() || !strangers_.empty();
}

std::optional<ConnectionTable::Id> ConnectionTable::Excess() const {
  const bool crowded = size() > limits_.most;
  if (!crowded && strangers() <= limits_.most_strangers) return std::nullopt;
  if (strangers() <= limits_.most_strangers && !idle_.empty()) return idle_.begin()->second;
  const auto most =
      std::ranges::max_element(strangers_, {}, [](const auto& peer) { return peer.second.size(); });
  if (most == strangers_.end()) return std::nullopt;
  return most->second.begin()->second;
}

std::string PeerOf(const sockaddr* address) {
  std::string bytes;
  if (address->sa_family == AF_INET) {
    in_addr old = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    bytes.assign(reinterpret_cast<const char*>(&old), sizeof old);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& all = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    const char* const first = reinterpret_cast<const char*>(&all);
    constexpr std::size_t kNetwork = 8;
    bytes = IN6_IS_ADDR_V4MAPPED(&all) ? std::string(first + 12, 4) : std::string(first, kNetwork);
  }
  return bytes;
}

std::size_t MostConnections(std::size_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  return std::min<std::size_t>(wanted, files.rlim_cur / 2);
}

}  // namespace trainyard::http
