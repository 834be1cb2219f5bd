// trainyard completion
#include "base/text.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/kv_common.h"

namespace trainyard::cli {
namespace {

class Completion final : public Command {
 public:
  std::string name() const override { return "completion"; }
  std::string summary() const override { return "Print what has a shell complete commands, flags and jobs"; }
  std::string details() const override {
    return "Examples:\n"
           "  source <(trainyard completion bash)\n"
           "  trainyard completion zsh > ~/.zfunc/_trainyard\n"
           "  trainyard completion fish > ~/.config/fish/completions/trainyard.fish";
  }
  void Declare(Flags& flags) override { flags.Argument("SHELL", "bash, zsh or fish", shell_); }
  absl::Status Run() override {
    const std::string script = CompletionScript(shell_);
    if (script.empty())
      return UsageError(StrCat("'", Escaped(shell_), "' is no shell that is known: bash, zsh or fish"));
    return Print(script);
  }
  std::vector<std::string> Complete() override { return {"bash", "zsh", "fish"}; }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> NewCompletion() { return std::make_unique<Completion>(); }

}  // namespace trainyard::cli
