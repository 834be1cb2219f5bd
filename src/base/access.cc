#include "base/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxToken = 4096;
constexpr int kBacklog = 4096;
constexpr std::size_t kTokenBytes = 32;

// Sockets that are accepted have these too: a client whose machine is gone closes nothing.
void SetOptions(int socket) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_REUSEADDR, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

absl::StatusOr<std::string> NewToken() {
  std::string bytes(kTokenBytes, '\0');
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return ErrnoStatus(errno, "no random bytes for a token");
  return HexBytes(bytes);
}

absl::Status CheckToken(std::string_view token) {
  if (token.empty()) return absl::InvalidArgumentError("a token must not be empty");
  if (token.size() > kMaxToken) {
    return absl::InvalidArgumentError(StrCat("a token has at most ", kMaxToken, " characters"));
  }
  if (!std::ranges::all_of(token, [](unsigned char c) { return c < 0x80 && std::isgraph(c) != 0; })) {
    return absl::InvalidArgumentError("a token has printable ASCII characters only, and no spaces");
  }
  return absl::OkStatus();
}

std::string_view TrimToken(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 2 * kMaxToken));
  const std::string_view line = TrimToken(std::string_view(text).substr(0, text.find('\n')));
  TY_RETURN_IF_ERROR(Annotate(CheckToken(line), StrCat("the token file ", path)));
  return std::string(line);
}

absl::StatusOr<std::string> FindToken(const std::string& file, const char* variable) {
  if (!file.empty()) return ReadToken(file);
  const char* const value = std::getenv(variable);
  const std::string_view token = TrimToken(value == nullptr ? "" : value);
  if (!token.empty()) TY_RETURN_IF_ERROR(Annotate(CheckToken(token), variable));
  return std::string(token);
}

void WrongTokens::Note(std::string_view sent) {
  if (sent.empty()) return;
  std::uint64_t count = 0;
  {
    const SteadyTime now = Clock::System().Steady();
    const MutexLock lock(mu_);
    ++count_;
    if (now < next_) return;
    next_ = now + absl::Minutes(1);
    count = std::exchange(count_, 0);
  }
  log::Warn("refused a wrong token", {{"server", server_}, {"times", count}});
}

bool SameSecret(std::string_view sent, std::string_view secret) {
  volatile unsigned char different = sent.size() == secret.size() && !secret.empty() ? 0 : 1;
  for (std::size_t i = 0; i < sent.size() && !secret.empty(); ++i) {
    different = different | static_cast<unsigned char>(sent[i] ^ secret[i % secret.size()]);
  }
  return different == 0;
}

std::string_view BearerToken(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  const bool has_scheme =
      header.size() > kScheme.size() && std::ranges::equal(header.substr(0, kScheme.size()), kScheme, {},
                                                           [](unsigned char c) { return std::tolower(c); });
  if (!has_scheme) return "";
  header.remove_prefix(kScheme.size());
  return header;
}

bool IsToken(std::string_view sent, std::string_view token) {
  const std::string_view bearer = BearerToken(sent);
  return SameSecret(bearer.empty() ? sent : bearer, token);
}

bool ListenAddress::IsLoopback() const {
  in_addr old{};
  if (::inet_pton(AF_INET, host.c_str(), &old) == 1) return (ntohl(old.s_addr) >> 24) == 127;
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

std::string ListenAddress::Text() const {
  if (host.empty()) return StrCat("[::]:", port);
  return IsIpv6() ? StrCat("[", host, "]:", port) : StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      StrCat("'", Escaped(text),
             "' is no address to listen at: write ADDRESS:PORT, as 127.0.0.1:2379, or "
             ":PORT for every address of this machine"));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  const auto port = ParseNumber<std::uint16_t>(text.substr(colon + 1));
  if (!port) return wrong;
  ListenAddress address{.host = std::string(text.substr(0, colon)), .port = *port};
  if (address.host.empty()) return address;
  if (address.host == "localhost") address.host = "127.0.0.1";
  const bool brackets = address.host.starts_with('[') && address.host.ends_with(']');
  if (brackets) address.host = address.host.substr(1, address.host.size() - 2);
  in_addr old{};
  in6_addr now{};
  const bool valid = brackets ? ::inet_pton(AF_INET6, address.host.c_str(), &now) == 1
                              : ::inet_pton(AF_INET, address.host.c_str(), &old) == 1;
  if (!valid) return wrong;
  return address;
}

absl::StatusOr<Fd> Listen(const ListenAddress& address) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const bool any = address.host.empty() || address.host == "::";
  in_addr v4{};
  in6_addr v6{};
  if (!any && ::inet_pton(AF_INET, address.host.c_str(), &v4) != 1 &&
      ::inet_pton(AF_INET6, address.host.c_str(), &v6) != 1) {
    return absl::InvalidArgumentError(
        StrCat("\"", Escaped(address.host), "\" is not an IP address to listen on"));
  }
  Fd socket;
  if (any || address.IsIpv6()) {
    auto* const in = reinterpret_cast<sockaddr_in6*>(&storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(address.port);
    in->sin6_addr = v6;
    size = sizeof *in;
    socket = Fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int only = any ? 0 : 1;
    if (socket.valid()) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (!socket.valid() && (any || !address.IsIpv6())) {  // where there is no IPv6 the old kind must do
    auto* const in = reinterpret_cast<sockaddr_in*>(&storage);
    storage = {};
    in->sin_family = AF_INET;
    in->sin_port = htons(address.port);
    in->sin_addr = v4;
    size = sizeof *in;
    socket = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  if (!socket.valid()) return ErrnoStatus(errno, "cannot open a socket");
  SetOptions(socket.get());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    const bool taken = errno == EADDRINUSE;
    return absl::UnavailableError(
        StrCat("cannot listen at ", address.Text(), ": ", std::strerror(errno),
               taken ? ": another process has the port; stop it or choose another port" : ""));
  }
  return socket;
}

absl::StatusOr<std::uint16_t> PortOf(const Fd& socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return ErrnoStatus(errno, "cannot ask for the port");
  }
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

}  // namespace trainyard
