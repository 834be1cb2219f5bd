// The real agent's logs: kept, followed, dropped when there are too many, and never in the script's way.
#include <fcntl.h>

#include "gmock/gmock.h"
#include "tests/integration/agent_pod.h"

namespace trainyard::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Waits for a file of its pod.
std::string Waits(std::string_view file) {
  return StrCat("while [ ! -e ", file, " ]; do sleep 0.02; done; ");
}

std::int64_t LogBytes(const AgentPod& pod) { return *IntAt(pod.Get("/status").json(), {"logBytes"}); }

TEST(AgentLogsTest, FollowsOutputAsItComes) {
  const AgentPod pod;
  pod.Post("/config",
           AgentPod::ShellConfig(StrCat("echo one; ", Waits("go"), "echo two >&2; ", Waits("end"))));
  AgentClient early(pod.port());
  early.Send(AgentClient::Print("GET", "/logs?follow=1"));
  pod.Post("/run");
  EXPECT_EQ(early.ReadHead().headers["x-log-from"], "0") << "also before there is anything";
  EXPECT_EQ(early.ReadChunk(), "one\n");
  AgentClient late(pod.port());
  late.Send(AgentClient::Print("GET", "/logs?follow=1&from=2"));
  EXPECT_EQ(late.ReadHead().headers["x-log-from"], "2");
  EXPECT_EQ(late.ReadChunk(), "e\n");
  pod.Write("go", "");
  EXPECT_EQ(early.ReadChunk(), "two\n");
  EXPECT_EQ(late.ReadChunk(), "two\n");
  pod.Write("end", "");
  bool broken = false;
  EXPECT_EQ(early.ReadChunk(&broken), "") << "the run is over, and so is its log";
  EXPECT_FALSE(broken);
  EXPECT_EQ(early.Call("GET", "/status").state(), "exited") << "the connection goes on";
}

TEST(AgentLogsTest, ReadsFromAnOffsetOrTheLastLines) {
  const AgentPod pod;
  pod.Run("echo one; echo two; echo three");
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Get("/logs").body, "one\ntwo\nthree\n");
  EXPECT_EQ(pod.Get("/logs?from=4").body, "two\nthree\n");
  EXPECT_EQ(pod.Get("/logs?from=14").body, "");
  EXPECT_EQ(pod.Get("/logs?from=15").code, 400);
  EXPECT_EQ(pod.Get("/logs?tail=1").body, "three\n");
  EXPECT_EQ(pod.Get("/logs?tail=1").headers["x-log-from"], "8");
  EXPECT_EQ(pod.Get("/logs?tail=2&follow=1").body, "two\nthree\n");
  EXPECT_EQ(pod.Get("/logs?tail=x").code, 400);
  EXPECT_EQ(pod.Get("/logs").headers["content-type"], "text/plain; charset=utf-8");
}

TEST(AgentLogsTest, KeepsTheLogsOfTheAttemptBefore) {
  const AgentPod pod;
  pod.Run("echo first", 1);
  pod.AwaitState("exited");
  AgentClient follower(pod.port());
  pod.Run("echo second", 3);
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Get("/logs?attempt=1").body, "first\n");
  EXPECT_EQ(pod.Get("/logs?attempt=3").body, "second\n");
  EXPECT_EQ(pod.Get("/logs").body, "second\n");
  pod.Post("/config", AgentPod::ShellConfig("true", 4));
  EXPECT_EQ(pod.Get("/logs?attempt=3").body, "second\n");
  EXPECT_EQ(pod.Get("/logs?attempt=1").code, 404);
  EXPECT_THAT(pod.Get("/logs?attempt=1").error(), HasSubstr("there are logs of attempt 4 and 3"));
  EXPECT_EQ(pod.Get("/logs").body, "") << "nothing yet";
}

TEST(AgentLogsTest, DropsTheOldestOutputAndSaysFromWhereItIs) {
  const AgentPod pod({.flags = {"--log-bytes", "40000"}});
  pod.Run("i=0; while [ $i -lt 10000 ]; do echo line-$i; i=$((i+1)); done");
  const HttpAnswer status = pod.AwaitState("exited");
  std::string printed;
  for (int i = 0; i < 10'000; ++i) StrAppend(printed, "line-", i, "\n");
  EXPECT_EQ(IntAt(status.json(), {"logBytes"}), static_cast<std::int64_t>(printed.size()));
  const HttpAnswer logs = pod.Get("/logs?from=5");
  const auto from = ParseNumber<std::size_t>(logs.headers.at("x-log-from"));
  ASSERT_TRUE(from);
  EXPECT_EQ(IntAt(status.json(), {"logDropped"}), static_cast<std::int64_t>(*from));
  EXPECT_EQ(logs.body, printed.substr(*from));
  EXPECT_GT(logs.body.size(), 10'000u);
  EXPECT_LE(logs.body.size(), 20'000u) << "the other half is for another attempt";
  EXPECT_EQ(pod.Stdout(), printed) << "what it copies is all";
}

TEST(AgentLogsTest, LeavesNoFileBehind) {
  const AgentPod pod;
  pod.Run("echo kept; " + Waits("go"));
  pod.AwaitOutput("kept");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(pod / ""))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"stdout", "stderr"})) << "its files have no names";
}

TEST(AgentLogsTest, KeepsOutputInMemoryWhereItCannotWrite) {
  const AgentPod pod({.flags = {"--state-dir", "/proc/none"}});
  pod.Run("head -c 3000000 /dev/zero; echo the end");
  const HttpAnswer status = pod.AwaitState("exited");
  EXPECT_EQ(StringAt(status.json(), {"logs"}), "memory");
  EXPECT_EQ(IntAt(status.json(), {"logBytes"}), 3'000'008);
  EXPECT_THAT(pod.Get("/logs?tail=1&from=3000000").body, EndsWith("the end\n"));
  EXPECT_LE(pod.Get("/logs").body.size(), std::size_t{512} << 10);
  pod.Run("echo second", 2);
  pod.AwaitState("exited");
  EXPECT_EQ(pod.Get("/logs").body, "second\n");
  const std::string said = pod.Stderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 2) << "where it listens, and once that it has no disk: " << said;
  EXPECT_THAT(said, HasSubstr("kept in memory"));
}

TEST(AgentLogsTest, NeverWaitsForASlowReader) {
  const AgentPod pod({.flags = {"--log-bytes", "8Mi"}});
  pod.Post("/config", AgentPod::ShellConfig("head -c 50000000 /dev/zero; echo; echo the end"));
  AgentClient slow(pod.port());
  slow.Send(AgentClient::Print("GET", "/logs?follow=1"));
  EXPECT_EQ(slow.ReadHead().code, 200);
  pod.Post("/run");
  EXPECT_EQ(pod.AwaitState("exited").reason(), "exited 0");
  // What it did not read is gone; it sees that, and asks again from where it was.
  bool broken = false;
  std::size_t got = 0;
  for (std::string chunk; !(chunk = slow.ReadChunk(&broken)).empty();) got += chunk.size();
  EXPECT_TRUE(broken);
  const HttpAnswer rest = pod.Get(StrCat("/logs?from=", got));
  EXPECT_GT(*ParseNumber<std::size_t>(rest.headers.at("x-log-from")), got);
  EXPECT_THAT(rest.body, EndsWith("\nthe end\n"));
}

TEST(AgentLogsTest, CopiesEachStreamToItsOwn) {
  const AgentPod pod;
  pod.Run("echo out; echo err >&2; printf end");
  pod.AwaitState("exited");
  EXPECT_TRUE(Await([&] { return pod.Stdout() == "out\nend"; })) << pod.Stdout();
  EXPECT_THAT(pod.Stderr(), EndsWith("\nerr\n"));
}

TEST(AgentLogsTest, NeverWaitsForItsOwnOutput) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  const AgentPod pod({.stdout_fd = write.get()});
  write.Reset();
  pod.Run("head -c 3000000 /dev/zero; echo the end");
  const HttpAnswer status = pod.AwaitState("exited");
  EXPECT_EQ(status.reason(), "exited 0");
  EXPECT_EQ(LogBytes(pod), 3'000'008) << "its own log has all";
  const std::int64_t dropped = *IntAt(pod.Get("/status").json(), {"copyDropped"});
  EXPECT_GT(dropped, 2'000'000);
  // A reader that comes back gets what was kept for it, and then all that is new.
  std::size_t taken = 0;
  std::string last;
  char room[65536];
  while (taken < 3'000'008 - static_cast<std::size_t>(dropped)) {
    const ssize_t got = ::read(read.get(), room, sizeof room);
    ASSERT_GT(got, 0);
    taken += static_cast<std::size_t>(got);
  }
  pod.Run("echo again", 2);
  ASSERT_EQ(::read(read.get(), room, sizeof room), 6);
  EXPECT_EQ(std::string_view(room, 6), "again\n");
}

TEST(AgentLogsTest, BearsThatNobodyHasItsOutput) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd read(ends[0]);
  Fd write(ends[1]);
  const AgentPod pod({.stdout_fd = write.get()});
  write.Reset();
  read.Reset();
  pod.Run("echo hello");
  EXPECT_EQ(IntAt(pod.AwaitState("exited").json(), {"copyDropped"}), 6);
  EXPECT_EQ(pod.Get("/logs").body, "hello\n");
}

}  // namespace
}  // namespace trainyard::agent
