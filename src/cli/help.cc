#include "cli/help.h"

#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kGroupWidth = 10;
constexpr std::size_t kWordWidth = 13;
constexpr std::size_t kColumnWidth = 35;

std::string Padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

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

class Version final : public Command {
 public:
  std::string name() const override { return "version"; }
  std::string summary() const override { return "Print which version this is"; }
  void Declare(Flags&) override {}
  absl::Status Run() override { return Print("trainyard " + Release() + "\n"); }
};

}  // namespace

const std::vector<HelpGroup>& HelpGroups() {
  static const std::vector<HelpGroup>* const groups = new std::vector<HelpGroup>{
      {"Cluster",
       {{"up", "start one here"},
        {"down", "end it"},
        {"status", "whether one runs"},
        {"node", "let nodes fail"}}},
      {"Jobs",
       {{"apply", "submit or change"},
        {"run", "a command, n times"},
        {"get", "list them"},
        {"describe", "all of one"},
        {"why", "is it as it is?"},
        {"logs", "of all members"},
        {"events", "what has happened"},
        {"top", "what members use"},
        {"scale", "more or fewer pods"},
        {"delete", "end and remove"},
        {"plan", "what would be done"}}},
      {"Training",
       {{"train", "workers come and go"},
        {"evaluate", "a trained model"},
        {"predict", "with a trained model"},
        {"launch", "a script in members"},
        {"graph", "a net, on pservers"}}},
      {"Data", {{"data", "look, verify, convert"}, {"checkpoint", "list, verify, export"}}},
      {"Daemons",
       {{"operator", "runs jobs"},
        {"launcher", "runs launched tasks"},
        {"master", "of an elastic job"},
        {"worker", "of an elastic job"},
        {"pserver", "of an elastic job"},
        {"graph-worker", "of a graph job"},
        {"agent", "of a launched script"},
        {"store", "serve a store"}}},
      {"Other",
       {{"kv", "look into a store"},
        {"image", "for the launcher"},
        {"version", "which one this is"},
        {"completion", "bash, zsh, fish"},
        {"man", "help as a man page"}}}};
  return *groups;
}

std::string PrintHelpPage() {
  std::string out =
      "Runs distributed training jobs to their end.\n\n"
      "Usage: trainyard COMMAND [FLAGS]     `trainyard COMMAND --help` tells more\n\n";
  for (const HelpGroup& group : HelpGroups()) {
    for (std::size_t i = 0; i < group.entries.size(); i += 2) {
      std::string line = Padded(i == 0 ? std::string(group.name) : "", kGroupWidth);
      std::string cell =
          StrCat(Padded(std::string(group.entries[i].word), kWordWidth), group.entries[i].brief);
      if (i + 1 < group.entries.size()) {
        StrAppend(line, Padded(std::move(cell), kColumnWidth),
                  Padded(std::string(group.entries[i + 1].word), kWordWidth), group.entries[i + 1].brief);
      } else {
        line += cell;
      }
      StrAppend(out, line, "\n");
    }
  }
  out +=
      "\n--log-level debug|info|warn|error|off   --log-format text|json   --help\n"
      "Every flag --x-y can be set by TRAINYARD_X_Y too. Exit codes: 0 done, 1 failed,\n"
      "2 misused, 3 failed for good.\n";
  return out;
}

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") {
    return R"(# trainyard: source this, or put it into the folder of bash-completion.
_trainyard() {
  local IFS=$'\n'
  COMPREPLY=($(trainyard __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  # A name that ends in / or = goes on.
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace
  return 0
}
complete -o default -F _trainyard trainyard
)";
  }
  if (shell == "zsh") {
    return R"(#compdef trainyard
# trainyard: put this as _trainyard into a folder of $fpath, or source it after compinit.
_trainyard() {
  local -a found
  found=("${(@f)$(trainyard __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n ${found[1]} ]]; then
    compadd -- $found
  else
    _files
  fi
}
compdef _trainyard trainyard
)";
  }
  if (shell == "fish") {
    return R"(# trainyard: put this as trainyard.fish into ~/.config/fish/completions.
function __trainyard_complete
    set -l words (commandline -opc) (commandline -ct)
    trainyard __complete $words[2..-1] 2>/dev/null
end
complete -c trainyard -a '(__trainyard_complete)'
)";
  }
  return "";
}

std::unique_ptr<Command> NewCompletion() { return std::make_unique<Completion>(); }

std::string Release() { return TRAINYARD_VERSION; }

std::unique_ptr<Command> NewVersion() { return std::make_unique<Version>(); }

}  // namespace trainyard::cli
