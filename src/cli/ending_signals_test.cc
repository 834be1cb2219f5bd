#include "cli/ending_signals.h"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

TEST(ParseAnswer, TakesOneKeyInEitherCase) {
  EXPECT_EQ(ParseAnswer('e'), Interruption::kEnd);
  EXPECT_EQ(ParseAnswer('E'), Interruption::kEnd);
  EXPECT_EQ(ParseAnswer('l'), Interruption::kLeave);
  EXPECT_EQ(ParseAnswer('L'), Interruption::kLeave);
  EXPECT_EQ(ParseAnswer('c'), Interruption::kGoOn);
}

TEST(ParseAnswer, GoesOnWhereNothingWasChosen) { EXPECT_EQ(ParseAnswer('\n'), Interruption::kGoOn); }

TEST(ParseAnswer, EndsNothingWhenTheTerminalIsGone) { EXPECT_EQ(ParseAnswer('\0'), Interruption::kLeave); }

TEST(ParseAnswer, AsksAgainAfterAnyOtherKey) {
  for (const char key : {'x', 'q', ' ', '\x1b', '\x03', '1'})
    EXPECT_EQ(ParseAnswer(key), std::nullopt) << key;
}

}  // namespace
}  // namespace trainyard::cli
