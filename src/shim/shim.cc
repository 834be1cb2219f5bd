#include "shim/shim.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "shim/bind_filter.h"

namespace trainyard::shim {
namespace {

constexpr int kFolderCheckMillis = 1000;
// A process forked by one that is being killed is found by the next look.
constexpr int kKillRounds = 5;

int ListenHere() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  kSocketName.copy(address.sun_path, sizeof address.sun_path - 1);
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(address.sun_path);
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 16) != 0) {
    return -1;
  }
  return socket.Release();
}

int CatchSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void KillOthers(const Membership& members) {
  for (int round = 0; round < kKillRounds; ++round) {
    if (SignalOthers(members, SIGKILL) == 0) return;
  }
}

}  // namespace

Failure ShimConfig::Read(ShimConfig& config) {
  std::string text;
  if (!ReadSmallFile(AT_FDCWD, std::string(kConfigName).c_str(), text)) {
    return Failure::Here("cannot read " + std::string(kConfigName));
  }
  const auto message = ParseNested(text);
  if (!message || message->verb() != kPod) return {.stage = std::string(kConfigName) + " is no pod's config"};
  config.sandbox = {.namespaces = ParseNamespaces(message->Get(key::kNamespaces)),
                    .own_pids = message->Flag(key::kOwnPids),
                    .hosts = message->Flag(key::kHosts),
                    .devices = message->Flag(key::kDevices),
                    .hostname = std::string(message->Get(key::kHostname))};
  const std::string address(message->Get(key::kAddress));
  if (!address.empty() && ::inet_pton(AF_INET, address.c_str(), &config.address) != 1) {
    return {.stage = "'" + address + "' is no IPv4 address"};
  }
  return Failure::None();
}

Shim::Shim(ShimConfig config, int machine_proc) : config_(std::move(config)) {
  place_.machine_proc = machine_proc;
  place_.namespaces = config_.sandbox.namespaces != Namespaces::kNone;
  place_.bind_filter = config_.address.s_addr != 0;
  char self[32] = {};
  if (::readlinkat(machine_proc, "self", self, sizeof self - 1) > 0) {
    machine_pid_ = static_cast<pid_t>(std::strtol(self, nullptr, 10));
  }
}

Failure Shim::Open() {
  state_ = OwnedFd(::open(std::string(kStateName).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!state_.valid()) return Failure::Here("cannot open the state file");
  if (::flock(state_.get(), LOCK_EX | LOCK_NB) != 0) return {.stage = "another shim has this pod"};
  signals_ = OwnedFd(CatchSignals());
  listener_ = OwnedFd(ListenHere());
  epoll_ = OwnedFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!signals_.valid() || !listener_.valid() || !epoll_.valid()) return Failure::Here("cannot listen");
  Watch(signals_.get(), Source::kSignals, 0, EPOLLIN);
  Watch(listener_.get(), Source::kListener, 0, EPOLLIN);
  const std::string begin =
      MessageWriter(kShim).Add(key::kPid, machine_pid_).Add(key::kVersion, kProtocolVersion).Take();
  return WriteAll(state_.get(), begin) ? Failure::None() : Failure::Here("cannot write the state file");
}

void Shim::Serve() {
  std::uint64_t folder_checked = SteadyMillis();
  while (!ending_) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, 64, WaitMillis());
    for (int i = 0; i < count && !ending_; ++i) {
      Dispatch(static_cast<Source>(events[i].data.u64 & 0xff),
               static_cast<std::uint32_t>(events[i].data.u64 >> 8), events[i].events);
    }
    EndLateExecs();
    if (SteadyMillis() - folder_checked < kFolderCheckMillis) continue;
    folder_checked = SteadyMillis();
    if (FolderIsGone()) ending_ = true;
  }
  KillEverything(config_.sandbox.own_pids);
  RecordKilledRuns();
  for (const auto& client : clients_) FlushClient(*client);
  if (!FolderIsGone()) ::unlink(std::string(kSocketName).c_str());
}

int Shim::WaitMillis() const {
  std::uint64_t wait = kFolderCheckMillis;
  const std::uint64_t now = SteadyMillis();
  for (const auto& run : runs_) {
    if (!run->is_exec || run->timed_out || run->deadline_millis == 0) continue;
    wait = std::min(wait, run->deadline_millis > now ? run->deadline_millis - now : 0);
  }
  return static_cast<int>(wait);
}

void Shim::Watch(int fd, Source source, std::uint32_t serial, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{serial} << 8 | static_cast<std::uint8_t>(source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

void Shim::Dispatch(Source source, std::uint32_t serial, std::uint32_t events) {
  if (source == Source::kListener) return Accept();
  if (source == Source::kSignals) return HandleSignals();
  if (source == Source::kClient) {
    if (Client* client = FindClient(serial); client != nullptr && (events & EPOLLOUT) != 0)
      FlushClient(*client);
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) ReadClient(serial);
    return;
  }
  Run* run = FindRun(serial);
  if (run == nullptr) return;
  if (source == Source::kReport) return ReadReports(*run);
  if (source == Source::kOut || source == Source::kErr) {
    (void)run->ReadStream(source == Source::kErr);
    return;
  }
  // A listener whose last process is gone only hangs up.
  if ((events & EPOLLIN) != 0) {
    AnswerCall(run->bind_listener.get(), config_.address, bound_ports_);
  } else {
    run->bind_listener.Reset();
  }
}

Failure Shim::LaunchRun(std::unique_ptr<Run> run, const LaunchSpec& spec, pid_t join) {
  run->serial = next_serial_++;
  run->cgroups = spec.cgroups;
  run->ooms_before = CountOomKills(run->cgroups);
  place_.join = join;
  if (Failure failure = Launch(spec, place_, run->is_exec, run->child); !failure.ok()) return failure;
  run->members.main = run->child.pid;
  Watch(run->child.out.get(), Source::kOut, run->serial, EPOLLIN);
  if (run->child.err.valid()) Watch(run->child.err.get(), Source::kErr, run->serial, EPOLLIN);
  Watch(run->child.report.get(), Source::kReport, run->serial, EPOLLIN);
  runs_.push_back(std::move(run));
  return Failure::None();
}

void Shim::ReadReports(Run& run) {
  bool ended = !run.child.report.valid();
  LaunchReport report;
  while (!ended && NextReport(run.child.report.get(), report, ended)) {
    if (report.machine_pid) run.machine_pid = *report.machine_pid;
    if (report.mark) {
      run.members.mark = report.mark;
      run.mark_holder = std::move(report.mark_holder);
    }
    if (!report.failure.ok()) run.failure = report.failure;
    if (!report.bind_listener.valid()) continue;
    run.bind_listener = std::move(report.bind_listener);
    Watch(run.bind_listener.get(), Source::kBind, run.serial, EPOLLIN);
  }
  if (!ended) return;
  run.child.report.Reset();
  if (run.stage != RunStage::kLaunching || !run.failure.ok()) return;
  run.stage = RunStage::kRunning;
  if (run.is_exec) return;
  Tell(MessageWriter(kStarted)
           .Add(key::kId, run.id)
           .Add(key::kPid, run.machine_pid)
           .Add(key::kTime, WallNanos())
           .Take());
}

void Shim::HandleSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) ending_ = true;
  }
  ReapChildren();
}

void Shim::ReapChildren() {
  int status = 0;
  pid_t pid = 0;
  bool others = false;  // processes of a container that is not its first
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    const auto run = std::ranges::find_if(
        runs_, [pid](const auto& r) { return r->child.pid == pid && r->stage != RunStage::kLeaving; });
    others = others || run == runs_.end() || (*run)->is_exec;
    if (run != runs_.end()) OnFirstEnded(**run, status);
  }
  if (others) FinishLeaving();
}

void Shim::OnFirstEnded(Run& run, int wait_status) {
  run.wait_status = wait_status;
  run.ended_nanos = WallNanos();
  ReadReports(run);
  if (run.is_exec) return FinishExec(run);
  if (!run.failure.ok()) {
    TellFailed(run);
    return ForgetRun(run);
  }
  if (run.stopping && SignalOthers(run.members, SIGTERM) > 0) {
    run.stage = RunStage::kLeaving;
    return;
  }
  FinishRun(run);
}

void Shim::TellFailed(const Run& run) {
  Tell(MessageWriter(kFailed)
           .Add(key::kId, run.id)
           .Add(key::kTime, run.ended_nanos)
           .Add(key::kError, run.failure.Text())
           .Take());
}

void Shim::FinishRun(Run& run) {
  KillOthers(run.members);
  run.DrainStreams();
  MessageWriter message(kExited);
  message.Add(key::kId, run.id).Add(key::kTime, run.ended_nanos);
  if (WIFSIGNALED(run.wait_status)) {
    message.Add(key::kSignal, WTERMSIG(run.wait_status));
  } else {
    message.Add(key::kCode, WEXITSTATUS(run.wait_status));
  }
  if (CountOomKills(run.cgroups) > run.ooms_before) message.Add(key::kOom, 1);
  Tell(std::move(message).Take());
  ForgetRun(run);
}

void Shim::FinishExec(Run& run) {
  run.DrainStreams();
  if (Client* client = FindClient(run.client); client != nullptr) {
    MessageWriter message(kAnswer, run.tag);
    if (!run.failure.ok()) message.Add(key::kError, run.failure.Text());
    if (run.timed_out) message.Add(key::kTimedOut, 1);
    if (WIFSIGNALED(run.wait_status)) {
      message.Add(key::kSignal, WTERMSIG(run.wait_status));
    } else {
      message.Add(key::kCode, WEXITSTATUS(run.wait_status));
    }
    Answer(*client, std::move(message.Add(key::kOutput, run.output)).Take());
  }
  ForgetRun(run);
}

void Shim::FinishLeaving() {
  for (std::size_t i = 0; i < runs_.size();) {
    Run& run = *runs_[i];
    if (run.stage == RunStage::kLeaving && SignalOthers(run.members, 0) == 0) {
      FinishRun(run);
    } else {
      ++i;
    }
  }
}

void Shim::EndLateExecs() {
  const std::uint64_t now = SteadyMillis();
  for (const auto& run : runs_) {
    if (!run->is_exec || run->timed_out || run->deadline_millis == 0 || now < run->deadline_millis) continue;
    run->timed_out = true;
    ::kill(-run->child.pid, SIGKILL);
    ::kill(run->child.pid, SIGKILL);
  }
}

void Shim::RecordKilledRuns() {
  for (const auto& run : runs_) {
    if (run->is_exec) continue;
    ReadReports(*run);  // it may have begun just now
    run->ended_nanos = WallNanos();
    if (!run->failure.ok()) {
      TellFailed(*run);
      continue;
    }
    run->DrainStreams();
    Tell(MessageWriter(kExited)
             .Add(key::kId, run->id)
             .Add(key::kTime, run->ended_nanos)
             .Add(key::kSignal, SIGKILL)
             .Take());
  }
  runs_.clear();
}

void Shim::Tell(const std::string& message) {
  (void)WriteAll(state_.get(), message);
  for (const auto& client : clients_) {
    if (client->greeted) Answer(*client, message);
  }
}

Run* Shim::FindRun(std::uint32_t serial) {
  const auto found = std::ranges::find_if(runs_, [serial](const auto& run) { return run->serial == serial; });
  return found == runs_.end() ? nullptr : found->get();
}

Run* Shim::FindContainer(std::string_view id) {
  const auto found =
      std::ranges::find_if(runs_, [id](const auto& run) { return !run->is_exec && run->id == id; });
  return found == runs_.end() ? nullptr : found->get();
}

void Shim::ForgetRun(const Run& run) {
  std::erase_if(runs_, [&run](const auto& other) { return other.get() == &run; });
}

bool Shim::FolderIsGone() const {
  struct stat info{};
  return ::stat(std::string(kSocketName).c_str(), &info) != 0;
}

}  // namespace trainyard::shim
