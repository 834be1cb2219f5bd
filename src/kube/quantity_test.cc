#include "kube/quantity.h"

#include <random>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

Quantity Q(std::string_view text) {
  const auto quantity = Quantity::Parse(text);
  EXPECT_TRUE(quantity.ok()) << quantity.status();
  return quantity.value_or(Quantity());
}

TEST(Quantity, PrintsTheCanonicalForm) {
  const std::pair<const char*, const char*> kCases[] = {
      {"0", "0"},
      {"0Ki", "0"},
      {"-0", "0"},
      {"0.0m", "0"},
      {"1", "1"},
      {"+1", "1"},
      {"007", "7"},
      {"1.5", "1500m"},
      {".5", "500m"},
      {"5.", "5"},
      {"1.G", "1G"},
      {"100m", "100m"},
      {"1000m", "1"},
      {"2500", "2500"},
      {"3000", "3k"},
      {"1500000", "1500k"},
      {"1000k", "1M"},
      {"1000G", "1T"},
      {"12M", "12M"},
      {"1E", "1E"},
      {"5000E", "5000E"},
      {"1n", "1n"},
      {"1000n", "1u"},
      {"1500u", "1500u"},
      {"0.1n", "1n"},
      {"0.0000000001", "1n"},
      {"-0.1n", "-1n"},
      {"1.0000000001", "1000000001n"},
      {"-1.5", "-1500m"},
      {"1Ki", "1Ki"},
      {"1024Ki", "1Mi"},
      {"1.5Gi", "1536Mi"},
      {"0.5Ki", "512"},
      {"0.0001Ki", "102400u"},
      {"1.5Ki", "1536"},
      {"1Ei", "1Ei"},
      {"-2048Ki", "-2Mi"},
      {"9Ei", "9223372036854775807"},
      {"-9Ei", "-9223372036854775807"},
      {"99999999999999999999999999999999999999999999999Ki", "9223372036854775807"},
      {"0.3Gi", "322122547200m"},
      {"12e6", "12e6"},
      {"12E6", "12e6"},
      {"1e3", "1e3"},
      {"100e3", "100e3"},
      {"1e2", "100"},
      {"1.5e1", "15"},
      {"1e-3", "1e-3"},
      {"5e-1", "500e-3"},
      {"1e-30", "1e-9"},
      {"1e+3", "1e3"},
      {"1e21", "1e21"},
      {"0.000000000000000000001e21", "1"},
      {"0e999999", "0"},
  };
  for (const auto& [text, printed] : kCases) EXPECT_EQ(Q(text).Print(), printed) << text;
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",    " ",     "m",  "Ki",   ".",   "-",     "+",    "1 ",   " 1",  "1i",    "1K",
        "1mi", "1.1.1", "1e", "1ee3", "--1", "1e1.5", "0x10", "1Gib", "nan", "1e+-3", "1e99999999"}) {
    const auto quantity = Quantity::Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(quantity.status())) << text << ": " << quantity.status();
  }
  EXPECT_THAT(Message(Quantity::Parse("5GB").status()), testing::HasSubstr("\"5GB\" is no quantity"));
}

TEST(Quantity, SaysWhatIsTooLarge) {
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Parse("1e30").status()));
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Parse("1e999999").status()));
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Parse("1000000000000E").status()));
  EXPECT_TRUE(Quantity::Parse("100000000000E").ok());
}

TEST(Quantity, IsEqualHoweverItIsWritten) {
  EXPECT_EQ(Q("1"), Q("1000m"));
  EXPECT_EQ(Q("1Ki"), Q("1024"));
  EXPECT_EQ(Q("1k"), Q("1e3"));
  EXPECT_LT(Q("1k"), Q("1Ki"));
  EXPECT_GT(Q("0.1"), Q("99m"));
  EXPECT_LT(Q("-1"), Q("0"));
}

TEST(Quantity, AddsWithoutLoss) {
  EXPECT_EQ(Quantity::Add(Q("0.1"), Q("0.2"))->Print(), "300m");
  EXPECT_EQ(Quantity::Add(Q("1Gi"), Q("512Mi"))->Print(), "1536Mi");
  EXPECT_EQ(Quantity::Add(Quantity(), Q("1Gi"))->Print(), "1Gi") << "nothing has no format of its own";
  EXPECT_EQ(Quantity::Subtract(Q("1"), Q("1500m"))->Print(), "-500m");
  EXPECT_EQ(Quantity::Subtract(Q("1Gi"), Q("1Gi"))->Sign(), 0);
  EXPECT_EQ(Quantity::Multiply(Q("1500m"), 3)->Print(), "4500m");
}

TEST(Quantity, SaysWhenASumIsTooLarge) {
  const Quantity most = Q("1.7e29");
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Add(most, most).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Subtract(Q("-1.7e29"), most).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Quantity::Multiply(most, 2).status()));
}

TEST(Quantity, RoundsAwayFromZeroToWholeUnits) {
  EXPECT_EQ(*Q("1500m").Units(), 2);
  EXPECT_EQ(*Q("-1500m").Units(), -2);
  EXPECT_EQ(*Q("1").Units(), 1);
  EXPECT_EQ(*Q("1n").Milli(), 1);
  EXPECT_EQ(*Q("2").Milli(), 2000);
  EXPECT_TRUE(absl::IsOutOfRange(Q("10E").Units().status()));
  EXPECT_EQ(Quantity::FromUnits(3), Q("3"));
  EXPECT_EQ(Quantity::FromMilli(3500), Q("3.5"));
  EXPECT_EQ(Quantity::FromUnits(2048, Quantity::Format::kBinary).Print(), "2Ki");
}

TEST(Quantity, PrintsWhatParsesToTheSameAmount) {
  std::mt19937_64 random(7);
  const char* suffixes[] = {"", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "e-2"};
  for (int i = 0; i < 20000; ++i) {
    const std::string text = StrCat(random() % 2 == 0 ? "-" : "", random() % 1'000'000, ".",
                                    random() % 100'000, suffixes[random() % std::size(suffixes)]);
    const Quantity quantity = Q(text);
    const Quantity again = Q(quantity.Print());
    ASSERT_EQ(again, quantity) << text;
    ASSERT_EQ(again.Print(), quantity.Print()) << text;
    ASSERT_EQ(quantity.Print().find('.'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace trainyard::kube
