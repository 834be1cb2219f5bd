#include "base/check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace trainyard {
namespace {

std::string ReadAll(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t got; (got = ::read(fd, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  return text;
}

struct Died {
  int wait_status = 0;
  std::string said;     // on standard error
  std::string message;  // for the pod's status
};

// Runs it as process 1 of a container: as `unshare --pid --mount --fork` does, with a termination log.
// Nothing: this process may not.
std::optional<Died> DieAsProcess1(const std::function<void()>& die) {
  int said[2];
  int message[2];
  if (::pipe2(said, O_CLOEXEC) != 0 || ::pipe2(message, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t outer = ::fork();
  if (outer == 0) {
    ::dup2(said[1], STDERR_FILENO);
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("dev", "/dev", "tmpfs", 0, nullptr) != 0)
      ::_exit(1);
    const int log = ::open("/dev/termination-log", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    const pid_t inner = ::fork();
    if (inner == 0) {
      die();
      ::_exit(0);
    }
    int status = 0;
    if (::waitpid(inner, &status, 0) != inner) ::_exit(1);
    const std::string text = ReadAll(log);
    (void)!::write(message[1], &status, sizeof status);
    (void)!::write(message[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(said[1]);
  ::close(message[1]);
  Died died{.said = ReadAll(said[0])};
  std::string answer = ReadAll(message[0]);
  ::close(said[0]);
  ::close(message[0]);
  int ended = 0;
  if (outer < 0 || ::waitpid(outer, &ended, 0) != outer || ended != 0 ||
      answer.size() < sizeof died.wait_status)
    return std::nullopt;
  answer.copy(reinterpret_cast<char*>(&died.wait_status), sizeof died.wait_status);
  died.message = answer.substr(sizeof died.wait_status);
  return died;
}

TEST(CheckFailed, EndsProcess1OfAContainerWith134AndSaysWhyInItsLogAndItsStatus) {
  const auto died = DieAsProcess1([] { CheckFailed("1 == 2", "numbers are equal", "numbers.cc", 7); });
  if (!died) GTEST_SKIP() << "SKIPPED: this process may not make namespaces";
  EXPECT_TRUE(WIFEXITED(died->wait_status));
  EXPECT_EQ(WEXITSTATUS(died->wait_status), 134);
  EXPECT_EQ(died->message, "numbers.cc:7: bug: numbers are equal (1 == 2 does not hold)");
  EXPECT_EQ(died->said, died->message + "\n");
}

TEST(EndByAborts, EndsProcess1OfAContainerWith134WhoeverAborts) {
  const auto died = DieAsProcess1([] {
    EndByAborts();
    std::abort();
  });
  if (!died) GTEST_SKIP() << "SKIPPED: this process may not make namespaces";
  EXPECT_TRUE(WIFEXITED(died->wait_status));
  EXPECT_EQ(WEXITSTATUS(died->wait_status), 134);
}

TEST(CheckFailed, AbortsAnyOtherProcess) {
  EXPECT_EXIT(CheckFailed("false", "it holds", "x.cc", 1), ::testing::KilledBySignal(SIGABRT),
              "x.cc:1: bug: it holds");
}

}  // namespace
}  // namespace trainyard
