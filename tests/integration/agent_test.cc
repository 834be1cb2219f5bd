// The real agent with real scripts: what is run, how often, and what a launcher is told.
#include <elf.h>

#include <iostream>

#include "gmock/gmock.h"
#include "tests/integration/agent_pod.h"

namespace trainyard::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// ---- attempts

TEST(AgentTest, RunsTheScriptExactlyOnceHoweverManyAskForItAtOnce) {
  const AgentPod pod;
  ASSERT_EQ(
      pod.Post("/config", AgentPod::ShellConfig("echo run >> runs; while [ ! -e go ]; do sleep 0.02; done"))
          .code,
      200);
  std::vector<std::unique_ptr<AgentClient>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(std::make_unique<AgentClient>(pod.port()));
  for (int i = 0; i < 50; ++i)
    clients[i]->Send(AgentClient::Print(i % 2 == 0 ? "GET" : "POST", "/run?attempt=1"));
  std::set<std::int64_t> pids;
  for (const auto& client : clients) {
    const HttpAnswer answer = client->ReadAnswer();
    EXPECT_EQ(answer.code, 200) << answer.body;
    pids.insert(IntAt(answer.json(), {"pid"}).value_or(0));
  }
  EXPECT_EQ(pids.size(), 1u);
  pod.Write("go", "");
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 0");
  EXPECT_EQ(pod.Post("/run").state(), "exited") << "a repeat starts nothing, also after the end";
  EXPECT_EQ(ReadFile(pod / "runs", 100).value_or(""), "run\n");
}

TEST(AgentTest, TellsHowTheScriptEnded) {
  const AgentPod pod;
  pod.Run("exit 3");
  const HttpAnswer exited = pod.AwaitState("exited");
  EXPECT_EQ(exited.reason(), "exited 3");
  EXPECT_EQ(IntAt(exited.json(), {"exitCode"}), 3);
  EXPECT_TRUE(Find(exited.json(), {"signal"})->is_null());
  EXPECT_TRUE(Find(exited.json(), {"pid"})->is_null());
  EXPECT_THAT(std::string(StringAt(exited.json(), {"startedAt"})),
              testing::ContainsRegex("^20.*T.*[.]...Z$"));
  EXPECT_LE(StringAt(exited.json(), {"startedAt"}), StringAt(exited.json(), {"endedAt"}));
  pod.Run("kill -SEGV $$", 2);
  const HttpAnswer killed = pod.AwaitState("exited");
  EXPECT_EQ(killed.reason(), "was killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(IntAt(killed.json(), {"signal"}), 11);
  EXPECT_TRUE(Find(killed.json(), {"exitCode"})->is_null());
  EXPECT_EQ(StringAt(killed.json(), {"incarnation"}), StringAt(exited.json(), {"incarnation"}));
}

TEST(AgentTest, RefusesWhatConflicts) {
  const AgentPod pod;
  EXPECT_THAT(pod.Get("/run").error(), HasSubstr("POST /config first"));
  EXPECT_EQ(pod.Get("/run").code, 409);
  EXPECT_EQ(pod.Get("/logs").code, 409);
  const std::string waits = "while [ ! -e go ]; do sleep 0.02; done";
  pod.Run(waits, 5);
  EXPECT_EQ(pod.Post("/config", AgentPod::ShellConfig(waits, 5)).code, 200) << "a repeat";
  EXPECT_EQ(pod.Post("/config", AgentPod::ShellConfig("other", 5)).code, 409);
  EXPECT_EQ(pod.Post("/config", AgentPod::ShellConfig(waits, 4)).code, 409);
  EXPECT_THAT(pod.Post("/config", AgentPod::ShellConfig(waits, 6)).error(), HasSubstr("POST /stop"));
  EXPECT_EQ(pod.Post("/run?attempt=6").code, 409);
  EXPECT_EQ(pod.Post("/run?attempt=4").code, 409);
  EXPECT_EQ(pod.Post("/stop?attempt=4").code, 409);
  EXPECT_EQ(pod.Get("/logs?attempt=4").code, 404);
  EXPECT_EQ(pod.Get("/status").state(), "running");
  pod.Write("go", "");
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Post("/config", AgentPod::ShellConfig("other", 5)).code, 409)
      << "it was run with another one";
  EXPECT_EQ(pod.Post("/config", AgentPod::ShellConfig(waits, 6)).state(), "configured");
}

TEST(AgentTest, SaysWhyAScriptCannotBeStarted) {
  const AgentPod pod;
  const std::string folder = pod / "";
  ASSERT_EQ(pod.Post("/config", R"({"TF_CONFIG": "x"})").code, 200);
  const HttpAnswer missing = pod.Get("/run");
  EXPECT_EQ(missing.code, 424);
  EXPECT_EQ(missing.error(), StrCat("exec.py is not in ", folder.substr(0, folder.size() - 1)));
  EXPECT_EQ(pod.Get("/status").state(), "failed");
  EXPECT_EQ(pod.Get("/status").reason(), missing.error());
  EXPECT_EQ(pod.Get("/run").code, 424) << "a repeat is told the same";
  pod.Post("/config", R"({"attempt": 2, "command": ["no-such-program"]})");
  EXPECT_EQ(pod.Get("/run").error(), "there is no no-such-program on the PATH");
  pod.Post("/config", R"({"attempt": 3, "command": ["/etc/passwd"]})");
  EXPECT_EQ(pod.Get("/run").error(), "cannot run /etc/passwd: Permission denied");
  pod.Post("/config", R"({"attempt": 4, "workingDir": "/no/such"})");
  EXPECT_THAT(pod.Get("/run").error(), HasSubstr("cannot change to the working directory /no/such"));
  pod.Run("exit 0", 5);
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 0") << "a failure is not the end";
}

TEST(AgentTest, RunsExecPyWithAFlatEnvironment) {
  const AgentPod pod;
  pod.Write("exec.py",
            "import os, sys\nprint(os.environ['NUM_WORKERS'], os.environ['TF_CONFIG'])\nsys.exit(4)\n");
  ASSERT_EQ(pod.Post("/config", R"({"TF_CONFIG": "{\"cluster\": {}}", "NUM_WORKERS": "4"})").code, 200);
  ASSERT_EQ(pod.Get("/run").code, 200);
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 4");
  EXPECT_EQ(pod.Get("/logs").body, "4 {\"cluster\": {}}\n");
}

TEST(AgentTest, HandsTheScriptNothingOfItsOwn) {
  const AgentPod pod(
      {.flags = {"--script", "run.sh"}, .env = {{"KEPT", "1"}, {"TRAINYARD_AGENT_SCRIPT", "no.py"}}});
  pod.Write("run.sh",
            "#!/bin/sh\nenv\necho fds $(ls /proc/self/fd | wc -l)\necho in $(cat)\n"
            "awk '/^Sig(Blk|Ign)/ {print \"signals\", $2}' /proc/self/status\n"
            "[ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leads a session\n");
  ASSERT_EQ(pod.Post("/config", R"({"env": {"A": "a b\nc"}})").code, 200);
  ASSERT_EQ(pod.Get("/run").code, 200);
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 0");
  const std::string printed = pod.Get("/logs").body;
  EXPECT_THAT(printed, HasSubstr("A=a b\nc\n"));
  EXPECT_THAT(printed, HasSubstr("KEPT=1\n"));
  EXPECT_THAT(printed, HasSubstr("PYTHONUNBUFFERED=1\n"));
  EXPECT_THAT(printed, Not(HasSubstr("TRAINYARD_AGENT")));
  EXPECT_THAT(printed, HasSubstr("\nin\n")) << "its standard input is empty";
  EXPECT_THAT(printed, HasSubstr("\nfds 4\n")) << "three, and what ls itself opens";
  EXPECT_THAT(printed, HasSubstr("signals 0000000000000000\nsignals 0000000000000000\n"));
  EXPECT_THAT(printed, HasSubstr("leads a session\n"));
}

// ---- status

TEST(AgentTest, WakesWhoWaitsForAChange) {
  const AgentPod pod;
  const std::int64_t version = *IntAt(pod.Get("/status").json(), {"version"});
  AgentClient waiter(pod.port());
  waiter.Send(AgentClient::Print("GET", StrCat("/status?wait=300&after=", version)));
  AgentClient other(pod.port());
  EXPECT_EQ(other.Call("GET", "/status").state(), "idle") << "nobody else waits";
  pod.Post("/config", AgentPod::ShellConfig("while [ ! -e go ]; do sleep 0.02; done"));
  const HttpAnswer configured = waiter.ReadAnswer();
  EXPECT_EQ(configured.state(), "configured");
  EXPECT_GT(*IntAt(configured.json(), {"version"}), version);
  pod.Post("/run");
  pod.AwaitState("running");
  waiter.Send(AgentClient::Print(
      "GET", StrCat("/status?wait=300&after=", *IntAt(pod.Get("/status").json(), {"version"}))));
  pod.Write("go", "");
  EXPECT_EQ(waiter.ReadAnswer().state(), "exited");
}

TEST(AgentTest, TellsWhatThereIsWhenNothingChanges) {
  const AgentPod pod;
  const std::int64_t version = *IntAt(pod.Get("/status").json(), {"version"});
  EXPECT_EQ(*IntAt(pod.Get(StrCat("/status?wait=0.05&after=", version)).json(), {"version"}), version);
  EXPECT_EQ(pod.Get("/status?wait=300&after=0").state(), "idle") << "an older one is answered at once";
  EXPECT_EQ(pod.Get("/status?wait=300&after=999").state(), "idle") << "and so is one of another life";
}

// ---- what it is

TEST(AgentTest, IsOneSmallStaticFile) {
  const auto bytes = ReadFile(ShippedAgent(), std::size_t{16} << 20);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LT(bytes->size(), std::size_t{3} << 20);
  Elf64_Ehdr header{};
  ASSERT_GE(bytes->size(), sizeof header);
  std::memcpy(&header, bytes->data(), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    std::memcpy(&part, bytes->data() + header.e_phoff + i * sizeof part, sizeof part);
    EXPECT_NE(part.p_type, static_cast<Elf64_Word>(PT_INTERP)) << "it needs a loader";
  }
}

TEST(AgentTest, TakesLittleMemoryWhileAScriptRuns) {
  const AgentPod pod({.program = ShippedAgent()});
  std::string large = R"({"env": {"A": "b")";
  for (int i = 0; i < 9; ++i) StrAppend(large, ", \"V", i, "\": \"", std::string(100'000, 'x'), "\"");
  ASSERT_EQ(pod.Post("/config", StrCat(large, R"(}, "command": ["sh", "-c", "exit 0"]})")).code, 200);
  pod.Post("/run");
  pod.AwaitState("exited");
  pod.Run("head -c 20000000 /dev/zero; while [ ! -e go ]; do sleep 0.02; done", 2);
  ASSERT_TRUE(Await([&] { return IntAt(pod.Get("/status").json(), {"logBytes"}) == 20'000'000; }));
  const std::int64_t kib = RssKib(pod.pid()) + RssKib(pod.inner_pid());
  std::cout << "agent: " << std::filesystem::file_size(ShippedAgent()) << " bytes; resident: guard "
            << RssKib(pod.pid()) << " KiB, agent " << RssKib(pod.inner_pid()) << " KiB\n";
  EXPECT_LT(kib, 5 * 1024);
  pod.Write("go", "");
  pod.AwaitState("exited");
}

TEST(AgentTest, InstallsItself) {
  const testing_support::TempFolder folder;
  const std::string to = folder / "agent";
  for (int i = 0; i < 2; ++i) {  // also over one that is there
    ProcessSpec spec;
    spec.argv = {ShippedAgent(), "install", "--to", to};
    auto child = Child::Spawn(spec);
    ASSERT_TRUE(child.ok());
    ASSERT_EQ(*child->Wait(kPatience), ExitStatus(Exited{0}));
  }
  EXPECT_EQ(std::filesystem::status(to).permissions(), std::filesystem::perms(0755));
  EXPECT_EQ(ReadFile(to, std::size_t{16} << 20).value_or("?"),
            ReadFile(ShippedAgent(), std::size_t{16} << 20).value_or("!"));
  const AgentPod pod({.program = to});
  EXPECT_EQ(pod.Get("/status").state(), "idle");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1) << "nothing is left of the way there";
}

// Runs the agent with these arguments to its end: its exit code, and what it said.
std::pair<int, std::string> Misuse(std::vector<std::string> args,
                                   std::vector<std::pair<std::string, std::string>> env) {
  const testing_support::TempFolder folder;
  ProcessSpec spec;
  spec.argv = {TestedAgent()};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.env = std::move(env);
  spec.stderr_path = folder / "err";
  auto child = Child::Spawn(spec);
  const auto status = child->Wait(kPatience);
  return {status.ok() ? ShellCode(*status) : -1, ReadFile(folder / "err", 10'000).value_or("")};
}

TEST(AgentTest, RefusesToStartWithOneLine) {
  using Case = std::pair<std::vector<std::string>, std::string>;
  for (const auto& [args, said] :
       {Case{{}, "there is no token"}, Case{{"--none"}, "unknown argument '--none'"},
        Case{{"--token-file", "/no/such"}, "cannot read the token file /no/such"},
        Case{{"--term-grace=x"}, "is no time"}}) {
    const auto [code, text] = Misuse(args, {});
    EXPECT_EQ(code, 2) << text;
    EXPECT_THAT(text, StartsWith("trainyard-agent: "));
    EXPECT_THAT(text, HasSubstr(said));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }
  const auto [code, text] = Misuse({"--listen", "localhost:1"}, {{"TRAINYARD_AGENT_TOKEN", "t"}});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, EndsWith("'localhost:1' is no address: write 0.0.0.0:7896 or [::]:7896\n"));
}

}  // namespace
}  // namespace trainyard::agent
