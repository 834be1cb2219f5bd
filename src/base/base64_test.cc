#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace trainyard {
namespace {

TEST(Base64, EncodesTheStandardsExamples) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(EncodeBase64("\xff\xfe\xfd"), "//79");
}

TEST(Base64, GivesBackEveryByteAtEveryLength) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)).value(), bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64, PassesOverLineBreaksAndMissingPadding) {
  EXPECT_EQ(DecodeBase64("Zm9v\r\n YmE=\n").value(), "fooba");
  EXPECT_EQ(DecodeBase64("Zm9vYmE").value(), "fooba");
  EXPECT_EQ(DecodeBase64("Zg").value(), "f");
}

TEST(Base64, SaysWhichByteIsWrong) {
  EXPECT_EQ(Message(DecodeBase64("Zm9*").status()), "not base 64: \"*\" at byte 4");
  EXPECT_EQ(Message(DecodeBase64("Zg==Zg==").status()), "not base 64: \"Z\" at byte 5");
  for (const char* wrong : {"Z", "Zm9vY", "=", "Z===", "Zg===", "Zm9v=", "Zm9-"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeBase64(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace trainyard
