#include "kv/open.h"

#include <fstream>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const StoreEnvironment kEnvironment{.home = "/home/u"};

EtcdOptions Etcd(std::string_view url, const StoreEnvironment& environment = kEnvironment) {
  const auto parsed = ParseStoreUrl(url, environment);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? std::get<EtcdOptions>(*parsed) : EtcdOptions{};
}

TEST(ParseStoreUrl, TakesAFolderAndKnowsTheHome) {
  EXPECT_EQ(std::get<EmbeddedUrl>(*ParseStoreUrl("embedded:/var/x", kEnvironment)).folder, "/var/x");
  EXPECT_EQ(std::get<EmbeddedUrl>(*ParseStoreUrl("embedded:rel/x", kEnvironment)).folder, "rel/x");
  EXPECT_EQ(std::get<EmbeddedUrl>(*ParseStoreUrl("embedded:~/x", kEnvironment)).folder, "/home/u/x");
}

TEST(ParseStoreUrl, TakesMembersWithAndWithoutPorts) {
  EXPECT_THAT(Etcd("etcd://a:1,b,[::1]:7,[fe80::1]").endpoints,
              ElementsAre("a:1", "b:2379", "[::1]:7", "[fe80::1]:2379"));
  EXPECT_FALSE(Etcd("etcd://a").tls);
  EXPECT_TRUE(Etcd("etcds://a").tls);
  EXPECT_EQ(Etcd("etcd://a?timeout=250ms").timeout, absl::Milliseconds(250));
}

TEST(ParseStoreUrl, TakesTlsAndUser) {
  const EtcdOptions options =
      Etcd("etcd://a?ca=/ca&cert=/c&key=/k&user=u", {.home = "", .etcd_password = "p"});
  EXPECT_TRUE(options.tls);
  EXPECT_EQ(options.ca_file, "/ca");
  EXPECT_EQ(options.cert_file, "/c");
  EXPECT_EQ(options.key_file, "/k");
  EXPECT_EQ(options.user, "u");
  EXPECT_EQ(options.password, "p");
  const std::string path = testing::TempDir() + "open_test_password";
  std::ofstream(path) << "from a file\n";
  EXPECT_EQ(Etcd(StrCat("etcd://a?user=u&password-file=", path)).password, "from a file");
}

TEST(ParseStoreUrl, TakesATokenFromAFileOrTheEnvironmentButNotBesideAUser) {
  const std::string path = testing::TempDir() + "open_test_token";
  std::ofstream(path) << "from-a-file\nand nothing else\n";
  const std::string url = StrCat("etcd://a?token-file=", path);
  EXPECT_EQ(Etcd(url).token, "from-a-file");
  EXPECT_EQ(Etcd(url, {.etcd_token = "other"}).token, "from-a-file");
  EXPECT_EQ(Etcd("etcd://a", {.etcd_token = "x"}).token, "x");
  EXPECT_EQ(Etcd("etcd://a").token, "");
  EXPECT_EQ(Etcd("etcd://a?user=u", {.etcd_password = "p", .etcd_token = "x"}).token, "");
  EXPECT_THAT(Message(ParseStoreUrl(url + "&user=u", {.etcd_password = "p"}).status()),
              HasSubstr("give a user or a token, not both"));
  EXPECT_THAT(Message(ParseStoreUrl("etcd://a", {.etcd_token = "two words"}).status()),
              HasSubstr("TRAINYARD_ETCD_TOKEN: a token has printable ASCII characters only"));
}

TEST(ParseStoreUrl, SaysWhatIsWrongAndWhatIsRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "use embedded:PATH, etcd://HOST:PORT"},
      {"nonsense", "bad store URL 'nonsense': use embedded:PATH, etcd://HOST:PORT"},
      {"http://a:2379", "use embedded:PATH"},
      {"embedded:", "a folder must follow"},
      {"etcd://", "'' is not HOST or HOST:PORT"},
      {"etcd://a:0", "'a:0' is not HOST or HOST:PORT"},
      {"etcd://a:99999", "'a:99999' is not HOST or HOST:PORT"},
      {"etcd://a,,b", "'' is not HOST or HOST:PORT"},
      {"etcd://u:p@a", "a user goes into ?user=NAME"},
      {"etcd://[zz]:1", "is not HOST or HOST:PORT"},
      {"etcd://a?ca=", "option 'ca' needs a value"},
      {"etcd://a?timeout=1s&timeout=2s", "option 'timeout' is given twice"},
      {"etcd://a?timeout=inf", "'inf' is no time"},
      {"etcd://a?password-file=/etc/hostname", "a password-file goes with a user"},
      {"etcd://[::1:7", "is not HOST or HOST:PORT"},
      {"etcd://a?colour=red",
       "unknown option 'colour': there are ca, cert, key, user, password-file, token-file and timeout"},
      {"etcd://a?timeout=soon", "'soon' is no time above 0 and up to 1h"},
      {"etcd://a?cert=/c", "cert and key go together"},
      {"etcd://a?user=u", "set TRAINYARD_ETCD_PASSWORD or add &password-file=FILE"},
      {"etcd://a?user=u&password-file=/no/such", "cannot read /no/such"},
      {"etcd://a?token-file=/no/such", "cannot read /no/such"},
      {"etcd://a?token-file=/dev/null", "the token file /dev/null: a token must not be empty"},
  };
  for (const auto& [url, message] : cases) {
    const auto parsed = ParseStoreUrl(url, kEnvironment);
    EXPECT_FALSE(parsed.ok()) << url;
    EXPECT_THAT(Message(parsed.status()), HasSubstr(message)) << url;
  }
}

TEST(ParseStoreUrl, RepeatsNoSecret) {
  for (const char* url : {"etcd://root:hunter2@a:1", "etcd://a?user=root&password=hunter2"}) {
    EXPECT_THAT(Message(ParseStoreUrl(url, kEnvironment).status()), testing::Not(HasSubstr("hunter2")));
  }
}

TEST(ParseStoreUrl, NeedsAHomeForTheTilde) {
  EXPECT_THAT(Message(ParseStoreUrl("embedded:~/x", {}).status()), HasSubstr("HOME is not set"));
}

}  // namespace
}  // namespace trainyard::kv
