// The agent as the parent of a program in a pod: how the program ends is how the pod ends.
#include <unistd.h>

#include "gmock/gmock.h"
#include "tests/integration/agent_pod.h"

namespace trainyard::agent {
namespace {

using ::testing::HasSubstr;

// One `agent keep`, in a folder of its own.
class Kept {
 public:
  std::string At(const std::string& name) const { return folder_ / name; }
  std::string Read(const std::string& name) const { return ReadFile(At(name), 1 << 20).value_or(""); }
  // What the program printed.
  std::string out() const { return Read("out"); }

  // The agent with these flags, of a shell that runs the text.
  void Start(std::vector<std::string> flags, const std::string& text) {
    std::vector<std::string> argv = before_;
    argv.insert(argv.end(), {TestedAgent(), "keep"});
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.insert(argv.end(), {"--", "sh", "-c", text});
    auto child = Child::Spawn(
        {.argv = argv, .working_dir = folder_.path(), .stdout_path = At("out"), .stderr_path = At("err")});
    ASSERT_TRUE(child.ok()) << child.status();
    child_ = *std::move(child);
  }
  // As process 1 of a container, whose termination log is the file `message`.
  void StartAsProcess1(std::vector<std::string> flags, const std::string& text) {
    before_ = {
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        "mkdir dev && mknod dev/null c 1 3 && touch message dev/termination-log && mount --bind dev /dev && "
        "mount --bind message /dev/termination-log && exec \"$0\" \"$@\""};
    Start(std::move(flags), text);
  }
  int Wait() {
    const auto ended = child_->Wait(kPatience);
    return ended.ok() ? ShellCode(*ended) : -1;
  }
  bool AwaitOut(const std::string& text) {
    return Await([&] { return out().find(text) != std::string::npos; });
  }
  Child& child() { return *child_; }

 private:
  testing_support::TempFolder folder_;
  std::vector<std::string> before_;
  std::optional<Child> child_;
};

TEST(AgentKeepTest, EndsAsTheProgramDoes) {
  for (const auto& [text, code] :
       std::initializer_list<std::pair<std::string, int>>{{"exit 0", 0},
                                                          {"exit 3", 3},
                                                          {"kill -ABRT $$", 134},
                                                          {"kill -SEGV $$", 139},
                                                          {"kill -KILL $$", 137}}) {
    Kept kept;
    kept.Start({"--restarts", "0"}, text);
    EXPECT_EQ(kept.Wait(), code) << text;
  }
  Kept nothing;
  nothing.Start({}, "exec ./nothing");
  EXPECT_EQ(nothing.Wait(), 127);
}

TEST(AgentKeepTest, TellsAProgramThatItRestartsHowTheOneBeforeEnded) {
  Kept kept;
  kept.Start({},
             "echo \"[$TRAINYARD_LAST_END]\"; [ -e once ] && exit 0; touch once; sleep 0.4; kill -KILL $$");
  EXPECT_EQ(kept.Wait(), 0);
  EXPECT_EQ(kept.out(), "[]\n[was killed by signal 9 (SIGKILL)]\n");
  EXPECT_THAT(kept.Read("err"), HasSubstr("was killed by signal 9 (SIGKILL): starting it again"));
}

TEST(AgentKeepTest, RestartsNoMoreOftenThanItMay) {
  Kept kept;
  kept.Start({"--restarts", "2"}, "echo begun; exit 75");
  EXPECT_EQ(kept.Wait(), 75);
  EXPECT_EQ(kept.out(), "begun\nbegun\nbegun\n");
}

TEST(AgentKeepTest, PassesSignalsOnAndDoesNotRestartWhatIsToEnd) {
  Kept kept;
  kept.Start(
      {}, "trap 'echo usr1' USR1; trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_TRUE(kept.AwaitOut("ready"));
  ASSERT_EQ(::kill(kept.child().pid(), SIGUSR1), 0);
  ASSERT_TRUE(kept.AwaitOut("usr1"));
  ASSERT_EQ(::kill(kept.child().pid(), SIGTERM), 0);
  EXPECT_EQ(kept.Wait(), 7);
  EXPECT_THAT(kept.out(), HasSubstr("saved"));
  Kept deaf;
  deaf.Start({}, "echo ready; exec sleep 1000");
  ASSERT_TRUE(deaf.AwaitOut("ready"));
  ASSERT_EQ(::kill(deaf.child().pid(), SIGTERM), 0);
  EXPECT_EQ(deaf.Wait(), 143);
}

TEST(AgentKeepTest, LeavesNeitherProcessesNorZombies) {
  Kept kept;
  const std::string marker = NewMarker();
  kept.Start({}, StrCat("(setsid sleep ", marker, " &) ; echo left; while :; do (true &); sleep 0.02; done"));
  ASSERT_TRUE(kept.AwaitOut("left"));
  ASSERT_GE(CountProcesses(marker), 1);
  ASSERT_EQ(::kill(kept.child().pid(), SIGTERM), 0);
  EXPECT_EQ(kept.Wait(), 143);
  EXPECT_EQ(CountProcesses(marker), 0);
}

TEST(AgentKeepTest, WritesTheCauseAndTheLastLinesIntoTheTerminationMessage) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root makes namespaces";
  Kept killed;
  killed.StartAsProcess1({"--restarts", "0"}, "echo one; echo bug: two >&2; kill -ABRT $$");
  EXPECT_EQ(killed.Wait(), 134) << killed.Read("err");
  EXPECT_THAT(killed.Read("message"), testing::StartsWith("was killed by signal 6 (SIGABRT)\n"));
  EXPECT_THAT(killed.Read("message"), HasSubstr("bug: two"));
  Kept said;
  said.StartAsProcess1({"--restarts", "0"}, "echo why > /dev/termination-log; exit 3");
  EXPECT_EQ(said.Wait(), 3) << said.Read("err");
  EXPECT_EQ(said.Read("message"), "why\n") << "the program knows better";
  Kept well;
  well.StartAsProcess1({}, "[ -e once ] && exit 0; touch once; echo lost > /dev/termination-log; exit 75");
  EXPECT_EQ(well.Wait(), 0) << well.Read("err");
  EXPECT_EQ(well.Read("message"), "") << "of the process before";
}

}  // namespace
}  // namespace trainyard::agent
