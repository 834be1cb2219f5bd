// A pod with a real shim in a test: started, spoken to and looked at, without a node around it.
#pragma once

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "node/hosts.h"
#include "node/log_lines.h"
#include "node/shim_client.h"
#include "tests/support/temp_folder.h"

namespace trainyard::node {

inline constexpr absl::Duration kPatience = absl::Seconds(30);

// The shim of this program, installed once, and what the machine permits.
inline const std::string& TestShim() {
  static const testing_support::TempFolder* const folder = new testing_support::TempFolder;
  static const std::string path = [] {
    std::filesystem::permissions(folder->path(), std::filesystem::perms(0755));
    auto installed = InstallShim(folder->path());
    EXPECT_TRUE(installed.ok()) << installed.status();
    return installed.ok() ? *installed : "";
  }();
  static const bool removed = std::atexit([] { std::filesystem::remove_all(folder->path()); }) == 0;
  (void)removed;
  return path;
}

inline const Machine& TestMachine() {
  static const Machine machine = [] {
    auto probed = ProbeMachine(TestShim());
    EXPECT_TRUE(probed.ok()) << probed.status();
    return probed.ok() ? *probed : Machine{};
  }();
  return machine;
}

// How many processes of this machine have the text in their command line.
inline int CountProcesses(std::string_view marker) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (!ParseNumber<int>(pid) || pid == std::to_string(::getpid())) continue;
    const auto line = ReadFile("/proc/" + pid + "/cmdline", 1 << 20);
    if (line.ok() && line->find(marker) != std::string::npos) ++count;
  }
  return count;
}

class ShimPod {
 public:
  struct Options {
    Machine machine = TestMachine();
    std::string hostname = "pod-a";
    std::string address = "127.63.0.1";
    std::string hosts;
  };

  ShimPod(Loop& loop, std::string_view home, std::string_view uid, Options options)
      : loop_(loop), folder_(home, uid), options_(std::move(options)) {
    EXPECT_TRUE(MakePodFolder(folder_).ok());
    EXPECT_TRUE(WriteInPlace(folder_.Hosts(), options_.hosts).ok());
    EXPECT_TRUE(WriteShimConfig(
                    folder_,
                    {.machine = options_.machine, .hostname = options_.hostname, .address = options_.address})
                    .ok());
  }
  ~ShimPod() {
    if (client_ == nullptr || !client_->connected()) return;
    client_->Shutdown();
    EXPECT_TRUE(Await([this] { return gone_; })) << "the shim does not end";
  }
  ShimPod(const ShimPod&) = delete;
  ShimPod& operator=(const ShimPod&) = delete;

  const PodFolder& folder() const { return folder_; }
  ShimClient& client() { return *client_; }
  pid_t shim_pid() const { return shim_pid_; }
  bool gone() const { return gone_; }

  [[nodiscard]] bool Await(const std::function<bool()>& done) {
    const SteadyTime deadline = Clock::System().Steady() + kPatience;
    while (!done()) {
      if (Clock::System().Steady() > deadline) return false;
      loop_.Turn(absl::Milliseconds(20));
    }
    return true;
  }

  // Starts the shim and connects.
  void Start() {
    std::optional<absl::StatusOr<pid_t>> ready;
    auto start =
        ShimStart::Begin(loop_, TestShim(), folder_, [&](absl::StatusOr<pid_t> pid) { ready = pid; });
    ASSERT_TRUE(start.ok()) << start.status();
    ASSERT_TRUE(Await([&] { return ready.has_value(); })) << "no shim";
    ASSERT_TRUE(ready->ok()) << ready->status();
    shim_pid_ = **ready;
    Connect();
  }
  void Connect() {
    gone_ = false;
    auto client = ShimClient::Connect(loop_, folder_,
                                      {.event = [this](const StateEvent& event) { events_.push_back(event); },
                                       .gone = [this] { gone_ = true; }});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  // The client goes away; the shim stays.
  void Disconnect() { client_.reset(); }

  static Launch Shell(std::string script) {
    Launch launch;
    launch.args = {"/bin/sh", "-c", std::move(script)};
    launch.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}};
    launch.cwd = "/";
    return launch;
  }
  void Run(const std::string& id, const Launch& launch, std::vector<std::string> cgroups = {},
           std::uint64_t log_bytes = std::uint64_t{16} << 20) {
    const auto name = ParseRunId(id);
    ASSERT_TRUE(name);
    ASSERT_TRUE(PrepareRun(folder_, name->container, name->attempt).ok());
    client_->Start({.id = id,
                    .launch = launch,
                    .cgroups = std::move(cgroups),
                    .log = folder_.Log(name->container, name->attempt),
                    .log_bytes = log_bytes},
                   [id](const std::string& why) { ADD_FAILURE() << id << " refused: " << why; });
  }

  std::optional<StateEvent> Find(std::string_view id, StateEvent::Kind kind) const {
    for (const StateEvent& event : events_) {
      if (event.id == id && event.kind == kind) return event;
    }
    return std::nullopt;
  }
  void AwaitStarted(std::string_view id) {
    ASSERT_TRUE(
        Await([&] { return Find(id, StateEvent::Kind::kStarted) || Find(id, StateEvent::Kind::kFailed); }));
    const auto failed = Find(id, StateEvent::Kind::kFailed);
    ASSERT_FALSE(failed) << failed->error;
  }
  // "code 0", "signal 15", "signal 9 oom", "failed: …".
  std::string AwaitEnd(std::string_view id) {
    std::optional<StateEvent> end;
    const bool came = Await([&] {
      end = Find(id, StateEvent::Kind::kExited);
      if (!end) end = Find(id, StateEvent::Kind::kFailed);
      return end.has_value();
    });
    if (!came) return "never ended";
    if (end->kind == StateEvent::Kind::kFailed) return StrCat("failed: ", end->error);
    if (end->signal) return StrCat("signal ", *end->signal, end->oom ? " oom" : "");
    return StrCat("code ", end->code.value_or(-1));
  }
  // What it printed, both streams, without the times.
  std::string Output(const std::string& id) const {
    const auto name = ParseRunId(id);
    const auto log = ReadFile(folder_.Log(name->container, name->attempt), std::size_t{64} << 20);
    std::string out;
    if (!log.ok()) return out;
    for (const std::string_view line : Split(*log, '\n')) {
      if (const auto entry = ParseLogEntry(line)) StrAppend(out, entry->text, entry->full ? "\n" : "");
    }
    return out;
  }
  // Runs a script to its end and returns what it printed.
  std::string Script(std::string script, std::vector<LaunchMount> mounts = {}) {
    const std::string id = StrCat("script.", scripts_++);
    Launch launch = Shell(std::move(script));
    launch.mounts = std::move(mounts);
    Run(id, launch);
    const std::string end = AwaitEnd(id);
    return end == "code 0" ? Output(id) : StrCat(end, "\n", Output(id));
  }
  ExecResult Exec(const std::string& id, std::string script, absl::Duration timeout = kPatience) {
    std::optional<ExecResult> result;
    client_->Exec(id, Shell(std::move(script)), timeout, [&](ExecResult r) { result = std::move(r); });
    EXPECT_TRUE(Await([&] { return result.has_value(); }));
    return result.value_or(ExecResult{});
  }

  std::vector<StateEvent> events_;

 private:
  Loop& loop_;
  PodFolder folder_;
  Options options_;
  std::unique_ptr<ShimClient> client_;
  pid_t shim_pid_ = 0;
  bool gone_ = false;
  int scripts_ = 0;
};

}  // namespace trainyard::node
