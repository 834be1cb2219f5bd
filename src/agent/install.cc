#include "agent/install.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

namespace trainyard::agent {
namespace {

bool CopyAll(int from, int to) {
  char piece[65536];
  while (true) {
    const ssize_t got = ::read(from, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    if (!WriteAll(to, {piece, static_cast<std::size_t>(got)})) return false;
  }
}

}  // namespace

Failure Install(const std::string& to) {
  const OwnedFd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!own.valid()) return Failure::Here("cannot read this program");
  std::string part = to + ".XXXXXX";
  const OwnedFd file(::mkostemp(part.data(), O_CLOEXEC));
  if (!file.valid()) return Failure::Here("cannot write " + to);
  const bool written = CopyAll(own.get(), file.get()) && ::fchmod(file.get(), 0755) == 0 &&
                       ::fsync(file.get()) == 0 && ::rename(part.c_str(), to.c_str()) == 0;
  if (written) return Failure::None();
  Failure failure = Failure::Here("cannot write " + to);
  ::unlink(part.c_str());
  return failure;
}

}  // namespace trainyard::agent
