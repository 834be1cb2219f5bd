#include "base/access.h"

#include <fstream>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

TEST(IsToken, TakesItAloneAndBehindItsScheme) {
  EXPECT_TRUE(IsToken("secret", "secret"));
  EXPECT_TRUE(IsToken("Bearer secret", "secret"));
  EXPECT_TRUE(IsToken("bearer secret", "secret"));
}

TEST(IsToken, TakesNothingElse) {
  for (const char* sent : {"", "s", "secre", "secrets", "Secret", "secretsecret", "Bearer", "Bearer ",
                           "Bearer  secret", "Basic secret", "secret "}) {
    EXPECT_FALSE(IsToken(sent, "secret")) << sent;
  }
  EXPECT_FALSE(IsToken("", "")) << "no token is no way in";
}

TEST(ReadToken, TakesTheFirstLineOfAFile) {
  const std::string path = testing::TempDir() + "access_test_token";
  std::ofstream(path) << "secret\r\nnotes about it\n";
  EXPECT_EQ(*ReadToken(path), "secret");
  for (const char* content : {"", "\nsecret\n", "two words\n", "umlaut-\xc3\xbc\n"}) {
    std::ofstream(path) << content;
    const absl::Status status = ReadToken(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << content;
    EXPECT_THAT(Message(status), HasSubstr(StrCat("the token file ", path, ": a token ")));
    EXPECT_THAT(Message(status), testing::Not(HasSubstr("words")));
  }
  EXPECT_TRUE(absl::IsNotFound(ReadToken("/no/such").status()));
}

TEST(FindToken, DropsTheWhiteSpaceAroundAToken) {
  const std::string path = testing::TempDir() + "access_test_token";
  for (const char* content : {"secret", "secret\n", "secret\r\n", " secret \n", "secret\n\n"}) {
    std::ofstream(path) << content;
    EXPECT_EQ(*FindToken(path, "NO_SUCH_VARIABLE"), "secret") << content;
    ASSERT_EQ(::setenv("ACCESS_TEST_TOKEN", content, 1), 0);
    EXPECT_EQ(*FindToken("", "ACCESS_TEST_TOKEN"), "secret") << content;
  }
  EXPECT_EQ(*FindToken("", "NO_SUCH_VARIABLE"), "");
  ASSERT_EQ(::setenv("ACCESS_TEST_TOKEN", "two words", 1), 0);
  EXPECT_THAT(Message(FindToken("", "ACCESS_TEST_TOKEN").status()),
              HasSubstr("ACCESS_TEST_TOKEN: a token has"));
}

TEST(ParseListenAddress, KnowsWhoCanReachIt) {
  const std::vector<std::tuple<std::string, std::string, bool>> cases = {
      {"127.0.0.1:2379", "127.0.0.1:2379", true},
      {"127.9.8.7:0", "127.9.8.7:0", true},
      {"localhost:1", "127.0.0.1:1", true},
      {"[::1]:2379", "[::1]:2379", true},
      {":2379", "[::]:2379", false},
      {"0.0.0.0:2379", "0.0.0.0:2379", false},
      {"[::]:2379", "[::]:2379", false},
      {"10.1.2.3:65535", "10.1.2.3:65535", false},
      {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", false},
  };
  for (const auto& [text, shown, loopback] : cases) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text << address.status();
    EXPECT_EQ(address->Text(), shown);
    EXPECT_EQ(address->IsLoopback(), loopback) << text;
  }
}

TEST(ParseListenAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "2379", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:1",
                           "[127.0.0.1]:1", "example.com:1", "127.1:1", "[::1:1"}) {
    const absl::Status status = ParseListenAddress(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr("is no address to listen at: write ADDRESS:PORT")) << text;
  }
}

}  // namespace
}  // namespace trainyard
