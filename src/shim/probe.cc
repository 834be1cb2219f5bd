#include "shim/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/bind_filter.h"
#include "shim/launch.h"

namespace trainyard::shim {
namespace {

constexpr std::uint32_t kTrialAddress = 0x7f7ffe01;  // 127.127.254.1
constexpr int kTrialMillis = 2000;

// Runs `test` in a child; what it returns comes back, empty if all is well.
template <typename Test>
std::string InChild(const Test& test) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "cannot make a pipe";
  const OwnedFd reader(ends[0]);
  OwnedFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string wrong = test();
    (void)WriteAll(writer.get(), wrong.empty() ? "ok" : wrong);
    ::_exit(0);
  }
  writer.Reset();
  char text[1024];
  const ssize_t size = child < 0 ? -1 : ::read(reader.get(), text, sizeof text);
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (size <= 0) return "the trial ended without a word";
  const std::string answer(text, static_cast<std::size_t>(size));
  return answer == "ok" ? "" : answer;
}

// Serves the trial's process until it has ended.
std::string ServeTrial(Launched& launched) {
  OwnedFd listener;
  BoundPorts bound;
  std::string wrong;
  bool ended = false;
  const std::uint64_t deadline = SteadyMillis() + kTrialMillis;
  while (SteadyMillis() < deadline) {
    pollfd fds[] = {{.fd = launched.out.get(), .events = POLLIN, .revents = 0},
                    {.fd = ended ? -1 : launched.report.get(), .events = POLLIN, .revents = 0},
                    {.fd = listener.get(), .events = POLLIN, .revents = 0}};
    ::poll(fds, 3, kTrialMillis);
    LaunchReport report;
    while (!ended && NextReport(launched.report.get(), report, ended)) {
      if (!report.failure.ok()) wrong = report.failure.Text();
      if (report.bind_listener.valid()) listener = std::move(report.bind_listener);
    }
    if ((fds[2].revents & POLLIN) != 0) AnswerCall(listener.get(), {.s_addr = htonl(kTrialAddress)}, bound);
    if ((fds[0].revents & POLLHUP) != 0) break;
  }
  ::kill(launched.pid, SIGKILL);
  int status = 0;
  ::waitpid(launched.pid, &status, 0);
  if (!wrong.empty()) return wrong;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "bind() is not passed on to the shim";
}

std::string TryBindFilter() {
  LaunchSpec spec;
  spec.args = {"/proc/self/exe", "bind-trial"};
  LaunchPlace place;
  place.bind_filter = true;
  Launched launched;
  if (const Failure failure = Launch(spec, place, true, launched); !failure.ok()) return failure.Text();
  return ServeTrial(launched);
}

// Two verdicts in one word: whether the sandbox can be had, and whether in it the filter can.
std::string TrySandbox(const SandboxConfig& config, std::string& filter_reason) {
  const std::string answer = InChild([&config]() -> std::string {
    if (const Failure failure = LeaveMachine(config); !failure.ok()) return failure.Text();
    return InChild([&config]() -> std::string {
      if (const Failure failure = SetUpSandbox(config); !failure.ok()) return failure.Text();
      const std::string wrong = TryBindFilter();
      return wrong.empty() ? "" : "filter: " + wrong;
    });
  });
  if (!answer.starts_with("filter: ")) return answer;
  filter_reason = answer.substr(8);
  return "";
}

}  // namespace

Permitted ProbeMachine() {
  Permitted permitted;
  SandboxConfig config{.devices = true, .hostname = "trial"};
  for (const Namespaces namespaces : {Namespaces::kRoot, Namespaces::kUser, Namespaces::kNone}) {
    if (namespaces == Namespaces::kRoot && ::geteuid() != 0) continue;
    for (const bool own_pids : {true, false}) {
      if (namespaces == Namespaces::kNone && own_pids) continue;
      config.namespaces = namespaces;
      config.own_pids = own_pids;
      std::string filter_reason;
      const std::string wrong = TrySandbox(config, filter_reason);
      if (!wrong.empty()) {
        if (permitted.namespaces_reason.empty()) permitted.namespaces_reason = wrong;
        continue;
      }
      permitted.namespaces = namespaces;
      permitted.own_pids = own_pids;
      permitted.bind_filter = filter_reason.empty();
      permitted.bind_filter_reason = filter_reason;
      return permitted;
    }
  }
  return permitted;
}

int RunBindTrial() {
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  // A port that hardly anybody has at that address.
  address.sin_port = htons(static_cast<std::uint16_t>(20000 + WallNanos() / 1000 % 10000));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 2;
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 2;
  return address.sin_addr.s_addr == htonl(kTrialAddress) ? 0 : 3;
}

}  // namespace trainyard::shim
