// A copy of what the script prints, to the agent's own standard output or error, so that `kubectl logs` has
// it. Whoever reads it may be slow or gone; the script does not suffer from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/poller.h"
#include "agent/sys.h"

namespace trainyard::agent {

// A reader that falls behind holds the script up for a second at most; then what does not fit is dropped and
// counted until the reader has caught up.
class OutputCopy {
 public:
  OutputCopy(Poller& poller, int fd, Source source);

  void Write(std::string_view bytes, std::uint64_t now);
  void OnWritable();
  // To be called when deadline() has come.
  void Advance(std::uint64_t now);
  std::uint64_t deadline() const { return wait_until_; }

  // True: nothing more should be written for a moment.
  bool full() const { return wait_until_ != kNever; }
  bool empty() const { return waiting_.empty(); }
  std::uint64_t dropped() const { return dropped_; }

 private:
  // How many bytes were taken; the rest has no room, or nobody will ever take it.
  std::size_t Send(std::string_view bytes);

  Poller& poller_;
  OwnedFd reopened_;  // so that nobody else's descriptor becomes one that does not wait
  int fd_;
  Source source_;
  std::string waiting_;
  std::uint64_t wait_until_ = kNever;  // a time: there is no room
  bool dropping_ = false;
  bool closed_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace trainyard::agent
