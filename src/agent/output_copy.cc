#include "agent/output_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace trainyard::agent {
namespace {

constexpr std::size_t kMaxWaitingBytes = std::size_t{256} << 10;
constexpr std::uint64_t kPatienceMillis = 1'000;

}  // namespace

OutputCopy::OutputCopy(Poller& poller, int fd, Source source) : poller_(poller), fd_(fd), source_(source) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || S_ISREG(info.st_mode)) return;  // nobody is waited for
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  reopened_ = OwnedFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (reopened_.valid()) {
    fd_ = reopened_.get();
  } else {
    ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  }
}

void OutputCopy::Write(std::string_view bytes, std::uint64_t now) {
  if (waiting_.empty() && !closed_) bytes.remove_prefix(Send(bytes));
  if (closed_ || dropping_) {
    dropped_ += bytes.size();
    return;
  }
  if (bytes.empty()) return;
  waiting_ += bytes;
  poller_.Watch(fd_, source_, EPOLLOUT);
  if (waiting_.size() >= kMaxWaitingBytes && !full()) wait_until_ = now + kPatienceMillis;
}

void OutputCopy::OnWritable() {
  waiting_.erase(0, Send(waiting_));
  if (closed_) {
    dropped_ += waiting_.size();
    waiting_.clear();
  }
  if (waiting_.size() < kMaxWaitingBytes / 2) wait_until_ = kNever;
  if (!waiting_.empty()) return;
  dropping_ = false;
  waiting_.shrink_to_fit();
  poller_.Forget(fd_);
}

void OutputCopy::Advance(std::uint64_t now) {
  if (now < wait_until_) return;
  dropping_ = true;
  wait_until_ = kNever;
}

std::size_t OutputCopy::Send(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size() && !closed_) {
    const ssize_t written = ::write(fd_, bytes.data() + sent, bytes.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    closed_ = written <= 0;
    if (written > 0) sent += static_cast<std::size_t>(written);
  }
  return sent;
}

}  // namespace trainyard::agent
