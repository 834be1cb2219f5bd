#include "node/probes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace trainyard::node {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{10} << 10;

}  // namespace

int ResolvePort(std::string_view port, const ContainerSpec& container) {
  if (const auto number = ParseNumber<int>(port)) return *number > 0 && *number < 65536 ? *number : 0;
  for (const ContainerPort& known : container.ports) {
    if (!known.name.empty() && known.name == port) return known.number;
  }
  return 0;
}

std::string PrintHttpRequest(const HttpAction& action, std::string_view host, int port) {
  bool own_host = false;
  bool own_agent = false;
  std::string headers;
  for (const auto& [name, value] : action.headers) {
    StrAppend(headers, name, ": ", value, "\r\n");
    own_host = own_host || ::strcasecmp(name.c_str(), "host") == 0;
    own_agent = own_agent || ::strcasecmp(name.c_str(), "user-agent") == 0;
  }
  std::string request = StrCat("GET ", action.path, " HTTP/1.1\r\n");
  if (!own_host) StrAppend(request, "Host: ", host, ":", port, "\r\n");
  if (!own_agent) StrAppend(request, "User-Agent: kube-probe/trainyard\r\n");
  return StrCat(request, "Accept: */*\r\nConnection: close\r\n", headers, "\r\n");
}

std::optional<int> ParseHttpCode(std::string_view answer) {
  const std::size_t end = answer.find('\n');
  if (!answer.starts_with("HTTP/1.") || end == std::string_view::npos) return std::nullopt;
  const std::size_t space = answer.find(' ');
  if (space == std::string_view::npos || space + 4 > end) return std::nullopt;
  return ParseNumber<int>(answer.substr(space + 1, 3));
}

std::unique_ptr<NetworkProbe> NetworkProbe::Begin(Loop& loop, Target target, absl::Duration timeout,
                                                  Done done) {
  auto probe = std::unique_ptr<NetworkProbe>(new NetworkProbe(loop, std::move(target), std::move(done)));
  NetworkProbe* const self = probe.get();
  std::string why = self->Connect();
  // Told later, so that whoever asks is never called back before it has the probe.
  const SteadyTime now = loop.clock().Steady();
  ProbeOutcome outcome{.message = why.empty() ? "timed out" : why};
  self->timer_ = loop.At(why.empty() ? now + timeout : now, [self, outcome = std::move(outcome)] {
    self->timer_ = 0;
    self->Finish(outcome);
  });
  return probe;
}

NetworkProbe::~NetworkProbe() {
  if (socket_.valid()) loop_.Forget(socket_.get());
  if (timer_ != 0) loop_.Cancel(timer_);
}

std::string NetworkProbe::Connect() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(target_.port));
  if (target_.port == 0 || ::inet_pton(AF_INET, target_.address.c_str(), &address.sin_addr) != 1) {
    return StrCat("no such address: ", target_.address, ":", target_.port);
  }
  socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected != 0 && errno != EINPROGRESS) {
    return StrCat("dial tcp ", target_.address, ":", target_.port, ": connect: ", std::strerror(errno));
  }
  loop_.Watch(socket_.get(), EPOLLOUT, [this](std::uint32_t events) { OnReady(events); });
  return "";
}

void NetworkProbe::OnReady(std::uint32_t /*events*/) { connected_ ? Read() : OnConnected(); }

void NetworkProbe::OnConnected() {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    return Finish({.message = StrCat("dial tcp ", target_.address, ":", target_.port,
                                     ": connect: ", std::strerror(error))});
  }
  connected_ = true;
  if (target_.request.empty()) return Finish({.ok = true});
  // A request is small beside what a fresh connection takes.
  const ssize_t sent = ::send(socket_.get(), target_.request.data(), target_.request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(target_.request.size()))
    return Finish({.message = "cannot send the request"});
  loop_.Change(socket_.get(), EPOLLIN);
}

void NetworkProbe::Read() {
  char room[4096];
  const ssize_t got = ::read(socket_.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) answer_.append(room, static_cast<std::size_t>(got));
  const auto code = ParseHttpCode(answer_);
  if (code) {
    // A redirection is an answer; where it leads is not asked.
    if (*code >= 200 && *code < 400) return Finish({.ok = true});
    return Finish({.message = StrCat("HTTP probe failed with statuscode: ", *code)});
  }
  if (got <= 0 || answer_.size() > kMaxAnswerBytes) Finish({.message = "the answer is no HTTP"});
}

void NetworkProbe::Finish(ProbeOutcome outcome) {
  if (socket_.valid()) loop_.Forget(socket_.get());
  socket_.Reset();
  if (timer_ != 0) loop_.Cancel(timer_);
  timer_ = 0;
  const Done done = std::move(done_);
  done(std::move(outcome));  // may destroy this
}

}  // namespace trainyard::node
