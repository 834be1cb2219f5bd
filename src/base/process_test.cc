#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = StrCat(testing::TempDir(), "process_test.XXXXXX");
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string Path(std::string_view name) const { return StrCat(dir_, "/", name); }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Runs a shell script to its end and returns what it printed.
  std::string Output(const std::string& script, ProcessSpec spec = {}) const {
    spec.argv = {"/bin/sh", "-c", script};
    spec.stdout_path = Path("out");
    auto child = Child::Spawn(spec);
    EXPECT_TRUE(child.ok()) << child.status();
    EXPECT_EQ(*child->Wait(), ExitStatus(Exited{0}));
    return Read(Path("out"));
  }

  std::string dir_;
};

ProcessSpec Shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

// True while a process of this id exists and is not a zombie.
bool Alive(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return false;
  return line.substr(line.rfind(')') + 2, 1) != "Z";
}

TEST_F(ProcessTest, TellsAnExitCodeFromASignalOfTheSameNumber) {
  auto exits = Child::Spawn(Shell("exit 137"));
  auto dies = Child::Spawn(Shell("kill -9 $$"));
  ASSERT_TRUE(exits.ok() && dies.ok());
  const ExitStatus exited = *exits->Wait();
  const ExitStatus killed = *dies->Wait();
  EXPECT_EQ(exited, ExitStatus(Exited{137}));
  EXPECT_EQ(killed, ExitStatus(Signaled{.signal = 9}));
  EXPECT_EQ(ShellCode(exited), ShellCode(killed));
  EXPECT_EQ(PrintExit(exited), "exited 137");
  EXPECT_EQ(PrintExit(killed), "killed by signal 9 (SIGKILL)");
}

TEST_F(ProcessTest, GivesTheChildExactlyTheEnvironmentAndFolderAskedFor) {
  ProcessSpec spec;
  spec.env.emplace().emplace_back("ONLY", "this one");
  spec.working_dir = dir_;
  const std::string printed = Output("/usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _; pwd", spec);
  EXPECT_THAT(Split(printed, '\n'),
              ElementsAre("ONLY=this one", std::filesystem::canonical(dir_).string(), ""));
}

TEST_F(ProcessTest, LeaksNoDescriptorIntoTheChild) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int leak = ::fcntl(null.get(), F_DUPFD, 77);  // without O_CLOEXEC, as a careless library would
  ASSERT_GE(leak, 77);
  const std::string listed = Output("for f in /proc/self/fd/*; do echo ${f##*/}; done");
  ::close(leak);
  const std::vector<std::string_view> fds = Split(listed, '\n');
  // The shell itself may hold its reading of the folder open.
  EXPECT_LE(fds.size(), 5u) << listed;
  EXPECT_THAT(fds, testing::Not(testing::Contains(std::to_string(leak))));
}

TEST_F(ProcessTest, ReachesGrandchildrenThroughTheGroup) {
  ProcessSpec spec = Shell("sleep 1000 & echo $!; wait");
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  Fd reader(pipe_fds[0]);
  Fd writer(pipe_fds[1]);
  spec.stdout_fd = writer.get();
  auto child = Child::Spawn(spec);
  ASSERT_TRUE(child.ok());
  char text[32] = {};
  ASSERT_GT(::read(reader.get(), text, sizeof text - 1), 0);
  const pid_t grandchild = std::atoi(text);
  ASSERT_TRUE(Alive(grandchild));
  EXPECT_EQ(*child->Stop(absl::Minutes(1)), ExitStatus(Signaled{.signal = SIGTERM}));
  // The read ends when the last holder of the pipe is gone.
  writer.Reset();
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 0);
  while (Alive(grandchild))
    std::this_thread::yield();  // closing its files is not the last thing a process does
}

TEST_F(ProcessTest, KillsWhatIgnoresTheTermSignalWhenTheGraceIsOver) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  Fd reader(pipe_fds[0]);
  Fd writer(pipe_fds[1]);
  ProcessSpec spec = Shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
  spec.stdout_fd = writer.get();
  auto child = Child::Spawn(spec);
  ASSERT_TRUE(child.ok());
  char text[8] = {};
  ASSERT_GT(::read(reader.get(), text, sizeof text), 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(child->Wait(absl::ZeroDuration()).status()));
  EXPECT_EQ(*child->Stop(absl::Milliseconds(20)), ExitStatus(Signaled{.signal = SIGKILL}));
}

TEST_F(ProcessTest, LeavesNoZombieWhenItsOwnerGoes) {
  pid_t pid = -1;
  {
    auto child = Child::Spawn(Shell("sleep 1000"));
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    Child moved = *std::move(child);
    EXPECT_EQ(moved.pid(), pid);
    EXPECT_TRUE(Alive(pid));
  }
  EXPECT_FALSE(std::filesystem::exists(StrCat("/proc/", pid)));
}

TEST_F(ProcessTest, AppendsBothStreamsToOneLogAcrossRestarts) {
  ProcessSpec spec = Shell("echo out; echo err >&2");
  spec.stdout_path = spec.stderr_path = Path("log");
  for (int i = 0; i < 2; ++i) {
    auto child = Child::Spawn(spec);
    ASSERT_TRUE(child.ok());
    ASSERT_TRUE(child->Wait().ok());
  }
  EXPECT_EQ(Read(Path("log")), "out\nerr\nout\nerr\n");
}

TEST_F(ProcessTest, ResetsSignalsThatThisProcessIgnores) {
  const auto previous = ::signal(SIGTERM, SIG_IGN);
  auto child = Child::Spawn(Shell("kill -TERM $$; exit 0"));
  ::signal(SIGTERM, previous);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*child->Wait(), ExitStatus(Signaled{.signal = SIGTERM}));
}

TEST_F(ProcessTest, NamesWhatIsMissing) {
  EXPECT_THAT(Message(Child::Spawn({.argv = {"/no/such/program"}}).status()),
              HasSubstr("cannot start /no/such/program: No such file"));
  ProcessSpec spec = Shell("true");
  spec.working_dir = "/no/such/folder";
  EXPECT_THAT(Message(Child::Spawn(spec).status()),
              HasSubstr("working directory /no/such/folder does not exist"));
  spec = Shell("true");
  spec.stdout_path = "/no/such/folder/log";
  EXPECT_THAT(Message(Child::Spawn(spec).status()),
              HasSubstr("cannot open /no/such/folder/log for a process"));
  EXPECT_TRUE(absl::IsInvalidArgument(Child::Spawn({}).status()));
}

TEST_F(ProcessTest, StillAnswersAfterTheEnd) {
  auto child = Child::Spawn(Shell("exit 3"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(*child->Wait(), ExitStatus(Exited{3}));
  EXPECT_EQ(*child->Wait(), ExitStatus(Exited{3}));
  EXPECT_EQ(*child->Stop(absl::ZeroDuration()), ExitStatus(Exited{3}));
  EXPECT_TRUE(absl::IsNotFound(child->Kill(SIGKILL)));
}

}  // namespace
}  // namespace trainyard
