// The shim's clients: what they ask, and what is sent to them.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "shim/shim.h"

namespace trainyard::shim {
namespace {

constexpr std::size_t kMaxClients = 8;
// A client that reads no more is dropped; it finds everything in the state file when it comes back.
constexpr std::size_t kMaxBacklogBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;

std::string Refusal(std::uint64_t tag, std::string_view why) {
  return MessageWriter(kAnswer, tag).Add(key::kError, why).Take();
}
std::string Done(std::uint64_t tag) { return MessageWriter(kAnswer, tag).Take(); }

}  // namespace

void Shim::Accept() {
  OwnedFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid() || clients_.size() == kMaxClients) return;
  auto client = std::make_unique<Client>();
  client->serial = next_serial_++;
  client->socket = std::move(socket);
  Watch(client->socket.get(), Source::kClient, client->serial, EPOLLIN);
  clients_.push_back(std::move(client));
}

void Shim::ReadClient(std::uint32_t serial) {
  static char room[65536];
  Client* client = FindClient(serial);
  if (client == nullptr) return;
  const ssize_t got = ::read(client->socket.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return DropClient(serial);
  client->in.append(room, static_cast<std::size_t>(got));
  std::size_t used = 0;
  while (!ending_) {
    const std::string_view rest = std::string_view(client->in).substr(used);
    const Frame frame = FindFrame(rest);
    if (frame.framing == Framing::kGarbage) return DropClient(serial);
    if (frame.framing == Framing::kIncomplete) break;
    const auto message = MessageReader::Parse(rest.substr(0, frame.size));
    if (!message) return DropClient(serial);
    Handle(*client, *message);
    if (FindClient(serial) == nullptr) return;
    used += frame.size;
  }
  client->in.erase(0, used);
  if (client->in.empty()) client->in.shrink_to_fit();
}

void Shim::Handle(Client& client, const MessageReader& message) {
  const std::uint64_t tag = message.tag();
  if (message.verb() == kHello) {
    client.greeted = true;
    return Answer(
        client,
        MessageWriter(kAnswer, tag).Add(key::kVersion, kProtocolVersion).Add(key::kPid, machine_pid_).Take());
  }
  if (message.verb() == kStart) return Answer(client, HandleStart(message));
  if (message.verb() == kSignal) return Answer(client, HandleSignal(message));
  if (message.verb() == kStatus) return Answer(client, DescribeRuns(tag));
  if (message.verb() == kExec) {
    std::string refusal = HandleExec(client, message);
    if (!refusal.empty()) Answer(client, std::move(refusal));
    return;
  }
  if (message.verb() == kShutdown) {
    ending_ = true;
    return Answer(client, Done(tag));
  }
  Answer(client, Refusal(tag, "unknown verb '" + std::string(message.verb()) + "'"));
}

std::string Shim::HandleStart(const MessageReader& message) {
  auto run = std::make_unique<Run>();
  run->id = message.Get(key::kId);
  if (run->id.empty()) return Refusal(message.tag(), "a start without an id");
  if (FindContainer(run->id) != nullptr) return Refusal(message.tag(), run->id + " runs already");
  std::string wrong;
  const auto spec = LaunchSpec::Parse(message, wrong);
  if (!spec) return Refusal(message.tag(), wrong);
  LogFile::Limits limits;
  limits.bytes = message.Number<std::uint64_t>(key::kLogBytes).value_or(limits.bytes);
  limits.files = message.Number<unsigned>(key::kLogFiles).value_or(limits.files);
  Failure failure = run->log.Open(std::string(message.Get(key::kLog, "/dev/null")), limits);
  if (failure.ok()) failure = LaunchRun(std::move(run), *spec, 0);
  return failure.ok() ? Done(message.tag()) : Refusal(message.tag(), failure.Text());
}

std::string Shim::HandleSignal(const MessageReader& message) {
  Run* run = FindContainer(message.Get(key::kId));
  const auto signal = message.Number<int>(key::kSignal);
  if (!signal || *signal < 1 || *signal >= NSIG) return Refusal(message.tag(), "no such signal");
  if (run == nullptr) return Refusal(message.tag(), "no such container runs");
  if (*signal != SIGKILL) run->stopping = true;
  if (run->stage != RunStage::kLeaving) ::kill(run->child.pid, *signal);
  if (*signal == SIGKILL) {
    run->stopping = false;
    (void)SignalOthers(run->members, SIGKILL);
    if (run->stage == RunStage::kLeaving) FinishRun(*run);
  }
  return Done(message.tag());
}

// Empty: it runs, and the answer comes when it has ended.
std::string Shim::HandleExec(Client& client, const MessageReader& message) {
  const Run* container = FindContainer(message.Get(key::kId));
  if (container == nullptr || container->stage != RunStage::kRunning) {
    return Refusal(message.tag(), "the container does not run");
  }
  std::string wrong;
  const auto spec = LaunchSpec::Parse(message, wrong);
  if (!spec) return Refusal(message.tag(), wrong);
  auto run = std::make_unique<Run>();
  run->is_exec = true;
  run->id = container->id;
  run->client = client.serial;
  run->tag = message.tag();
  run->output_limit =
      std::min(message.Number<std::size_t>(key::kOutputLimit).value_or(4096), kMaxOutputBytes);
  if (const auto timeout = message.Number<std::uint64_t>(key::kTimeout); timeout && *timeout > 0) {
    run->deadline_millis = SteadyMillis() + *timeout;
  }
  const Failure failure = LaunchRun(std::move(run), *spec, container->child.pid);
  return failure.ok() ? std::string() : Refusal(message.tag(), failure.Text());
}

std::string Shim::DescribeRuns(std::uint64_t tag) const {
  MessageWriter message(kAnswer, tag);
  for (const auto& run : runs_) {
    if (run->is_exec) continue;
    message.Add(
        key::kContainer,
        MessageWriter(key::kContainer).Add(key::kId, run->id).Add(key::kPid, run->machine_pid).Take());
  }
  return std::move(message).Take();
}

void Shim::Answer(Client& client, const std::string& message) {
  client.out += message;
  FlushClient(client);
}

void Shim::FlushClient(Client& client) {
  while (!client.out.empty()) {
    const ssize_t sent = ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) break;
    client.out.erase(0, static_cast<std::size_t>(sent));
  }
  // A client that is gone or stuck is dropped where it is read from; here others may still be looking at it.
  if (client.out.size() > kMaxBacklogBytes) {
    client.out.clear();
    ::shutdown(client.socket.get(), SHUT_RDWR);
  }
  const std::uint32_t events = client.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  Watch(client.socket.get(), Source::kClient, client.serial, events);
}

void Shim::DropClient(std::uint32_t serial) {
  std::erase_if(clients_, [serial](const auto& client) { return client->serial == serial; });
}

Shim::Client* Shim::FindClient(std::uint32_t serial) {
  const auto found = std::ranges::find_if(clients_, [serial](const auto& c) { return c->serial == serial; });
  return found == clients_.end() ? nullptr : found->get();
}

}  // namespace trainyard::shim
