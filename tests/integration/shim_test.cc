// The real shim with real processes: what a pod's processes see, and what becomes of them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <iostream>

#include "base/ids.h"
#include "gmock/gmock.h"
#include "node/cgroups.h"
#include "tests/integration/shim_pod.h"

namespace trainyard::node {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = StateEvent::Kind;

class ShimTest : public testing::Test {
 protected:
  ShimTest() : loop_(*Loop::Make(Clock::System())) {}

  std::unique_ptr<ShimPod> NewPod(std::string_view uid = "u1", ShimPod::Options options = {}) {
    auto pod = std::make_unique<ShimPod>(*loop_, home_.path(), uid, std::move(options));
    pod->Start();
    return pod;
  }
  static bool HasNamespaces() { return TestMachine().has_namespaces(); }
  // Turns the loop until it holds.
  bool Await(const std::function<bool()>& done) {
    const SteadyTime deadline = Clock::System().Steady() + kPatience;
    while (!done() && Clock::System().Steady() < deadline) loop_->Turn(absl::Milliseconds(10));
    return done();
  }

  testing_support::TempFolder home_;
  std::unique_ptr<Loop> loop_;
  // In the command line of every process that a test looks for.
  const std::string marker_ = "987654" + std::to_string(IdSource::Random().Below(1'000'000'000));
};

// ---- processes and their ends

TEST_F(ShimTest, TellsHowEachProcessEnded) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell("exit 0"));
  pod->Run("b.0", ShimPod::Shell("exit 42"));
  pod->Run("c.0", ShimPod::Shell("kill -SEGV $$"));
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 0");
  EXPECT_EQ(pod->AwaitEnd("b.0"), "code 42");
  EXPECT_EQ(pod->AwaitEnd("c.0"), "signal 11");
  EXPECT_GT(pod->Find("a.0", Kind::kStarted)->pid, 1) << "the machine's number, not the pod's";
}

TEST_F(ShimTest, SaysWhyAProcessCannotBeStarted) {
  const auto pod = NewPod();
  Launch launch = ShimPod::Shell("");
  launch.args = {"no-such-program"};
  pod->Run("a.0", launch);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "failed: exec: \"no-such-program\": executable file not found in $PATH");
  launch.args = {"/etc/passwd"};
  pod->Run("b.0", launch);
  EXPECT_EQ(pod->AwaitEnd("b.0"), "failed: exec: \"/etc/passwd\": Permission denied");
  launch.args = {"/bin/true"};
  launch.cwd = "/no/such/folder";
  pod->Run("c.0", launch);
  EXPECT_EQ(pod->AwaitEnd("c.0"),
            "failed: cannot change to working directory /no/such/folder: No such file or directory");
}

TEST_F(ShimTest, GivesAProcessItsEnvironmentAndNothingElse) {
  const auto pod = NewPod();
  Launch launch = ShimPod::Shell("env; pwd; ls /proc/self/fd | wc -l; ulimit -c >/dev/null; cat");
  launch.env["X"] = "a b\nc";
  launch.cwd = "/usr";
  pod->Run("a.0", launch);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 0") << "its standard input is empty";
  EXPECT_THAT(pod->Output("a.0"),
              testing::AllOf(HasSubstr("X=a b\nc\n"), HasSubstr("\n/usr\n"), Not(HasSubstr("HOME="))));
  // Standard input, output and error, and what ls itself opens.
  EXPECT_THAT(pod->Output("a.0"), testing::EndsWith("\n4\n")) << "no descriptor leaks";
}

TEST_F(ShimTest, WritesTheLogAsContainerRuntimesDo) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell("echo out; echo err >&2; printf end"));
  pod->AwaitEnd("a.0");
  const auto log = ReadFile(pod->folder().Log("a", 0), 1 << 20);
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(*log, testing::ContainsRegex("20[0-9-]+T[0-9:]+[.][0-9]+Z stdout F out\n"));
  EXPECT_THAT(*log, testing::ContainsRegex("Z stderr F err\n"));
  EXPECT_THAT(*log, testing::ContainsRegex("Z stdout P end\n"));
}

TEST_F(ShimTest, BoundsTheLogHoweverMuchIsPrinted) {
  const auto pod = NewPod();
  pod->Run("a.0",
           ShimPod::Shell("i=0; while [ $i -lt 20000 ]; do echo "
                          "line-$i-0123456789012345678901234567890123456789; i=$((i+1)); done"),
           {}, 100'000);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 0");
  std::uintmax_t total = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pod->folder().LogFolder("a"))) {
    EXPECT_LE(entry.file_size(), 100'000u);
    total += entry.file_size();
    ++files;
  }
  EXPECT_EQ(files, 3);
  EXPECT_GT(total, 200'000u);
  EXPECT_THAT(pod->Output("a.0"), HasSubstr("line-19999-"));
}

TEST_F(ShimTest, ReportsTheEndThoughADaemonHoldsThePipeAndEndsTheDaemonToo) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell(StrCat("setsid sh -c 'trap \"\" TERM HUP; sleep ", marker_, "; sleep ",
                                        marker_, "' & echo started; exit 7")));
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 7");
  EXPECT_EQ(pod->Output("a.0"), "started\n");
  if (!HasNamespaces())
    GTEST_SKIP() << "without namespaces a daemon that left its session is ended with its pod";
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; }));
}

TEST_F(ShimTest, SignalsTheFirstProcessAndGivesWhatItLeavesTheRestOfTheGrace) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod();
  const std::string file = home_ / "told";
  // The shell dies of SIGTERM; its child saves its work.
  pod->Run("a.0",
           ShimPod::Shell(StrCat("sh -c 'trap \"sleep 0.2; echo saved > ", file,
                                 "; exit 0\" TERM; echo ready; while :; do sleep 0.05; done' & wait")));
  ASSERT_TRUE(Await([&] { return pod->Output("a.0") == "ready\n"; }));
  pod->client().Signal("a.0", SIGTERM);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "signal 15");
  EXPECT_EQ(ReadFile(file, 100).value_or(""), "saved\n");
}

TEST_F(ShimTest, KillsEverythingOfAContainerWhenTold) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell(StrCat("trap '' TERM; (trap '' TERM; sleep ", marker_, "; sleep ", marker_,
                                        ") & echo ready; wait; sleep ", marker_)));
  ASSERT_TRUE(Await([&] { return pod->Output("a.0") == "ready\n" && CountProcesses(marker_) >= 2; }));
  pod->client().Signal("a.0", SIGTERM);
  pod->client().Signal("a.0", SIGKILL);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "signal 9");
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; }));
}

// ---- lives of their own

TEST_F(ShimTest, OutlivesItsClientAndIsAdoptedWithLogsAndExitCodes) {
  const std::string go = home_ / "go";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  (void)TestShim();
  (void)TestMachine();
  const pid_t client = ::fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    auto loop = *Loop::Make(Clock::System());
    ShimPod pod(*loop, home_.path(), "u1", {});
    pod.Start();
    pod.Run("early.0", ShimPod::Shell("echo early; exit 3"));
    pod.Run("late.0", ShimPod::Shell(StrCat("echo before; while [ ! -e ", go,
                                            " ]; do sleep 0.02; done; echo after; exit 5")));
    pod.AwaitStarted("late.0");
    pod.AwaitEnd("early.0");
    (void)!::write(ends[1], "x", 1);
    ::pause();
    ::_exit(1);
  }
  char ready = 0;
  ASSERT_EQ(::read(ends[0], &ready, 1), 1);
  ASSERT_EQ(::kill(client, SIGKILL), 0);
  ASSERT_EQ(::waitpid(client, nullptr, 0), client);

  // Another life of the node: connects, and reads what happened before.
  ShimPod pod(*loop_, home_.path(), "u1", {});
  pod.Connect();
  const auto past = ReadState(pod.folder());
  PlanTime now{.wall = absl::Now(), .steady = Clock::System().Steady()};
  PodSpec spec;
  spec.containers.resize(2);
  spec.containers[0].name = "early";
  spec.containers[1].name = "late";
  PodRecord record = NewRecord(spec);
  ReplayState(past, spec, now, absl::Minutes(10), record);
  EXPECT_EQ(record.containers[0].state, RunState::kEnded);
  EXPECT_EQ(record.containers[0].run.end->code, 3);
  EXPECT_EQ(record.containers[1].state, RunState::kRunning);
  EXPECT_EQ(pod.Output("early.0"), "early\n");
  std::filesystem::create_directory(go);
  EXPECT_EQ(pod.AwaitEnd("late.0"), "code 5");
  EXPECT_EQ(pod.Output("late.0"), "before\nafter\n");
}

TEST_F(ShimTest, TakesEveryProcessWithItWhenItIsKilled) {
  const auto pod = NewPod();
  // A child, a daemon in a session of its own, and a daemon's daemon that ignores what it can.
  pod->Run("a.0", ShimPod::Shell(StrCat("(setsid sh -c 'trap \"\" TERM HUP INT; sleep ", marker_, "; sleep ",
                                        marker_, "' &) ; sleep ", marker_, " & sleep ", marker_)));
  ASSERT_TRUE(Await([&] { return CountProcesses("sleep " + marker_) >= 3 || CountProcesses(marker_) >= 4; }));
  ASSERT_EQ(::kill(pod->shim_pid(), SIGKILL), 0);
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; })) << CountProcesses(marker_) << " are left";
  EXPECT_TRUE(Await([&] { return pod->gone(); }));
}

TEST_F(ShimTest, TakesEveryProcessWithItAlsoWithoutNamespaces) {
  Machine bare;
  bare.uid = ::geteuid();
  const auto pod = NewPod("u1", {.machine = bare});
  pod->Run("a.0", ShimPod::Shell(StrCat("(setsid sh -c 'trap \"\" TERM HUP INT; sleep ", marker_, "; sleep ",
                                        marker_, "' &) ; sleep ", marker_, " & sleep ", marker_)));
  ASSERT_TRUE(Await([&] { return CountProcesses(marker_) >= 4; }));
  ASSERT_EQ(::kill(pod->shim_pid(), SIGKILL), 0);
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; })) << CountProcesses(marker_) << " are left";
}

TEST_F(ShimTest, EndsWhenItIsToldAndLeavesNothing) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell(StrCat("setsid sleep ", marker_, " & sleep ", marker_)));
  ASSERT_TRUE(Await([&] { return CountProcesses(marker_) >= 2; }));
  pod->client().Shutdown();
  EXPECT_TRUE(Await([&] { return pod->gone(); }));
  EXPECT_EQ(CountProcesses(marker_), 0);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "signal 9") << "told before it went, and written";
  const std::string stat = StrCat("/proc/", pod->shim_pid(), "/stat");
  EXPECT_TRUE(
      Await([&] { return ReadFile(stat, 1 << 16).value_or(") Z").find(") Z") != std::string::npos; }));
}

TEST_F(ShimTest, TellsTheEndOfWhatHadOnlyJustBegun) {
  for (int round = 0; round < 10; ++round) {
    const auto pod = NewPod(StrCat("u", round));
    pod->Run("a.0", ShimPod::Shell("sleep 1000"));
    pod->client().Shutdown();
    EXPECT_TRUE(Await([&] { return pod->gone(); }));
    EXPECT_EQ(pod->AwaitEnd("a.0"), "signal 9");
  }
}

TEST_F(ShimTest, EndsWhenItsFolderIsGone) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell(StrCat("sleep ", marker_)));
  pod->AwaitStarted("a.0");
  std::filesystem::remove_all(pod->folder().path());
  EXPECT_TRUE(Await([&] { return pod->gone(); }));
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; }));
}

TEST_F(ShimTest, IsTheOnlyOneOfItsPod) {
  const auto pod = NewPod();
  std::optional<absl::StatusOr<pid_t>> second;
  const auto start =
      ShimStart::Begin(*loop_, TestShim(), pod->folder(), [&](absl::StatusOr<pid_t> pid) { second = pid; });
  ASSERT_TRUE(Await([&] { return second.has_value(); }));
  EXPECT_THAT(second->status().ToString(), HasSubstr("another shim has this pod"));
}

TEST_F(ShimTest, LivesInAFolderWhosePathIsLongerThanASocketsName) {
  const std::string deep = StrCat(home_.path(), "/", std::string(120, 'd'), "/", std::string(120, 'e'));
  std::filesystem::create_directories(deep);
  ShimPod pod(*loop_, deep, "u1", {});
  pod.Start();
  EXPECT_EQ(pod.Script("echo deep"), "deep\n");
}

TEST_F(ShimTest, ShrugsAtGarbage) {
  const auto pod = NewPod();
  IdSource dice(5);
  for (int round = 0; round < 50; ++round) {
    const Fd folder(::open(pod->folder().path().c_str(), O_PATH | O_DIRECTORY));
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    StrCat("/proc/self/fd/", folder.get(), "/shim.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::string bytes =
        round % 2 == 0 ? "" : shim::MessageWriter(shim::kStart, 1).Add("id", "x").Add("uid", "-1").Take();
    for (std::uint64_t i = dice.Below(64); i > 0; --i) bytes += static_cast<char>(dice.Below(256));
    (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(pod->Script("echo well"), "well\n");
}

// ---- what a pod sees

TEST_F(ShimTest, KeepsItsUserAndCountsItsOwnProcesses) {
  if (!TestMachine().own_pids) GTEST_SKIP() << "no pid namespace here";
  const auto pod = NewPod();
  EXPECT_EQ(pod->Script("id -u; hostname"), StrCat(::geteuid(), "\npod-a\n"));
  EXPECT_THAT(pod->Script("cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l"), HasSubstr("trainyard-shim"));
}

TEST_F(ShimTest, ResolvesNamesFromItsOwnHostsFileAlsoAfterItChanged) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod(
      "u1", {.hosts = "127.63.0.1 localhost\n127.63.0.7 web web.ns.svc.cluster.local\n127.63.0.8 web\n"});
  EXPECT_THAT(pod->Script("getent hosts web.ns.svc.cluster.local"), HasSubstr("127.63.0.7"));
  EXPECT_THAT(pod->Script("getent ahostsv4 web"),
              testing::AllOf(HasSubstr("127.63.0.7"), HasSubstr("127.63.0.8")));
  EXPECT_THAT(pod->Script("getent hosts localhost"), HasSubstr("127.63.0.1"));
  pod->Run("long.0", ShimPod::Shell("until getent hosts late; do sleep 0.02; done"));
  pod->AwaitStarted("long.0");
  ASSERT_TRUE(WriteInPlace(pod->folder().Hosts(), "127.63.0.9 late\n").ok());
  EXPECT_EQ(pod->AwaitEnd("long.0"), "code 0");
  EXPECT_THAT(ReadFile("/etc/hosts", 1 << 20).value(), Not(HasSubstr("late"))) << "and nobody else does";
}

// Binds as the script says, prints where, and says its name to whoever connects.
std::string ServerScript(std::string_view family, std::string_view address, int port, std::string_view name) {
  return StrCat(R"(exec /usr/bin/python3 -c '
import socket, threading
def serve():
    s = socket.socket(socket.)",
                family, R"()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((")",
                address, R"(", )", port, R"())
    s.listen()
    print(s.getsockname()[0], flush=True)
    while True:
        c, _ = s.accept()
        c.sendall(b")",
                name, R"(")
        c.close()
t = threading.Thread(target=serve)
t.start()
')");
}

std::string ReadFrom(std::string_view address, int port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, std::string(address).c_str(), &to.sin_addr);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return "refused";
  char room[100];
  const ssize_t got = ::read(socket.get(), room, sizeof room);
  return got < 0 ? "error" : std::string(room, static_cast<std::size_t>(got));
}

TEST_F(ShimTest, GivesTwoPodsTheSamePort) {
  if (!TestMachine().bind_filter) GTEST_SKIP() << "no seccomp notification here";
  constexpr int kPort = 22222;
  const auto a = NewPod("a", {.address = "127.63.7.1"});
  const auto b = NewPod("b", {.address = "127.63.7.2"});
  const auto c = NewPod("c", {.address = "127.63.7.3"});
  a->Run("s.0", ShimPod::Shell(ServerScript("AF_INET", "0.0.0.0", kPort, "pod a")));
  b->Run("s.0", ShimPod::Shell(ServerScript("AF_INET", "", kPort, "pod b")));
  c->Run("s.0", ShimPod::Shell(ServerScript("AF_INET6", "::", kPort, "pod c")));
  ASSERT_TRUE(Await([&] {
    return a->Output("s.0") != "" && b->Output("s.0") != "" && c->Output("s.0") != "";
  })) << a->Output("s.0")
      << b->Output("s.0") << c->Output("s.0");
  EXPECT_EQ(a->Output("s.0"), "127.63.7.1\n");
  EXPECT_EQ(b->Output("s.0"), "127.63.7.2\n");
  EXPECT_EQ(c->Output("s.0"), "::ffff:127.63.7.3\n");
  EXPECT_EQ(ReadFrom("127.63.7.1", kPort), "pod a");
  EXPECT_EQ(ReadFrom("127.63.7.2", kPort), "pod b");
  EXPECT_EQ(ReadFrom("127.63.7.3", kPort), "pod c");
  EXPECT_EQ(ReadFrom("127.0.0.1", kPort), "refused") << "and nobody has it elsewhere";
  for (ShimPod* pod : {a.get(), b.get(), c.get()}) pod->client().Signal("s.0", SIGKILL);
}

TEST_F(ShimTest, LeavesEveryOtherBindToTheKernel) {
  if (!TestMachine().bind_filter) GTEST_SKIP() << "no seccomp notification here";
  const auto pod = NewPod("u1", {.address = "127.63.7.4"});
  const std::string script = R"(/usr/bin/python3 -c '
import socket, os, errno
def name(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.bind(address)
    n = s.getsockname()
    s.close()
    return n
print(name(socket.AF_INET, ("127.63.7.5", 22223)))
print(name(socket.AF_INET, ("0.0.0.0", 0))[0])
print(name(socket.AF_UNIX, "\0trainyard-test"))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("", 22224))
print(u.getsockname())
t = socket.socket(socket.AF_INET)
t.bind(("", 22225)); t.listen()
try:
    name(socket.AF_INET, ("", 22225))
except OSError as e:
    print(errno.errorcode[e.errno])
try:
    os.close(99)
    socket.socket(fileno=99).bind(("", 1))
except OSError as e:
    print(errno.errorcode[e.errno])
')";
  EXPECT_EQ(
      pod->Script(script),
      "('127.63.7.5', 22223)\n0.0.0.0\nb'\\x00trainyard-test'\n('127.63.7.4', 22224)\nEADDRINUSE\nEBADF\n");
}

TEST_F(ShimTest, MakesTheLoopbackAddressThePodsOwn) {
  if (!TestMachine().bind_filter) GTEST_SKIP() << "no seccomp notification here";
  constexpr int kPort = 22231;
  const auto a = NewPod("a", {.address = "127.63.7.6"});
  const auto b = NewPod("b", {.address = "127.63.7.7"});
  a->Run("s.0", ShimPod::Shell(ServerScript("AF_INET", "127.0.0.1", kPort, "pod a")));
  b->Run("s.0", ShimPod::Shell(ServerScript("AF_INET", "0.0.0.0", kPort, "pod b")));
  ASSERT_TRUE(Await([&] { return a->Output("s.0") != "" && b->Output("s.0") != ""; }));
  // By one that waits, by one that does not, and where nobody is.
  const std::string script = StrCat(R"(/usr/bin/python3 -c '
import socket, select, errno
print(socket.create_connection(("127.0.0.1", )",
                                    kPort, R"()).recv(100).decode().strip())
s = socket.socket()
s.setblocking(False)
s.connect_ex(("127.0.0.1", )",
                                    kPort, R"())
select.select([s], [], [], 10)
print(s.recv(100).decode().strip())
s = socket.socket()
print(errno.errorcode[s.connect_ex(("127.0.0.1", 22232))])
')");
  EXPECT_EQ(a->Script(script), "pod a\npod a\nECONNREFUSED\n");
  EXPECT_EQ(b->Script(script), "pod b\npod b\nECONNREFUSED\n");
  for (ShimPod* pod : {a.get(), b.get()}) pod->client().Signal("s.0", SIGKILL);
}

// ---- volumes

TEST_F(ShimTest, ShowsAVolumeWhereTheMachineHasNoSuchPath) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod();
  std::filesystem::create_directory(home_ / "vol");
  std::filesystem::permissions(home_ / "vol", std::filesystem::perms::all);
  // One place can be made on this machine, the other cannot, not even by root.
  const std::string made = home_ / "none/deep";
  const std::string out =
      pod->Script(StrCat("cat ", made, "/in/f; echo written > ", made, "/g; echo kept > ", home_ / "beside",
                         "; ls /sys/kernel /etc/passwd /usr/bin/env; cat /sys/trainyard-none/x/g"),
                  {{.source = home_ / "vol", .target = made},
                   {.source = home_ / "vol", .target = "/sys/trainyard-none/x", .read_only = true}});
  EXPECT_THAT(out, HasSubstr("No such file")) << "there is nothing in it yet";
  EXPECT_THAT(out, HasSubstr("/etc/passwd\n/usr/bin/env\n")) << "all else is where it was";
  EXPECT_THAT(out, HasSubstr("written\n"));
  EXPECT_EQ(ReadFile(home_ / "vol/g", 100).value_or(""), "written\n");
  EXPECT_EQ(ReadFile(home_ / "beside", 100).value_or(""), "kept\n") << "what is written beside it stays";
  EXPECT_FALSE(std::filesystem::exists("/sys/trainyard-none"));
}

TEST_F(ShimTest, MountsReadOnlySinglesAndFoldersInFolders) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod();
  std::filesystem::create_directories(home_ / "outer");
  std::filesystem::create_directories(home_ / "inner");
  ASSERT_TRUE(WriteInPlace(home_ / "one", "single\n").ok());
  ASSERT_TRUE(WriteInPlace(home_ / "inner/f", "inner\n").ok());
  const std::string out = pod->Script(
      "cat /mnt/o/sub/f /mnt/file; touch /mnt/o/new; touch /mnt/o/sub/no || echo refused; cat "
      "/etc/os-release >/dev/null && echo whole",
      {{.source = home_ / "outer", .target = "/mnt/o"},
       {.source = home_ / "one", .target = "/mnt/file"},
       {.source = home_ / "inner", .target = "/mnt/o/sub", .read_only = true}});
  EXPECT_THAT(out, HasSubstr("inner\nsingle\n"));
  EXPECT_THAT(out, HasSubstr("refused\n"));
  EXPECT_THAT(out, HasSubstr("whole\n"));
  EXPECT_TRUE(std::filesystem::exists(home_ / "outer/new"));
  EXPECT_FALSE(std::filesystem::exists(home_ / "inner/no"));
}

TEST_F(ShimTest, SaysWhatIsWrongWithAMount) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod();
  EXPECT_THAT(pod->Script("true", {{.source = home_ / "none", .target = "/mnt/x"}}),
              HasSubstr("failed: cannot open"));
  EXPECT_THAT(pod->Script("true", {{.source = home_.path(), .target = "/etc/passwd"}}),
              HasSubstr("cannot mount a folder at /etc/passwd: there is a file"));
  EXPECT_THAT(pod->Script("true", {{.source = home_.path(), .target = "/etc/passwd/x"}}),
              HasSubstr("/etc/passwd is no folder"));
  EXPECT_THAT(pod->Script("true", {{.source = home_.path(), .target = "/"}}),
              HasSubstr("no absolute path below /"));
}

TEST_F(ShimTest, TakesATerminationMessageAtItsUsualPlace) {
  if (!HasNamespaces()) GTEST_SKIP() << "no namespaces here";
  const auto pod = NewPod();
  const bool before = std::filesystem::exists("/dev/termination-log");
  Launch launch = ShimPod::Shell(
      "echo because > /dev/termination-log; head -c 4 /dev/zero | wc -c; test -c /dev/null && test -d "
      "/dev/shm; exit 1");
  launch.mounts = {{.source = pod->folder().Termination("a", 0), .target = "/dev/termination-log"}};
  pod->Run("a.0", launch);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 1") << pod->Output("a.0");
  ContainerSpec spec;
  spec.name = "a";
  EXPECT_EQ(ReadTerminationMessage(pod->folder(), spec, 0, true), "because\n");
  EXPECT_EQ(pod->Output("a.0"), "4\n");
  EXPECT_EQ(std::filesystem::exists("/dev/termination-log"), before);
}

TEST_F(ShimTest, TakesTheLogsEndAsAMessageWhenThereIsNone) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell("i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exit 1"));
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 1");
  ContainerSpec spec;
  spec.name = "a";
  EXPECT_EQ(ReadTerminationMessage(pod->folder(), spec, 0, true), "");
  spec.termination_from_logs = true;
  const std::string message = ReadTerminationMessage(pod->folder(), spec, 0, true);
  EXPECT_TRUE(message.starts_with("line 120\n")) << message;
  EXPECT_TRUE(message.ends_with("line 199\n"));
  EXPECT_EQ(ReadTerminationMessage(pod->folder(), spec, 0, false), "") << "a run that succeeded has no need";
}

// ---- commands in a container

TEST_F(ShimTest, RunsACommandInTheViewOfAContainer) {
  const auto pod = NewPod();
  Launch launch = ShimPod::Shell("sleep 1000");
  std::filesystem::create_directory(home_ / "vol");
  ASSERT_TRUE(WriteInPlace(home_ / "vol/f", "seen\n").ok());
  if (HasNamespaces()) launch.mounts = {{.source = home_ / "vol", .target = "/trainyard-none"}};
  pod->Run("a.0", launch);
  pod->AwaitStarted("a.0");
  if (HasNamespaces()) {
    const ExecResult seen = pod->Exec("a.0", "cat /trainyard-none/f; hostname");
    EXPECT_TRUE(seen.ok);
    EXPECT_EQ(seen.message, "seen\npod-a\n");
  }
  EXPECT_FALSE(pod->Exec("a.0", "echo out; echo err >&2; exit 3").ok);
  EXPECT_EQ(pod->Exec("a.0", "echo out; echo err >&2; exit 3").message, "out\nerr\n");
  EXPECT_EQ(pod->Exec("a.0", "head -c 100000 /dev/zero").message.size(), 4096u) << "bounded";
  EXPECT_EQ(pod->Exec("none.0", "true").message, "the container does not run");
  pod->client().Signal("a.0", SIGKILL);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "signal 9");
}

TEST_F(ShimTest, EndsACommandThatTakesTooLong) {
  const auto pod = NewPod();
  pod->Run("a.0", ShimPod::Shell("sleep 1000"));
  pod->AwaitStarted("a.0");
  const ExecResult late = pod->Exec("a.0", StrCat("echo begun; sleep ", marker_), absl::Milliseconds(200));
  EXPECT_FALSE(late.ok);
  EXPECT_THAT(late.message, HasSubstr("timed out: begun"));
  EXPECT_TRUE(Await([&] { return CountProcesses(marker_) == 0; }));
}

// ---- limits

TEST_F(ShimTest, TellsTheWantOfMemoryFromOtherKills) {
  const auto place = FindCgroups(ReadFile("/proc/self/cgroup", 1 << 20).value_or(""),
                                 ReadFile("/proc/self/mountinfo", 1 << 20).value_or(""));
  Cgroups cgroups = Cgroups::Open(place, "test-" + marker_);
  if (!cgroups.shortcoming().empty()) GTEST_SKIP() << cgroups.shortcoming();
  {
    const auto pod = NewPod();
    const CgroupLimits limits{.memory_bytes = 32 << 20, .cpu_milli = 1000};
    pod->Run("eats.0", ShimPod::Shell("exec /usr/bin/python3 -c 'x = bytearray(300 << 20)'"),
             cgroups.Make("u1", "eats.0", limits));
    EXPECT_EQ(pod->AwaitEnd("eats.0"), "signal 9 oom");
    pod->Run("killed.0", ShimPod::Shell("kill -9 $$"), cgroups.Make("u1", "killed.0", limits));
    EXPECT_EQ(pod->AwaitEnd("killed.0"), "signal 9") << "nobody wanted memory here";
  }
  cgroups.RemovePod("u1");
  ::rmdir(StrCat(place.memory, "/trainyard-test-", marker_).c_str());
  if (!place.cpu.empty()) ::rmdir(StrCat(place.cpu, "/trainyard-test-", marker_).c_str());
}

TEST_F(ShimTest, RunsAsAnotherUserWhereItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may";
  const auto pod = NewPod();
  Launch launch = ShimPod::Shell("id -u; id -g; id -G; echo x > /dev/null && echo ok");
  launch.uid = 65534;
  launch.gid = 65534;
  launch.groups = {65534, 1234};
  pod->Run("a.0", launch);
  EXPECT_EQ(pod->AwaitEnd("a.0"), "code 0");
  EXPECT_EQ(pod->Output("a.0"), "65534\n65534\n65534 1234\nok\n");
}

// ---- figures

TEST_F(ShimTest, StartsInMilliseconds) {
  std::vector<absl::Duration> ready;
  std::vector<absl::Duration> running;
  for (int i = 0; i < 20; ++i) {
    ShimPod pod(*loop_, home_.path(), StrCat("u", i), {});
    const SteadyTime begin = Clock::System().Steady();
    pod.Start();
    ready.push_back(Clock::System().Steady() - begin);
    Launch launch;
    launch.args = {"/bin/true"};
    pod.Run("a.0", launch);
    pod.AwaitStarted("a.0");
    running.push_back(Clock::System().Steady() - begin);
    if (i == 0) {
      const auto status = ReadFile(StrCat("/proc/", pod.shim_pid(), "/status"), 1 << 16);
      const std::size_t at = status->find("VmRSS:");
      std::cout << "shim: " << std::filesystem::file_size(TestShim()) << " bytes, "
                << status->substr(at, status->find('\n', at) - at) << "\n";
    }
  }
  std::ranges::sort(ready);
  std::ranges::sort(running);
  std::cout << "ready after " << ready[10] << ", first process after " << running[10] << " (medians)\n";
  EXPECT_LT(std::filesystem::file_size(TestShim()), 1'500'000u);
}

// ---- the same as an ordinary user

TEST(ShimTestAsNobody, EverythingWorksForAnOrdinaryUserToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "this is an ordinary user already";
  const testing_support::TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  ProcessSpec spec;
  spec.argv = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/proc/self/exe"};
  spec.argv.back() = std::filesystem::read_symlink("/proc/self/exe").string();
  spec.argv.emplace_back("--gtest_filter=ShimTest.*");
  spec.env = {{"TMPDIR", folder.path()},
              {"PATH", "/usr/bin:/bin"},
              {"HOME", folder.path()},
              {"ASAN_OPTIONS", "detect_leaks=0"}};
  spec.stdout_path = spec.stderr_path = folder / "output";
  auto child = Child::Spawn(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto ended = child->Wait(absl::Minutes(5));
  const std::string output = ReadFile(folder / "output", std::size_t{16} << 20).value_or("");
  ASSERT_TRUE(ended.ok()) << ended.status() << "\n" << output;
  EXPECT_EQ(*ended, ExitStatus(Exited{0})) << output;
  EXPECT_THAT(output, HasSubstr("[  PASSED  ]"));
}

}  // namespace
}  // namespace trainyard::node
