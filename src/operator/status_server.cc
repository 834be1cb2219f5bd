#include "operator/status_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/http_loop.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::ops {
namespace {

constexpr std::size_t kMostConnections = 64;
constexpr absl::Duration kTimeout = absl::Seconds(10);

absl::StatusOr<sockaddr_in6> ParseAddress(const std::string& text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      StrCat("'", Escaped(text), "' is no address to listen at: HOST:PORT or :PORT"));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  const auto port = ParseNumber<std::uint16_t>(std::string_view(text).substr(colon + 1));
  std::string host = text.substr(0, colon);
  if (!port) return wrong;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(*port);
  // An address of the old kind, as one of the new.
  in_addr old{};
  if (::inet_pton(AF_INET, host.c_str(), &old) == 1) {
    const bool any = old.s_addr == INADDR_ANY;
    if (!any) host = "::ffff:" + host;
    if (any) host.clear();
  }
  if (host.empty()) return address;
  if (::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return wrong;
  return address;
}

// Where there is no IPv6 the old kind alone must do.
absl::StatusOr<Fd> Listen(const std::string& text, sockaddr_in6 address) {
  Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage storage{};
  socklen_t size = sizeof address;
  std::memcpy(&storage, &address, sizeof address);
  if (!socket.valid()) {
    socket = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return ErrnoStatus(errno, "cannot open a socket");
    sockaddr_in old{};
    old.sin_family = AF_INET;
    old.sin_port = address.sin6_port;
    std::memcpy(&old.sin_addr, &address.sin6_addr.s6_addr[12], sizeof old.sin_addr);
    size = sizeof old;
    storage = {};
    std::memcpy(&storage, &old, sizeof old);
  }
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0 ||
      ::listen(socket.get(), 4096) != 0) {
    return absl::UnavailableError(StrCat("cannot listen at ", text, ": ", std::strerror(errno)));
  }
  return socket;
}

class MicroServer final : public StatusServer {
 public:
  explicit MicroServer(Pages pages) : pages_(std::move(pages)) {}

  absl::Status Open(const std::string& text) {
    TY_ASSIGN_OR_RETURN(const sockaddr_in6 address, ParseAddress(text));
    TY_ASSIGN_OR_RETURN(Fd socket, Listen(text, address));
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      return ErrnoStatus(errno, "cannot ask for the port");
    }
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    return loop_.Start(std::move(socket),
                       {.limits = {.most = kMostConnections, .most_strangers = kMostConnections},
                        .request_timeout = kTimeout,
                        .write_timeout = kTimeout,
                        .on_request = &Answer,
                        .self = this});
  }
  std::uint16_t port() const override { return port_; }

 private:
  static MHD_Result Answer(void* self, MHD_Connection* connection, const char* path, const char* method,
                           const char* /*version*/, const char* /*body*/, size_t* /*body_size*/,
                           void** /*state*/) {
    const std::string_view verb = method;
    StatusPage page{.code = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET only\n"};
    if (verb == "GET" || verb == "HEAD") page = static_cast<MicroServer*>(self)->FindPage(path);
    MHD_Response* response =
        MHD_create_response_from_buffer(page.body.size(), page.body.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.content_type.c_str());
    const MHD_Result result = MHD_queue_response(connection, static_cast<unsigned>(page.code), response);
    MHD_destroy_response(response);
    return result;
  }

  StatusPage FindPage(std::string_view path) const {
    const auto found = pages_.find(path);
    if (found != pages_.end()) return found->second();
    std::string list;
    for (const auto& [name, page] : pages_) StrAppend(list, " ", name);
    return {.code = MHD_HTTP_NOT_FOUND, .body = StrCat("there is no such page; there are", list, "\n")};
  }

  const Pages pages_;
  std::uint16_t port_ = 0;
  HttpLoop loop_;  // goes before what it asks
};

}  // namespace

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const std::string& address, Pages pages) {
  auto server = std::make_unique<MicroServer>(std::move(pages));
  TY_RETURN_IF_ERROR(server->Open(address));
  return server;
}

}  // namespace trainyard::ops
