// How scripts and the real agent end, and what is left of them: nothing.
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "tests/integration/agent_pod.h"

namespace trainyard::agent {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A process that has left its parent, its group and its session, and does not listen to SIGTERM.
std::string Daemon(std::string_view marker) {
  return StrCat("setsid sh -c '(trap \"\" TERM HUP; echo daemon > daemon; exec sleep ", marker,
                ") & exit 0'; while [ ! -e daemon ]; do sleep 0.01; done; ");
}

std::string Waits() { return "echo ready; while [ ! -e go ]; do sleep 0.02; done; "; }

// ---- stopping

TEST(AgentEndsTest, LetsAScriptThatIsStoppedSaveItsWork) {
  const AgentPod pod;
  pod.Run(StrCat("trap 'echo saved; exit 7' TERM; ", Waits()));
  pod.AwaitOutput("ready");
  const HttpAnswer told = pod.Post("/stop?grace=60");
  EXPECT_EQ(told.state(), "stopping");
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 7");
  EXPECT_THAT(pod.Get("/logs").body, EndsWith("saved\n"));
  EXPECT_EQ(pod.Post("/stop").reason(), "exited 7") << "nothing runs: nothing changes";
}

TEST(AgentEndsTest, KillsAScriptThatDoesNotListen) {
  const AgentPod pod;
  const std::string marker = NewMarker();
  pod.Run(StrCat("trap '' TERM; (sleep ", marker, "; sleep ", marker, ") & echo ready; sleep ", marker));
  pod.AwaitOutput("ready");
  EXPECT_EQ(pod.Post("/stop?grace=60").state(), "stopping");
  EXPECT_EQ(pod.Post("/stop?grace=0.1").state(), "stopping") << "the earlier end counts";
  EXPECT_EQ(pod.AwaitState("exited").reason(), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(CountProcesses(marker), 0);
}

TEST(AgentEndsTest, GivesWhatAScriptLeavesTheRestOfTheGrace) {
  const AgentPod pod;
  // The first process dies of SIGTERM; another one, in a session of its own, saves its work.
  pod.Run(
      "setsid sh -c 'trap \"sleep 0.2; echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.02; done' "
      "& "
      "wait");
  pod.AwaitOutput("ready");
  pod.Post("/stop?grace=60");
  EXPECT_EQ(pod.AwaitState("exited").reason(), "was killed by signal 15 (SIGTERM)");
  EXPECT_THAT(pod.Get("/logs").body, EndsWith("saved\n"));
}

TEST(AgentEndsTest, CanStopAScriptThatHasOnlyJustBegun) {
  const AgentPod pod;
  for (int attempt = 1; attempt <= 20; ++attempt) {
    ASSERT_EQ(pod.Post("/config", AgentPod::ShellConfig("exec sleep 1000", attempt)).code, 200);
    AgentClient client(pod.port());
    client.Send(StrCat(AgentClient::Print("POST", "/run"), AgentClient::Print("POST", "/stop?grace=60")));
    EXPECT_EQ(pod.AwaitState("exited").reason(), "was killed by signal 15 (SIGTERM)");
  }
}

// ---- what is left

TEST(AgentEndsTest, KillsAndReapsWhatDaemonised) {
  const AgentPod pod;
  const std::string marker = NewMarker();
  pod.Run(StrCat(Daemon(marker), "echo started; exit 5"));
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 5");
  EXPECT_EQ(pod.Get("/logs").body, "started\n");
  EXPECT_EQ(CountProcesses(marker), 0) << "at the moment that the end is told";
  EXPECT_TRUE(ChildrenOf(pod.inner_pid()).empty()) << "no zombie is left";
}

TEST(AgentEndsTest, KillsWhatDaemonisedWithTheScriptThatIsStopped) {
  const AgentPod pod;
  const std::string marker = NewMarker();
  pod.Run(StrCat(Daemon(marker), Waits()));
  pod.AwaitOutput("ready");
  ASSERT_GE(CountProcesses(marker), 1);
  pod.Post("/stop?grace=0");
  pod.AwaitState("exited");
  EXPECT_EQ(CountProcesses(marker), 0);
  EXPECT_TRUE(ChildrenOf(pod.inner_pid()).empty());
}

TEST(AgentEndsTest, ReapsOrphansWhileTheScriptRuns) {
  const AgentPod pod;
  pod.Run(StrCat("for i in 1 2 3 4 5 6 7 8; do sh -c 'sh -c \"exit 0\" &'; done; ", Waits()));
  pod.AwaitOutput("ready");
  EXPECT_TRUE(Await([&] { return ChildrenOf(pod.inner_pid()).size() == 1; })) << "only the script";
}

TEST(AgentEndsTest, ReadsTheLastWordsOfProcessesThatOutliveTheFirst) {
  const AgentPod pod;
  pod.Run("(head -c 300000 /dev/zero | tr '\\0' x; echo last words) & exit 0");
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Get("/logs?tail=1&from=300000").body, "last words\n");
}

// ---- the agent's own end

TEST(AgentEndsTest, TakesTheScriptWithItWhenItIsKilled) {
  for (const bool guard : {true, false}) {
    const AgentPod pod;
    const std::string marker = NewMarker();
    pod.Run(StrCat(Daemon(marker), "sleep ", marker, " & ", Waits(), "sleep ", marker));
    pod.AwaitOutput("ready");
    const auto script = static_cast<pid_t>(*IntAt(pod.Get("/status").json(), {"pid"}));
    const pid_t agent = pod.inner_pid();
    ASSERT_GT(agent, 0);
    ASSERT_EQ(::kill(guard ? pod.pid() : agent, SIGKILL), 0);
    EXPECT_TRUE(Await([&] { return CountProcesses(marker) == 0 && ReadProc(script, "cmdline").empty(); }));
    EXPECT_TRUE(Await([&] { return ReadProc(agent, "cmdline").empty(); }));
    const ExitStatus end = pod.AwaitExit();
    EXPECT_EQ(end, guard ? ExitStatus(Signaled{.signal = SIGKILL}) : ExitStatus(Exited{137}));
  }
}

TEST(AgentEndsTest, ExitsAsTheScriptDid) {
  const struct {
    std::string script;
    int code;
  } kCases[] = {{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 137}};
  for (const auto& [script, code] : kCases) {
    const AgentPod pod;
    pod.Run(script);
    pod.AwaitState("exited");
    const HttpAnswer last = pod.Post("/end");
    EXPECT_EQ(last.code, 200);
    EXPECT_EQ(last.state(), "exited");
    EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{code})) << script;
  }
}

TEST(AgentEndsTest, ExitsWithZeroIfNothingWasRunAndWith127IfNothingCouldBe) {
  const AgentPod idle;
  EXPECT_EQ(idle.Post("/end").state(), "idle");
  EXPECT_EQ(idle.AwaitExit(), ExitStatus(Exited{0}));
  const AgentPod failed;
  failed.Post("/config", "{}");
  EXPECT_EQ(failed.Post("/run").code, 424);
  failed.Post("/end");
  EXPECT_EQ(failed.AwaitExit(), ExitStatus(Exited{127}));
}

TEST(AgentEndsTest, ExitsWithTheCodeThatTheCallNames) {
  const AgentPod pod;
  pod.Run("exit 3");
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Post("/end?code=256").code, 400);
  EXPECT_EQ(pod.Post("/end?code=0").code, 200);
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{0}));
}

TEST(AgentEndsTest, DoesNotExitWithZeroWhenASignalEndsIt) {
  const AgentPod idle;
  ASSERT_EQ(::kill(idle.pid(), SIGTERM), 0);
  EXPECT_EQ(idle.AwaitExit(), ExitStatus(Exited{143}));
  const AgentPod done;
  done.Run("exit 0");
  done.AwaitState("exited");
  ASSERT_EQ(::kill(done.pid(), SIGTERM), 0);
  EXPECT_EQ(done.AwaitExit(), ExitStatus(Exited{143}));
}

TEST(AgentEndsTest, StopsTheScriptAndSendsItsLastWordsBeforeItExits) {
  const AgentPod pod;
  pod.Run(StrCat("trap 'echo saved; exit 9' TERM; ", Waits()));
  pod.AwaitOutput("ready");
  AgentClient follower(pod.port());
  follower.Send(AgentClient::Print("GET", "/logs?follow=1"));
  EXPECT_EQ(follower.ReadHead().code, 200);
  AgentClient waiter(pod.port());
  waiter.Send(AgentClient::Print(
      "GET", StrCat("/status?wait=300&after=", *IntAt(pod.Get("/status").json(), {"version"}))));
  AgentClient ender(pod.port());
  ender.Send(AgentClient::Print("POST", "/end?grace=60"));
  EXPECT_EQ(waiter.ReadAnswer().code, 200);
  EXPECT_EQ(ender.ReadAnswer().reason(), "exited 9");
  std::string printed;
  for (std::string chunk; !(chunk = follower.ReadChunk()).empty();) printed += chunk;
  EXPECT_THAT(printed, AllOf(StartsWith("ready\n"), EndsWith("saved\n")));
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{9}));
  EXPECT_EQ(pod.Stdout(), "ready\nsaved\n");
}

TEST(AgentEndsTest, EndsPolitelyWhenItIsTerminated) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const AgentPod pod;
    pod.Run(StrCat("trap 'echo saved; exit 5' TERM; ", Waits()));
    pod.AwaitOutput("ready");
    ASSERT_EQ(::kill(pod.pid(), signal), 0);
    EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{5}));
    EXPECT_EQ(pod.Stdout(), "ready\nsaved\n");
  }
}

TEST(AgentEndsTest, KillsBeforeItsOwnTimeIsOver) {
  const AgentPod pod({.flags = {"--term-grace", "300ms"}});
  const std::string marker = NewMarker();
  pod.Run(StrCat("trap '' TERM; ", Daemon(marker), Waits()));
  pod.AwaitOutput("ready");
  ASSERT_EQ(::kill(pod.pid(), SIGTERM), 0);
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{137}));
  EXPECT_EQ(CountProcesses(marker), 0);
}

// ---- other users and places

std::vector<std::string> AsNobody() {
  return {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
}

TEST(AgentEndsTest, RunsForAnOrdinaryUserInAFolderItMayNotWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "this is an ordinary user already";
  const testing_support::TempFolder folder;
  const std::string program = folder / "agent";
  std::filesystem::copy_file(TestedAgent(), program);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  ASSERT_TRUE(ReplaceFile(folder / "exec.py", "import os\nprint(os.getuid(), os.getcwd())\nopen('x', 'w')\n",
                          0644, Durability::kProcess)
                  .ok());
  const AgentPod pod({.flags = {"--working-dir", folder.path(), "--state-dir", folder / "none"},
                      .wrapper = AsNobody(),
                      .program = program});
  pod.Post("/config", R"({"NUM_WORKERS": "1"})");
  EXPECT_EQ(pod.Get("/run").code, 200);
  const HttpAnswer status = pod.AwaitState("exited");
  EXPECT_EQ(status.reason(), "exited 1");
  EXPECT_EQ(StringAt(status.json(), {"logs"}), "memory");
  const std::string printed = pod.Get("/logs").body;
  EXPECT_THAT(printed, HasSubstr(StrCat("65534 ", folder.path(), "\n")));
  EXPECT_THAT(printed, HasSubstr("Permission"));
  const std::string marker = NewMarker();
  pod.Run(StrCat("cat /proc/$PPID/environ /proc/$PPID/mem; setsid sleep ", marker, " & exit 4"), 2);
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 4");
  EXPECT_THAT(pod.Get("/logs").body, Not(HasSubstr(kToken))) << "the script finds no token in the agent";
  EXPECT_EQ(CountProcesses(marker), 0);
  pod.Post("/end");
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{4}));
}

TEST(AgentEndsTest, IsProcessOneOfAContainer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes namespaces everywhere";
  const AgentPod pod(
      {.flags = {"--term-grace", "1s"}, .wrapper = {"/usr/bin/unshare", "--pid", "--fork", "--mount-proc"}});
  const std::string marker = NewMarker();
  pod.Run(StrCat(Daemon(marker), "echo $PPID; exit 3"));
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 3");
  EXPECT_EQ(pod.Get("/logs").body, "1\n") << "without a guard";
  EXPECT_EQ(CountProcesses(marker), 0);
  pod.Run(StrCat("trap 'exit 6' TERM; rm -f daemon; ", Daemon(marker), Waits()), 2);
  pod.AwaitOutput("ready");
  ASSERT_EQ(::kill(pod.inner_pid(), SIGTERM), 0);
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{6}));
  EXPECT_EQ(CountProcesses(marker), 0);
}

// ---- a whole life, examined

TEST(AgentEndsTest, HasNoMemoryErrorInAWholeLife) {
#ifdef TRAINYARD_SANITIZED
  GTEST_SKIP() << "the sanitizers look at it";
#endif
  if (!std::filesystem::exists("/usr/bin/valgrind")) GTEST_SKIP() << "no valgrind here";
  // As it is built for tests: of the shipped one nobody can see which memory it has.
  const AgentPod pod({.flags = {"--log-bytes", "40000", "--request-timeout", "60s"},
                      .wrapper = {"/usr/bin/valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full",
                                  "--errors-for-leak-kinds=definite"},
                      .program = TRAINYARD_AGENT_CHECKED});
  AgentClient client(pod.port());
  EXPECT_EQ(client.Call("GET", "/none").code, 404);
  EXPECT_EQ(client.Call("POST", "/config", "{\"a\": 1}").code, 400);
  EXPECT_EQ(client.Call("POST", "/config", R"({"env": {"A": "1"}})").code, 200);
  EXPECT_EQ(client.Call("POST", "/run").code, 424);
  pod.Run("head -c 100000 /dev/zero; setsid sleep 1000 & echo; echo end", 2);
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 0");
  EXPECT_EQ(client.Call("GET", "/logs?tail=1&follow=1").body, "end\n");
  AgentClient follower(pod.port());
  pod.Run(StrCat("trap 'exit 6' TERM; ", Waits()), 3);
  follower.Send(AgentClient::Print("GET", "/logs?follow=1"));
  pod.AwaitOutput("ready");
  AgentClient nonsense(pod.port());
  nonsense.Send("\r\n \r\n\r\n");
  EXPECT_EQ(nonsense.ReadAnswer().code, 400);
  EXPECT_EQ(pod.Post("/end").state(), "exited");
  EXPECT_EQ(pod.AwaitExit(), ExitStatus(Exited{6})) << pod.Stderr();
}

}  // namespace
}  // namespace trainyard::agent
