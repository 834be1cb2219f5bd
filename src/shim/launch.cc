#include "shim/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstring>

#include "shim/bind_filter.h"
#include "shim/members.h"

namespace trainyard::shim {
namespace {

// What goes over the report socket, with the listener's descriptor beside it where there is one.
struct WireReport {
  pid_t machine_pid = 0;
  ino_t mark = 0;
  int error = 0;
  char stage[1000] = {};
};

void Send(int socket, const WireReport& report, int descriptor) {
  iovec data{.iov_base = const_cast<WireReport*>(&report), .iov_len = sizeof report};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL);
}

void SendFailure(int socket, const Failure& failure) {
  WireReport report{.error = failure.error};
  std::strncpy(report.stage, failure.stage.c_str(), sizeof report.stage - 1);
  Send(socket, report, -1);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view PathOf(const std::vector<std::string>& env) {
  std::string_view path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& variable : env) {
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  }
  return path;
}

// Returns only on failure, with the words of a container runtime.
Failure Execute(const LaunchSpec& spec) {
  const std::string& program = spec.args[0];
  const std::vector<char*> args = Pointers(spec.args);
  const std::vector<char*> env = Pointers(spec.env);
  if (program.find('/') != std::string::npos) {
    ::execve(program.c_str(), args.data(), env.data());
    return Failure::Here("exec: \"" + program + "\"");
  }
  bool denied = false;
  std::string_view rest = PathOf(spec.env);
  while (true) {
    const std::size_t colon = rest.find(':');
    std::string candidate(rest.substr(0, colon));
    candidate += candidate.empty() ? "./" : "/";
    candidate += program;
    ::execve(candidate.c_str(), args.data(), env.data());
    if (errno == EACCES) denied = true;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
      return Failure::Here("exec: \"" + candidate + "\"");
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (denied) return {.stage = "exec: \"" + program + "\"", .error = EACCES};
  return {.stage = "exec: \"" + program + "\": executable file not found in $PATH"};
}

Failure JoinCgroups(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (!WriteSmallFile((folder + "/cgroup.procs").c_str(), "0"))
      return Failure::Here("cannot join cgroup " + folder);
  }
  return Failure::None();
}

Failure TakeView(const LaunchSpec& spec, const LaunchPlace& place) {
  if (place.join > 0) {
    const OwnedFd container(PidfdOpen(place.join, 0));
    if (!container.valid()) return Failure::Here("the container does not run");
    if (place.namespaces && ::setns(container.get(), CLONE_NEWNS | CLONE_NEWUTS) != 0) {
      return Failure::Here("cannot join the container");
    }
    return Failure::None();
  }
  if (!place.namespaces) {
    if (spec.mounts.empty()) return Failure::None();
    return {.stage = "volumes cannot be mounted: this machine permits no mount namespaces"};
  }
  const int flags = CLONE_NEWUTS | (spec.mounts.empty() ? 0 : CLONE_NEWNS);
  if (::unshare(flags) != 0) return Failure::Here("cannot make the container's namespaces");
  return MountAll(spec.mounts);
}

Failure BecomeUser(const LaunchSpec& spec) {
  if (!spec.groups.empty() && ::setgroups(spec.groups.size(), spec.groups.data()) != 0) {
    return Failure::Here("cannot set the supplementary groups");
  }
  if (spec.gid && ::setresgid(*spec.gid, *spec.gid, *spec.gid) != 0) {
    return Failure::Here("cannot run as group " + std::to_string(*spec.gid));
  }
  if (spec.uid && ::setresuid(*spec.uid, *spec.uid, *spec.uid) != 0) {
    return Failure::Here("cannot run as user " + std::to_string(*spec.uid));
  }
  return Failure::None();
}

void RestoreSignals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

Failure InstallFilter(int report) {
  const OwnedFd listener(InstallBindFilter());
  if (!listener.valid()) return Failure::Here("cannot give the process the pod's address");
  Send(report, {}, listener.get());
  return Failure::None();
}

// The machine's number of this process: what its own /proc calls "self".
void TellPid(const LaunchPlace& place, int report) {
  char self[32] = {};
  if (::readlinkat(place.machine_proc, "self", self, sizeof self - 1) > 0) {
    Send(report, {.machine_pid = static_cast<pid_t>(std::strtol(self, nullptr, 10))}, -1);
  }
}

Failure Prepare(const LaunchSpec& spec, const LaunchPlace& place, int report) {
  ::setsid();
  TellPid(place, report);
  if (Failure failure = JoinCgroups(spec.cgroups); !failure.ok()) return failure;
  if (Failure failure = TakeView(spec, place); !failure.ok()) return failure;
  // Told from here, because a process that has ended at once has none any more.
  if (place.namespaces && place.join == 0) {
    const OwnedFd holder(::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
    Send(report, {.mark = FindMark(::getpid()).value_or(0)}, holder.get());
  }
  for (const LaunchSpec::Limit& limit : spec.limits) {
    if (::setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &limit.values) != 0) {
      return Failure::Here("cannot set resource limit " + std::to_string(limit.resource));
    }
  }
  if (place.bind_filter) {
    if (Failure failure = InstallFilter(report); !failure.ok()) return failure;
  }
  if (Failure failure = BecomeUser(spec); !failure.ok()) return failure;
  if (spec.no_new_privileges) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // After the change of user, which would forget it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (!spec.cwd.empty() && ::chdir(spec.cwd.c_str()) != 0) {
    return Failure::Here("cannot change to working directory " + spec.cwd);
  }
  RestoreSignals();
  return Failure::None();
}

[[noreturn]] void RunChild(const LaunchSpec& spec, const LaunchPlace& place, int out, int err, int report) {
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  Failure failure = Prepare(spec, place, report);
  if (failure.ok()) {
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    failure = Execute(spec);
  }
  SendFailure(report, failure);
  ::_exit(127);
}

template <typename T>
bool ParseNumbers(const MessageReader& message, std::string_view key, std::vector<T>& out) {
  for (const std::string_view text : message.All(key)) {
    const auto number = MessageReader::ToNumber<T>(text);
    if (!number) return false;
    out.push_back(*number);
  }
  return true;
}

bool ParseLimit(std::string_view text, LaunchSpec::Limit& limit) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  const auto resource = MessageReader::ToNumber<int>(text.substr(0, first));
  const auto soft = MessageReader::ToNumber<rlim_t>(text.substr(first + 1, second - first - 1));
  const auto hard = MessageReader::ToNumber<rlim_t>(text.substr(second + 1));
  if (!resource || !soft || !hard) return false;
  limit = {.resource = *resource, .values = {.rlim_cur = *soft, .rlim_max = *hard}};
  return true;
}

std::vector<std::string> Copies(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

}  // namespace

std::optional<LaunchSpec> LaunchSpec::Parse(const MessageReader& message, std::string& wrong) {
  LaunchSpec spec;
  spec.args = Copies(message.All(key::kArg));
  spec.env = Copies(message.All(key::kEnv));
  spec.cgroups = Copies(message.All(key::kCgroup));
  spec.cwd = message.Get(key::kCwd);
  spec.no_new_privileges = message.Flag(key::kNoNewPrivileges);
  spec.uid = message.Number<uid_t>(key::kUid);
  spec.gid = message.Number<gid_t>(key::kGid);
  wrong = "no program to run";
  if (spec.args.empty() || spec.args[0].empty()) return std::nullopt;
  wrong = "a uid, gid or group that is no number";
  if (spec.uid.has_value() != message.Find(key::kUid).has_value()) return std::nullopt;
  if (spec.gid.has_value() != message.Find(key::kGid).has_value()) return std::nullopt;
  if (!ParseNumbers(message, key::kGroup, spec.groups)) return std::nullopt;
  wrong = "an rlimit that is not RESOURCE:SOFT:HARD";
  for (const std::string_view text : message.All(key::kRlimit)) {
    if (!ParseLimit(text, spec.limits.emplace_back())) return std::nullopt;
  }
  wrong = "a mount that is no nested message";
  for (const std::string_view text : message.All(key::kMount)) {
    const auto nested = ParseNested(text);
    if (!nested) return std::nullopt;
    spec.mounts.push_back({.source = std::string(nested->Get(key::kSource)),
                           .target = std::string(nested->Get(key::kTarget)),
                           .read_only = nested->Flag(key::kReadOnly)});
  }
  wrong.clear();
  return spec;
}

Failure Launch(const LaunchSpec& spec, const LaunchPlace& place, bool one_stream, Launched& launched) {
  int out[2];
  int err[2] = {-1, -1};
  int report[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return Failure::Here("cannot make a pipe");
  OwnedFd out_write(out[1]);
  launched.out = OwnedFd(out[0]);
  if (!one_stream && ::pipe2(err, O_CLOEXEC) != 0) return Failure::Here("cannot make a pipe");
  OwnedFd err_write(err[1]);
  launched.err = OwnedFd(err[0]);
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) != 0)
    return Failure::Here("cannot make a socket");
  const OwnedFd child_report(report[1]);
  launched.report = OwnedFd(report[0]);
  for (const int fd : {out[0], err[0], report[0]}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  launched.pid = ::fork();
  if (launched.pid < 0) return Failure::Here("cannot fork");
  if (launched.pid == 0) RunChild(spec, place, out[1], one_stream ? out[1] : err[1], report[1]);
  return Failure::None();
}

bool NextReport(int socket, LaunchReport& report, bool& ended) {
  WireReport wire;
  iovec data{.iov_base = &wire, .iov_len = sizeof wire};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (got != sizeof wire) return false;
  wire.stage[sizeof wire.stage - 1] = '\0';
  report = {};
  if (wire.machine_pid > 0) report.machine_pid = wire.machine_pid;
  if (wire.mark > 0) report.mark = wire.mark;
  report.failure = {.stage = wire.stage, .error = wire.error};
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    (report.mark ? report.mark_holder : report.bind_listener) = OwnedFd(descriptor);
  }
  return true;
}

}  // namespace trainyard::shim
