#include "job/restart_rules.h"

#include "gtest/gtest.h"

namespace trainyard::job {
namespace {

TEST(ExitCodes, MayBeWrittenWithBlanks) {
  const auto codes = ExitCodes::Parse(" 137, 128 ");
  ASSERT_TRUE(codes.ok()) << codes.status();
  EXPECT_TRUE(codes->Contains(137));
  EXPECT_TRUE(codes->Contains(128));
  EXPECT_FALSE(codes->Contains(1));
  EXPECT_EQ(codes->Print(), "137,128");
}

TEST(ExitCodes, MayBeRanges) {
  const auto codes = ExitCodes::Parse("1,128 - 255");
  ASSERT_TRUE(codes.ok()) << codes.status();
  for (const int code : {1, 128, 137, 255}) EXPECT_TRUE(codes->Contains(code)) << code;
  for (const int code : {0, 2, 127}) EXPECT_FALSE(codes->Contains(code)) << code;
  EXPECT_EQ(codes->Print(), "1,128-255");
}

TEST(ExitCodes, AreNoneIfNothingIsWritten) {
  const auto codes = ExitCodes::Parse("  ");
  ASSERT_TRUE(codes.ok());
  EXPECT_FALSE(codes->Contains(0));
  EXPECT_EQ(*codes, ExitCodes());
}

TEST(ExitCodes, RefuseWhatIsNone) {
  for (const std::string_view text :
       {"a", "1,", ",1", "256", "-1", "1-", "1-2-3", "1 2", "0x10", "1.5", "--"}) {
    EXPECT_FALSE(ExitCodes::Parse(text).ok()) << text;
  }
  EXPECT_EQ(ExitCodes::Parse("9-3").status().message(), "the range 9-3 is empty: the lower code comes first");
  EXPECT_EQ(ExitCodes::Parse("137,x").status().message(),
            "'x' is no exit code and no range of them: they are whole numbers from 0 to 255");
}

}  // namespace
}  // namespace trainyard::job
