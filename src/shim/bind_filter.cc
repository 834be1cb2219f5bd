#include "shim/bind_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstring>
#include <optional>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

namespace trainyard::shim {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "say here what <linux/audit.h> calls this architecture"
#endif

int Install(unsigned long flags) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bind, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_connect, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = sizeof code / sizeof code[0], .filter = code};
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// The caller's argument, if it is an address of a kind that we care for.
std::optional<Address> ReadAddress(const seccomp_notif& call) {
  const auto size = static_cast<socklen_t>(call.data.args[2]);
  if (size < sizeof(sockaddr_in) || size > sizeof(sockaddr_storage)) return std::nullopt;
  Address address{};
  iovec here{.iov_base = &address, .iov_len = size < sizeof address ? size : sizeof address};
  iovec there{.iov_base = reinterpret_cast<void*>(call.data.args[1]), .iov_len = here.iov_len};
  const ssize_t got = ::process_vm_readv(static_cast<pid_t>(call.pid), &here, 1, &there, 1, 0);
  if (got < static_cast<ssize_t>(sizeof(sockaddr_in))) return std::nullopt;
  if (address.any.sa_family == AF_INET6 && got < static_cast<ssize_t>(sizeof(sockaddr_in6)))
    return std::nullopt;
  return address;
}

std::uint16_t PortOf(const Address& address) {
  return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

bool IsWildcard(const Address& address) {
  if (address.any.sa_family == AF_INET) return address.v4.sin_addr.s_addr == INADDR_ANY;
  return address.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr);
}

// 127.0.0.1 in any form; the other addresses of that network are those of pods and services.
bool IsLoopback(const Address& address) {
  const in_addr_t loopback = htonl(INADDR_LOOPBACK);
  if (address.any.sa_family == AF_INET) return address.v4.sin_addr.s_addr == loopback;
  if (address.any.sa_family != AF_INET6) return false;
  const in6_addr& v6 = address.v6.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && std::memcmp(v6.s6_addr + 12, &loopback, sizeof loopback) == 0);
}

socklen_t SizeOf(const Address& address) {
  return address.any.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// The process of a thread, as the private /proc has it; kernels before 6.9 give pidfds of processes only.
pid_t ProcessOf(pid_t thread) {
  std::string text;
  const std::string path = "/proc/" + std::to_string(thread) + "/status";
  if (!ReadSmallFile(AT_FDCWD, path.c_str(), text)) return thread;
  const std::size_t at = text.find("\nTgid:");
  return at == std::string::npos ? thread
                                 : static_cast<pid_t>(std::strtol(text.c_str() + at + 6, nullptr, 10));
}

OwnedFd TakeSocket(const seccomp_notif& call) {
  const auto thread = static_cast<pid_t>(call.pid);
  OwnedFd pidfd(PidfdOpen(thread, PIDFD_THREAD));
  if (!pidfd.valid()) pidfd = OwnedFd(PidfdOpen(ProcessOf(thread), 0));
  if (!pidfd.valid()) return {};
  return OwnedFd(PidfdGetfd(pidfd.get(), static_cast<int>(call.data.args[0])));
}

bool SetPodAddress(Address& address, in_addr pod, int socket) {
  if (address.any.sa_family == AF_INET) {
    address.v4.sin_addr = pod;
    return true;
  }
  int only_v6 = 1;
  socklen_t size = sizeof only_v6;
  if (::getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &size) != 0 || only_v6 != 0) return false;
  std::memset(&address.v6.sin6_addr, 0, 10);
  std::memset(address.v6.sin6_addr.s6_addr + 10, 0xff, 2);
  std::memcpy(address.v6.sin6_addr.s6_addr + 12, &pod, 4);
  return true;
}

// A call that a signal interrupted comes again; the socket has its address by then.
bool IsBoundTo(int socket, const Address& wanted) {
  Address bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, &bound.any, &size) != 0 || bound.any.sa_family != wanted.any.sa_family)
    return false;
  if (wanted.any.sa_family == AF_INET) {
    return bound.v4.sin_port == wanted.v4.sin_port && bound.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr;
  }
  return bound.v6.sin6_port == wanted.v6.sin6_port &&
         std::memcmp(&bound.v6.sin6_addr, &wanted.v6.sin6_addr, sizeof bound.v6.sin6_addr) == 0;
}

// Zero or a negative errno: the call's result. Nothing: the kernel shall do it.
std::optional<int> BindInstead(int socket, const Address& address, BoundPorts& bound) {
  const bool done = ::bind(socket, &address.any, SizeOf(address)) == 0;
  const int error = done ? 0 : errno;
  if (!done && (error != EINVAL || !IsBoundTo(socket, address))) return -error;
  bound.insert(PortOf(address));
  return 0;
}

// How a connection that is being made turns out, of which nobody here can wait for long: it is to this
// machine.
int AwaitConnection(int socket) {
  constexpr int kMillis = 100;
  pollfd ready{.fd = socket, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, kMillis) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::optional<int> ConnectInstead(int socket, const Address& address) {
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0) return std::nullopt;
  const bool waits = (flags & O_NONBLOCK) == 0;
  if (waits) ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(socket, &address.any, SizeOf(address)) == 0 ? 0 : errno;
  if (waits && (error == EINPROGRESS || error == EALREADY)) error = AwaitConnection(socket);
  if (waits) ::fcntl(socket, F_SETFL, flags);
  // Nobody listens there any more: then it is the machine's own that is meant.
  if (error == ECONNREFUSED) return std::nullopt;
  return -error;
}

std::optional<int> DoInstead(int listener, const seccomp_notif& call, in_addr pod, BoundPorts& bound) {
  const bool binds = call.data.nr == __NR_bind;
  std::optional<Address> address = ReadAddress(call);
  if (!address || PortOf(*address) == 0) return std::nullopt;
  const bool ours = binds ? IsWildcard(*address) || IsLoopback(*address)
                          : IsLoopback(*address) && bound.contains(PortOf(*address));
  if (!ours) return std::nullopt;
  const OwnedFd socket = TakeSocket(call);
  // Only now is it certain that memory and descriptor were the caller's, and not those of a process that got
  // its number after it died.
  if (!socket.valid() || ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) != 0) return std::nullopt;
  if (!SetPodAddress(*address, pod, socket.get())) return std::nullopt;
  return binds ? BindInstead(socket.get(), *address, bound) : ConnectInstead(socket.get(), *address);
}

}  // namespace

int InstallBindFilter() {
  constexpr unsigned long kFlags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  int listener = Install(kFlags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  if (listener < 0 && errno == EINVAL) listener = Install(kFlags);
  if (listener >= 0 || errno != EACCES) return listener;
  // Without the right to administer, a filter is allowed only to those who give up gaining rights.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  listener = Install(kFlags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  return listener < 0 && errno == EINVAL ? Install(kFlags) : listener;
}

void AnswerCall(int listener, in_addr pod_address, BoundPorts& bound) {
  // Room for what a newer kernel may add to its structures.
  alignas(seccomp_notif) char call_room[512] = {};
  alignas(seccomp_notif_resp) char answer_room[512] = {};
  auto& call = *reinterpret_cast<seccomp_notif*>(call_room);
  auto& answer = *reinterpret_cast<seccomp_notif_resp*>(answer_room);
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
  const std::optional<int> result = DoInstead(listener, call, pod_address, bound);
  answer.id = call.id;
  answer.error = result.value_or(0);
  answer.flags = result ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace trainyard::shim
