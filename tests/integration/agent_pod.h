// A real agent in a test: started, spoken to over real connections, and looked at.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/document.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/process.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::agent {

inline constexpr absl::Duration kPatience = absl::Seconds(60);
inline constexpr std::string_view kToken = "the-token";

// Looks again and again until it holds.
[[nodiscard]] inline bool Await(const std::function<bool()>& done) {
  const SteadyTime deadline = Clock::System().Steady() + kPatience;
  while (!done()) {
    if (Clock::System().Steady() > deadline) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

// The program as it is shipped.
inline std::string ShippedAgent() { return TRAINYARD_AGENT_SHIPPED; }
// The one that the tests talk to: with sanitizers one that has them too, and any other that is named.
inline std::string TestedAgent() {
  const char* named = std::getenv("TRAINYARD_AGENT");
  if (named != nullptr) return named;
#ifdef TRAINYARD_SANITIZED
  return TRAINYARD_AGENT_CHECKED;
#else
  return TRAINYARD_AGENT_SHIPPED;
#endif
}

struct HttpAnswer {
  int code = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  Document json() const {
    auto document = ParseJson(body);
    EXPECT_TRUE(document.ok()) << document.status() << ": " << body;
    return document.ok() ? *std::move(document) : Document();
  }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  std::string error() const { return std::string(StringAt(json(), {"error"})); }
  std::string state() const { return std::string(StringAt(json(), {"state"})); }
  std::string reason() const { return std::string(StringAt(json(), {"reason"})); }
};

// One connection, which does exactly what it is told. Waits within a bound.
class AgentClient {
 public:
  explicit AgentClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }

  bool connected() const { return connected_; }
  static std::string Print(std::string_view method, std::string_view target, std::string_view body = "",
                           std::string_view token = kToken) {
    return StrCat(method, " ", target, " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ", token,
                  "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Code 0: the server has closed before there was an answer.
  HttpAnswer ReadHead() {
    HttpAnswer answer;
    std::size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive()) return answer;
    }
    const std::string head = in_.substr(0, end);
    in_.erase(0, end + 4);
    answer.code = ParseNumber<int>(std::string_view(head).substr(9, 3)).value_or(-1);
    for (const std::string_view line : Split(head, '\n')) {
      const std::size_t colon = line.find(": ");
      if (colon == std::string_view::npos) continue;
      std::string name(line.substr(0, colon));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      answer.headers[name] = line.substr(colon + 2, line.find('\r') - colon - 2);
    }
    return answer;
  }
  // Of a body in chunks: the next one; nothing: it is over, or (broken) cut off.
  std::string ReadChunk(bool* broken = nullptr) {
    std::size_t line = 0;
    while ((line = in_.find("\r\n")) == std::string::npos) {
      if (!Receive()) return Break(broken);
    }
    const std::size_t size = ParseNumber<std::size_t>(std::string_view(in_).substr(0, line), 16).value_or(0);
    while (in_.size() < line + 2 + size + 2) {
      if (!Receive()) return Break(broken);
    }
    std::string chunk = in_.substr(line + 2, size);
    in_.erase(0, line + 2 + size + 2);
    return chunk;
  }
  HttpAnswer ReadAnswer() {
    HttpAnswer answer = ReadHead();
    if (answer.header("transfer-encoding") == "chunked") {
      for (std::string chunk; !(chunk = ReadChunk()).empty();) answer.body += chunk;
      return answer;
    }
    const bool sized = answer.headers.contains("content-length");
    const auto size = ParseNumber<std::size_t>(answer.header("content-length")).value_or(0);
    while ((!sized || in_.size() < size) && answer.code != 0) {
      if (!Receive()) break;
    }
    answer.body = in_.substr(0, sized ? size : in_.size());
    in_.erase(0, answer.body.size());
    return answer;
  }
  HttpAnswer Call(std::string_view method, std::string_view target, std::string_view body = "") {
    Send(Print(method, target, body));
    return ReadAnswer();
  }
  // Waits until the server closes.
  bool AwaitClosed() {
    while (Receive()) in_.clear();
    return closed_;
  }

 private:
  bool Receive() {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) != 1) {
      ADD_FAILURE() << "nothing came";
      return false;
    }
    char room[65536];
    const ssize_t got = ::recv(socket_.get(), room, sizeof room, 0);
    closed_ = got <= 0;
    if (got > 0) in_.append(room, static_cast<std::size_t>(got));
    return got > 0;
  }
  static std::string Break(bool* broken) {
    if (broken != nullptr) *broken = true;
    return "";
  }

  Fd socket_;
  bool connected_ = false;
  bool closed_ = false;
  std::string in_;
};

// What /proc has of a process; empty: there is none.
inline std::string ReadProc(pid_t pid, std::string_view file) {
  return ReadFile(StrCat("/proc/", pid, "/", file), std::size_t{1} << 20).value_or("");
}
inline std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const std::string text = ReadProc(pid, StrCat("task/", pid, "/children"));
  for (const std::string_view word : Split(text, ' ')) {
    if (const auto child = ParseNumber<pid_t>(word)) children.push_back(*child);
  }
  return children;
}
inline std::int64_t RssKib(pid_t pid) {
  const std::string status = ReadProc(pid, "status");
  const std::size_t at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::strtoll(status.c_str() + at + 6, nullptr, 10);
}
// How many processes of this machine have the text in their command line.
inline int CountProcesses(std::string_view marker) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = ParseNumber<pid_t>(entry.path().filename().string());
    if (pid && *pid != ::getpid() && ReadProc(*pid, "cmdline").find(marker) != std::string::npos) ++count;
  }
  return count;
}

class AgentPod {
 public:
  struct Options {
    std::vector<std::string> flags;
    std::vector<std::string> wrapper;  // what the program is run by
    std::map<std::string, std::string> env;
    std::string program = TestedAgent();
    int stdout_fd = -1;  // instead of a file
  };

  AgentPod() : AgentPod(Options()) {}
  explicit AgentPod(const Options& options) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0777));
    ProcessSpec spec;
    spec.argv = options.wrapper;
    spec.argv.push_back(options.program);
    spec.argv.insert(spec.argv.end(), {"--listen", "127.0.0.1:0", "--working-dir", folder_.path()});
    spec.argv.insert(spec.argv.end(), options.flags.begin(), options.flags.end());
    // The agent hides from other processes what it has, which is what the search for leaks needs.
    std::map<std::string, std::string> env = options.env;
    env.insert({{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
                {"TMPDIR", folder_.path()},
                {"TRAINYARD_AGENT_TOKEN", std::string(kToken)},
                {"ASAN_OPTIONS", "detect_leaks=0"}});
    spec.env.emplace(env.begin(), env.end());
    spec.stdout_path = folder_ / "stdout";
    spec.stderr_path = folder_ / "stderr";
    spec.stdout_fd = options.stdout_fd;
    auto child = Child::Spawn(spec);
    EXPECT_TRUE(child.ok()) << child.status();
    if (!child.ok()) return;
    child_ = std::make_unique<Child>(*std::move(child));
    EXPECT_TRUE(Await([this] { return FindPort() || child_->Wait(absl::ZeroDuration()).ok(); }));
    EXPECT_NE(port_, 0) << Stderr();
  }

  int port() const { return port_; }
  pid_t pid() const { return child_->pid(); }
  // The agent proper, below its guard.
  pid_t inner_pid() const {
    const std::vector<pid_t> children = ChildrenOf(pid());
    return children.empty() ? 0 : children.front();
  }
  std::string operator/(std::string_view name) const { return folder_ / name; }
  std::string Stdout() const { return ReadFile(folder_ / "stdout", std::size_t{64} << 20).value_or(""); }
  std::string Stderr() const { return ReadFile(folder_ / "stderr", std::size_t{64} << 20).value_or(""); }
  void Write(std::string_view name, std::string_view text) const {
    EXPECT_TRUE(ReplaceFile(folder_ / name, text, 0755, Durability::kProcess).ok());
  }

  HttpAnswer Call(std::string_view method, std::string_view target, std::string_view body = "") const {
    return AgentClient(port_).Call(method, target, body);
  }
  HttpAnswer Get(std::string_view target) const { return Call("GET", target); }
  HttpAnswer Post(std::string_view target, std::string_view body = "") const {
    return Call("POST", target, body);
  }
  static std::string ShellConfig(std::string_view script, int attempt = 1) {
    return PrintJson(
        Object{{"attempt", attempt}, {"env", Object{}}, {"command", Array{"sh", "-c", std::string(script)}}});
  }
  // Configures the attempt and runs it.
  void Run(std::string_view script, int attempt = 1) const {
    const HttpAnswer config = Post("/config", ShellConfig(script, attempt));
    EXPECT_EQ(config.code, 200) << config.body;
    const HttpAnswer run = Post(StrCat("/run?attempt=", attempt));
    EXPECT_EQ(run.code, 200) << run.body;
  }
  // Follows the status until it holds; the last one.
  HttpAnswer AwaitStatus(const std::function<bool(const HttpAnswer&)>& done) const {
    HttpAnswer status = Get("/status");
    const SteadyTime deadline = Clock::System().Steady() + kPatience;
    while (status.code == 200 && !done(status) && Clock::System().Steady() < deadline) {
      status = Get(StrCat("/status?wait=60&after=", *IntAt(status.json(), {"version"})));
    }
    return status;
  }
  HttpAnswer AwaitState(std::string_view state) const {
    HttpAnswer status = AwaitStatus([&](const HttpAnswer& s) { return s.state() == state; });
    EXPECT_EQ(status.state(), state) << status.body;
    return status;
  }
  // Until the script has printed it.
  void AwaitOutput(std::string_view text) const {
    EXPECT_TRUE(Await([&] { return Get("/logs").body.find(text) != std::string::npos; }))
        << Get("/logs").body;
  }
  ExitStatus AwaitExit() const {
    const auto status = child_->Wait(kPatience);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : ExitStatus(Exited{-1});
  }

 private:
  bool FindPort() {
    const std::string said = Stderr();
    const std::size_t at = said.find("listens on 127.0.0.1:");
    if (at == std::string::npos || said.find('\n', at) == std::string::npos) return false;
    port_ = std::atoi(said.c_str() + at + 21);
    return true;
  }

  testing_support::TempFolder folder_;
  std::unique_ptr<Child> child_;
  int port_ = 0;
};

// In the command line of every process that a test looks for.
inline std::string NewMarker() { return "987654" + std::to_string(IdSource::Random().Below(1'000'000'000)); }

}  // namespace trainyard::agent
