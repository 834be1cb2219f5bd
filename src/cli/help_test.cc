#include "cli/help.h"

#include <set>

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::cli {
namespace {

TEST(HelpPage, FitsAScreen) {
  const std::string page = PrintHelpPage();
  const std::vector<std::string_view> lines = Split(std::string_view(page), '\n');
  EXPECT_LE(lines.size(), 30) << page;
  for (const std::string_view line : lines) EXPECT_LE(line.size(), 79) << line;
}

TEST(HelpPage, HasEveryWordOnce) {
  std::set<std::string_view> words;
  for (const HelpGroup& group : HelpGroups()) {
    for (const HelpEntry& entry : group.entries) {
      EXPECT_TRUE(words.insert(entry.word).second) << entry.word;
      EXPECT_THAT(PrintHelpPage(), testing::HasSubstr(entry.brief));
    }
  }
}

TEST(CompletionScripts, AreThereForThreeShells) {
  for (const std::string_view shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(CompletionScript(shell), testing::HasSubstr("trainyard __complete")) << shell;
  EXPECT_EQ(CompletionScript("cmd"), "");
}

}  // namespace
}  // namespace trainyard::cli
