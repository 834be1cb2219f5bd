#include "http/service_account_token.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::http {
namespace {

constexpr char kSecret[] = "the secret of a cluster";

TEST(ServiceAccountTokenTest, NamesItsAccount) {
  const auto found = FindServiceAccount(kSecret, ServiceAccountToken(kSecret, "team-a", "the.master"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->user, "system:serviceaccount:team-a:the.master");
  EXPECT_THAT(found->groups, testing::Contains("system:serviceaccounts:team-a"));
}

TEST(ServiceAccountTokenTest, APodWithoutAnAccountIsTheDefaultOne) {
  EXPECT_EQ(FindServiceAccount(kSecret, ServiceAccountToken(kSecret, "ns", ""))->user,
            "system:serviceaccount:ns:default");
}

TEST(ServiceAccountTokenTest, RefusesWhatItDidNotSign) {
  const std::string token = ServiceAccountToken(kSecret, "ns", "a");
  EXPECT_FALSE(FindServiceAccount("another secret", token));
  EXPECT_FALSE(FindServiceAccount(kSecret, ""));
  EXPECT_FALSE(FindServiceAccount(kSecret, "sa."));
  EXPECT_FALSE(FindServiceAccount(kSecret, "sa.ns.a"));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'b' ? 'c' : 'b';
    EXPECT_FALSE(FindServiceAccount(kSecret, changed)) << changed;
    EXPECT_FALSE(FindServiceAccount(kSecret, token.substr(0, i)));
  }
}

}  // namespace
}  // namespace trainyard::http
