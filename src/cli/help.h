// The one page that `trainyard --help` prints: every command, by what it is for, on a screen. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

struct HelpEntry {
  std::string_view word;   // the command's first word
  std::string_view brief;  // what it does, as short as can be
};
struct HelpGroup {
  std::string_view name;
  std::vector<HelpEntry> entries;
};
const std::vector<HelpGroup>& HelpGroups();

std::string PrintHelpPage();

// What one writes into a file that the shell reads: "bash", "zsh" or "fish"; "" for any other.
std::string CompletionScript(std::string_view shell);

}  // namespace trainyard::cli
