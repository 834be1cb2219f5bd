// trainyard agent
#include "embedded/agent.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"

namespace trainyard::cli {
namespace {

// Becomes the small program that this one carries: it has flags, help and exit codes of its own.
class AgentCommand final : public Command {
 public:
  std::string name() const override { return "agent"; }
  std::string summary() const override { return "Run a training script in a pod, as a launcher tells it"; }
  void Declare(Flags& flags) override { flags.Everything(args_); }

  absl::Status Run() override {
    const embedded::File& program = embedded::agent().front();
    const Fd file(::memfd_create("trainyard-agent", MFD_CLOEXEC));
    if (!file.valid()) return Wrong("cannot make a file in memory");
    TY_RETURN_IF_ERROR(WriteAll(file.get(), program.bytes, "the agent's program"));
    std::string own_name = "trainyard-agent";
    std::vector<char*> argv{own_name.data()};
    for (std::string& arg : args_) argv.push_back(arg.data());
    argv.push_back(nullptr);
    ::fexecve(file.get(), argv.data(), environ);
    return Wrong("cannot run the agent's program from memory");
  }

 private:
  static absl::Status Wrong(std::string_view what) {
    return absl::InternalError(StrCat(what, ": ", std::strerror(errno)));
  }

  std::vector<std::string> args_;
};

}  // namespace

std::unique_ptr<Command> NewAgent() { return std::make_unique<AgentCommand>(); }

}  // namespace trainyard::cli
