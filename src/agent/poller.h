// epoll, with a name for each descriptor.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "agent/sys.h"

namespace trainyard::agent {

enum class Source : std::uint8_t { kListener, kSignals, kClient, kOut, kErr, kReport, kOwnOut, kOwnErr };

struct Event {
  Source source = Source::kListener;
  std::uint32_t serial = 0;  // of a client
  std::uint32_t events = 0;  // EPOLLIN and so on
};

class Poller {
 public:
  Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  bool valid() const { return epoll_.valid(); }

  // From now on, or from now on otherwise. False: it cannot be watched (a file).
  bool Watch(int fd, Source source, std::uint32_t events, std::uint32_t serial = 0);
  // For a descriptor that stays open; closing one forgets it too.
  void Forget(int fd);
  // Until something happens or the time has come; how many events there are.
  int Wait(Event* events, int most, std::uint64_t until);

 private:
  OwnedFd epoll_;
};

}  // namespace trainyard::agent
