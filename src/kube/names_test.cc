#include "kube/names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

using ::testing::HasSubstr;

TEST(Names, TakeDnsLabelsAndNothingElse) {
  for (const char* good : {"a", "0", "my-name", "123-abc", "a--b"}) {
    EXPECT_EQ(FindDns1123LabelProblem(good), "") << good;
  }
  for (const char* bad : {"", "-", "a-", "-a", "A", "a.b", "a_b", "ä", "a b"}) {
    EXPECT_NE(FindDns1123LabelProblem(bad), "") << bad;
  }
  EXPECT_EQ(FindDns1123LabelProblem(std::string(63, 'a')), "");
  EXPECT_EQ(FindDns1123LabelProblem(std::string(64, 'a')), "must be no more than 63 characters");
  EXPECT_NE(FindDns1123LabelProblem(std::string_view("a\0b", 3)), "");
}

TEST(Names, TakeDnsSubdomainsAndNothingElse) {
  for (const char* good : {"a", "a.b", "1.2.3", "my-name.example.com"}) {
    EXPECT_EQ(FindDns1123SubdomainProblem(good), "") << good;
  }
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a-.b", "a.-b", "A.b"}) {
    EXPECT_NE(FindDns1123SubdomainProblem(bad), "") << bad;
  }
  EXPECT_EQ(FindDns1123SubdomainProblem(std::string(253, 'a')), "");
  EXPECT_EQ(FindDns1123SubdomainProblem(std::string(254, 'a')), "must be no more than 253 characters");
}

TEST(Names, OfServicesBeginWithALetter) {
  EXPECT_EQ(FindDns1035LabelProblem("a1-b"), "");
  EXPECT_NE(FindDns1035LabelProblem("1a"), "");
  EXPECT_NE(FindDns1035LabelProblem("a-"), "");
  EXPECT_NE(FindDns1035LabelProblem(""), "");
}

TEST(Names, TakeQualifiedNamesWithAndWithoutAPrefix) {
  for (const char* good : {"a", "MyName", "my.name", "1_2", "example.com/MyName", "a/b"}) {
    EXPECT_EQ(FindQualifiedNameProblem(good), "") << good;
  }
  EXPECT_EQ(FindQualifiedNameProblem(std::string(253, 'a') + "/" + std::string(63, 'b')), "");
}

TEST(Names, SayWhichPartOfAQualifiedNameIsWrong) {
  EXPECT_THAT(FindQualifiedNameProblem(""), HasSubstr("have a name"));
  EXPECT_THAT(FindQualifiedNameProblem("a/"), HasSubstr("have a name"));
  EXPECT_THAT(FindQualifiedNameProblem("/a"), HasSubstr("before its '/'"));
  EXPECT_THAT(FindQualifiedNameProblem("Exa.com/a"), HasSubstr("before its '/'"));
  EXPECT_THAT(FindQualifiedNameProblem("a/b/c"), HasSubstr("one '/'"));
  EXPECT_THAT(FindQualifiedNameProblem("-a"), HasSubstr("begins and ends"));
  EXPECT_THAT(FindQualifiedNameProblem("a b"), HasSubstr("letters, digits"));
  EXPECT_THAT(FindQualifiedNameProblem(std::string(64, 'a')), HasSubstr("63"));
  EXPECT_THAT(FindQualifiedNameProblem(std::string(254, 'a') + "/b"), HasSubstr("253"));
}

TEST(Names, TakeLabelValuesThatAreEmpty) {
  EXPECT_EQ(FindLabelValueProblem(""), "");
  EXPECT_EQ(FindLabelValueProblem("A.b_c-1"), "");
  EXPECT_EQ(FindLabelValueProblem(std::string(63, '1')), "");
  EXPECT_NE(FindLabelValueProblem(std::string(64, '1')), "");
  for (const char* bad : {"-", "a-", ".a", "a/b", "a b"}) EXPECT_NE(FindLabelValueProblem(bad), "") << bad;
}

}  // namespace
}  // namespace trainyard::kube
