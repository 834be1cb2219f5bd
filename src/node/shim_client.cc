#include "node/shim_client.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

namespace key = shim::key;

// A socket's path has room for 107 bytes only, so it is named through the folder's descriptor.
absl::StatusOr<Fd> ConnectSocket(const PodFolder& folder) {
  const Fd place(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.valid()) return ErrnoStatus(errno, StrCat("cannot open ", folder.path()));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  StrCat("/proc/self/fd/", place.get(), "/", shim::kSocketName)
      .copy(address.sun_path, sizeof address.sun_path - 1);
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return absl::UnavailableError(StrCat("no shim listens in ", folder.path()));
  }
  return socket;
}

void AddLaunch(shim::MessageWriter& message, const Launch& launch) {
  for (const std::string& arg : launch.args) message.Add(key::kArg, arg);
  for (const auto& [name, value] : launch.env) message.Add(key::kEnv, StrCat(name, "=", value));
  if (!launch.cwd.empty()) message.Add(key::kCwd, launch.cwd);
  if (launch.uid) message.Add(key::kUid, *launch.uid);
  if (launch.gid) message.Add(key::kGid, *launch.gid);
  for (const gid_t group : launch.groups) message.Add(key::kGroup, group);
  if (launch.no_new_privileges) message.Add(key::kNoNewPrivileges, 1);
}

ExecResult ToExecResult(const shim::MessageReader* answer) {
  if (answer == nullptr) return {.message = "the pod's shim is gone"};
  if (const auto error = answer->Find(key::kError)) return {.message = std::string(*error)};
  const std::string output(answer->Get(key::kOutput));
  if (answer->Flag(key::kTimedOut)) return {.message = StrCat("command timed out: ", output)};
  return {.ok = answer->Number<int>(key::kCode) == 0, .message = output};
}

}  // namespace

absl::Status WriteShimConfig(const PodFolder& folder, const ShimConfig& config) {
  const bool namespaces = config.machine.has_namespaces();
  shim::MessageWriter message(shim::kPod);
  message.Add(key::kNamespaces, config.machine.namespaces)
      .Add(key::kOwnPids, config.machine.own_pids ? 1 : 0)
      .Add(key::kHosts, namespaces && config.hosts ? 1 : 0)
      .Add(key::kDevices, namespaces ? 1 : 0)
      .Add(key::kHostname, namespaces ? config.hostname : "");
  if (config.machine.bind_filter) message.Add(key::kAddress, config.address);
  return ReplaceFile(folder.Config(), message.Take(), 0600, Durability::kProcess);
}

// ---- starting one

absl::StatusOr<std::unique_ptr<ShimStart>> ShimStart::Begin(Loop& loop, const std::string& shim,
                                                            const PodFolder& folder, Done done) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  Fd reader(ends[0]);
  const Fd writer(ends[1]);
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  ProcessSpec spec;
  spec.argv = {shim, "run", folder.path()};
  spec.stdout_fd = writer.get();
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  auto start =
      std::unique_ptr<ShimStart>(new ShimStart(loop, std::move(child), std::move(reader), std::move(done)));
  loop.Watch(start->pipe_.get(), EPOLLIN, [start = start.get()](std::uint32_t) { start->Read(); });
  return start;
}

ShimStart::~ShimStart() {
  if (pipe_.valid()) loop_.Forget(pipe_.get());
}

void ShimStart::Read() {
  char room[4096];
  const ssize_t got = ::read(pipe_.get(), room, sizeof room);
  if (got > 0) text_.append(room, static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) Finish();
}

void ShimStart::Finish() {
  loop_.Forget(pipe_.get());
  pipe_.Reset();
  // Its part was to fork and to leave; that is over when the pipe is closed, or all but.
  (void)child_.Wait();
  const Done done = std::move(done_);
  const auto answer = shim::ParseNested(text_);
  if (!answer) return done(absl::InternalError("the shim ended before it was ready"));
  if (const auto error = answer->Find(key::kError)) return done(absl::InternalError(std::string(*error)));
  done(answer->Number<pid_t>(key::kPid).value_or(0));
}

// ---- speaking to one

absl::StatusOr<std::unique_ptr<ShimClient>> ShimClient::Connect(Loop& loop, const PodFolder& folder,
                                                                Callbacks callbacks) {
  TY_ASSIGN_OR_RETURN(Fd socket, ConnectSocket(folder));
  auto client = std::unique_ptr<ShimClient>(new ShimClient(loop, std::move(socket), std::move(callbacks)));
  loop.Watch(client->socket_.get(), EPOLLIN,
             [c = client.get()](std::uint32_t events) { c->OnReady(events); });
  const std::uint64_t tag = client->next_tag_++;
  client->Send(shim::MessageWriter(shim::kHello, tag).Add(key::kVersion, shim::kProtocolVersion), tag,
               [](const shim::MessageReader*) {});
  return client;
}

ShimClient::~ShimClient() {
  *alive_ = false;
  if (socket_.valid()) loop_.Forget(socket_.get());
}

void ShimClient::Start(const ShimRun& run, std::function<void(std::string why)> failed) {
  const std::uint64_t tag = next_tag_++;
  shim::MessageWriter message(shim::kStart, tag);
  message.Add(key::kId, run.id)
      .Add(key::kLog, run.log)
      .Add(key::kLogBytes, run.log_bytes)
      .Add(key::kLogFiles, run.log_files);
  AddLaunch(message, run.launch);
  for (const std::string& cgroup : run.cgroups) message.Add(key::kCgroup, cgroup);
  for (const LaunchMount& mount : run.launch.mounts) {
    message.Add(key::kMount, shim::MessageWriter(key::kMount)
                                 .Add(key::kSource, mount.source)
                                 .Add(key::kTarget, mount.target)
                                 .Add(key::kReadOnly, mount.read_only ? 1 : 0)
                                 .Take());
  }
  Send(std::move(message), tag, [failed = std::move(failed)](const shim::MessageReader* answer) {
    if (answer == nullptr) return;  // told as gone
    if (const auto error = answer->Find(key::kError)) failed(std::string(*error));
  });
}

void ShimClient::Signal(const std::string& id, int signal) {
  const std::uint64_t tag = next_tag_++;
  // A refusal says that the container has ended meanwhile, which is told by itself.
  Send(shim::MessageWriter(shim::kSignal, tag).Add(key::kId, id).Add(key::kSignal, signal), tag,
       [](const shim::MessageReader*) {});
}

void ShimClient::Exec(const std::string& id, const Launch& launch, absl::Duration timeout,
                      std::function<void(ExecResult)> done) {
  const std::uint64_t tag = next_tag_++;
  shim::MessageWriter message(shim::kExec, tag);
  message.Add(key::kId, id).Add(key::kOutputLimit, 4096);
  if (timeout != absl::InfiniteDuration()) {
    message.Add(key::kTimeout, std::max<std::int64_t>(absl::ToInt64Milliseconds(timeout), 1));
  }
  AddLaunch(message, launch);
  Send(std::move(message), tag,
       [done = std::move(done)](const shim::MessageReader* answer) { done(ToExecResult(answer)); });
}

void ShimClient::Shutdown() {
  const std::uint64_t tag = next_tag_++;
  Send(shim::MessageWriter(shim::kShutdown, tag), tag, [](const shim::MessageReader*) {});
}

void ShimClient::Kill() {
  // The number of the process that listens, as this process counts.
  ucred shim{};
  socklen_t size = sizeof shim;
  if (connected() && ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &shim, &size) == 0 &&
      shim.pid > 0) {
    ::kill(shim.pid, SIGKILL);
  }
}

void ShimClient::Send(shim::MessageWriter message, std::uint64_t tag, Answered answered) {
  if (!connected()) return;
  waiting_[tag] = std::move(answered);
  out_ += message.Take();
  Flush();
}

// Only writes: a line that broke is noticed by the one who reads, never in the middle of a caller's work.
void ShimClient::Flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) break;
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  if (writing_ == out_.empty()) {
    writing_ = !out_.empty();
    loop_.Change(socket_.get(), writing_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
}

void ShimClient::OnReady(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  char room[65536];
  const ssize_t got = ::read(socket_.get(), room, sizeof room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Lose();
  in_.append(room, static_cast<std::size_t>(got));
  const std::shared_ptr<bool> alive = alive_;
  if (!TakeMessages() && *alive) Lose();
}

// False: what comes is no message.
bool ShimClient::TakeMessages() {
  const std::shared_ptr<bool> alive = alive_;
  while (true) {
    const shim::Frame frame = shim::FindFrame(in_);
    if (frame.framing == shim::Framing::kIncomplete) return true;
    if (frame.framing == shim::Framing::kGarbage) return false;
    const std::string bytes = in_.substr(0, frame.size);
    in_.erase(0, frame.size);
    const auto message = shim::MessageReader::Parse(bytes);
    if (!message) return false;
    if (message->verb() == shim::kAnswer) {
      auto waiting = waiting_.extract(message->tag());
      if (!waiting.empty()) waiting.mapped()(&*message);
    } else if (const auto event = ParseStateEvent(bytes)) {
      callbacks_.event(*event);
    }
    if (!*alive) return true;
  }
}

void ShimClient::Lose() {
  loop_.Forget(socket_.get());
  socket_.Reset();
  const std::shared_ptr<bool> alive = alive_;
  const auto waiting = std::move(waiting_);
  waiting_.clear();
  for (const auto& [tag, answered] : waiting) {
    answered(nullptr);
    if (!*alive) return;
  }
  const std::function<void()> gone = callbacks_.gone;
  gone();
}

}  // namespace trainyard::node
