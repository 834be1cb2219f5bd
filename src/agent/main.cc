// trainyard-agent: see agent.h. Started in a pod; a launcher talks to it.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "agent/agent.h"
#include "agent/guard.h"
#include "agent/install.h"
#include "agent/keep.h"

#ifdef TRAINYARD_WITH_JSON
#include "boost/json/src.hpp"  // the library itself, so that the program is one file
#endif

namespace trainyard::agent {
namespace {

constexpr int kMisused = 2;

int Complain(const std::string& what, int code) {
  (void)WriteAll(STDERR_FILENO, "trainyard-agent: " + what + "\n");
  return code;
}

int Print(const std::string& text) { return WriteAll(STDOUT_FILENO, text) ? 0 : 1; }

// A standard descriptor that is closed would be given to the next file that is opened. What stands in for it
// fails, as a closed one does.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) ::_exit(1);
  }
}

// Empty: there is none, and `wrong` says so.
std::string FindToken(const Options& options, std::string& wrong) {
  std::string token;
  if (const char* given = std::getenv("TRAINYARD_AGENT_TOKEN"); given != nullptr) token = given;
  if (token.empty() && !options.token_file.empty() && !ReadSmallFile(options.token_file, token, 4096)) {
    wrong = Failure::Here("cannot read the token file " + options.token_file).Text();
    return "";
  }
  constexpr const char* kSpace = " \t\r\n";
  token.erase(token.find_last_not_of(kSpace) + 1);
  token.erase(0, token.find_first_not_of(kSpace));
  if (token.empty()) wrong = "there is no token: set TRAINYARD_AGENT_TOKEN or --token-file FILE";
  return token;
}

std::vector<std::string> TakeEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  return variables;
}

std::string NewIncarnation() {
  unsigned char bytes[8] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return std::to_string(WallMillis());
  std::string text;
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

// What a large configuration took goes back to the system, and not only into a list of free pieces.
void KeepMemorySmall() {
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

int Serve(const Options& options) {
  KeepMemorySmall();
  std::string wrong;
  AgentConfig config{.options = options, .token = FindToken(options, wrong)};
  if (config.token.empty()) return Complain(wrong, kMisused);
  // The script runs as the same user; it shall not find the token in what the kernel shows of this process.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  config.guard = StandGuard();
  config.environment = TakeEnvironment();
  config.incarnation = NewIncarnation();
  Agent agent(std::move(config));
  if (const Failure failure = agent.Open(); !failure.ok()) {
    return Complain(failure.Text(), failure.error == 0 ? kMisused : 1);
  }
  return agent.Serve();
}

int Run(int argc, char** argv) {
  FillStandardDescriptors();
  const auto environment = [](const std::string& name) { return std::getenv(name.c_str()); };
  const ParsedOptions parsed = ParseOptions({argv + 1, argv + argc}, environment);
  if (!parsed.wrong.empty()) return Complain(parsed.wrong + "; see trainyard-agent --help", kMisused);
  switch (parsed.options.action) {
    case Action::kHelp:
      return Print(Help());
    case Action::kVersion:
      return Print("trainyard-agent " TRAINYARD_VERSION "\n");
    case Action::kInstall: {
      const Failure failure = Install(parsed.options.to);
      return failure.ok() ? 0 : Complain(failure.Text(), 1);
    }
    case Action::kKeep:
      return Keep(parsed.options, TakeEnvironment());
    case Action::kServe:
      return Serve(parsed.options);
  }
  return kMisused;
}

}  // namespace
}  // namespace trainyard::agent

int main(int argc, char** argv) try {
  return trainyard::agent::Run(argc, argv);
} catch (const std::exception& error) {  // no memory to be had
  (void)std::fprintf(stderr, "trainyard-agent: cannot go on: %s\n", error.what());
  return 1;
}
