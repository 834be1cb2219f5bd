#include "base/rfc3339.h"

#include <random>

#include "gtest/gtest.h"

namespace trainyard {
namespace {

TEST(Rfc3339, PrintsWholeSecondsAndMicroseconds) {
  const absl::Time time = absl::FromUnixMicros(1'714'557'600'123'456);
  EXPECT_EQ(PrintTime(time), "2024-05-01T10:00:00Z");
  EXPECT_EQ(PrintMicroTime(time), "2024-05-01T10:00:00.123456Z");
  EXPECT_EQ(PrintMicroTime(absl::FromUnixMicros(-1)), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(PrintTime(absl::FromUnixMicros(-1)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(PrintMicroTime(absl::UnixEpoch()), "1970-01-01T00:00:00.000000Z");
}

TEST(Rfc3339, ReadsAnyOffsetAndPrecision) {
  const absl::Time time = absl::FromUnixSeconds(1'714'557'600);
  EXPECT_EQ(*ParseTime("2024-05-01T10:00:00Z"), time);
  EXPECT_EQ(*ParseTime("2024-05-01T12:00:00+02:00"), time);
  EXPECT_EQ(*ParseTime("2024-05-01T04:30:00-05:30"), time);
  EXPECT_EQ(*ParseTime("2024-05-01T10:00:00.5Z"), time + absl::Milliseconds(500));
  EXPECT_EQ(*ParseTime("2024-05-01T10:00:00.123456Z"), time + absl::Microseconds(123456));
  EXPECT_EQ(*ParseTime("2024-05-01T10:00:00.000000000999Z"), time);
  EXPECT_TRUE(ParseTime("2024-02-29T00:00:00Z").ok());
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2024-05-01", "2024-05-01T10:00:00", "2024-05-01 10:00:00Z", "2024-05-01t10:00:00z",
        "2024-13-01T10:00:00Z", "2023-02-29T10:00:00Z", "2024-00-01T10:00:00Z", "2024-01-00T10:00:00Z",
        "2024-05-01T24:00:00Z", "2024-05-01T10:60:00Z", "2024-05-01T10:00:60Z", "2024-05-01T10:00:00.Z",
        "2024-05-01T10:00:00+0200", "2024-05-01T10:00:00+02", "2024-05-01T10:00:00Z ",
        "24-05-01T10:00:00Z"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTime(text).status())) << text;
  }
}

TEST(Rfc3339, ReadsBackWhatItPrints) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 10000; ++i) {
    const absl::Time time = absl::FromUnixMicros(static_cast<std::int64_t>(random() % 8'000'000'000'000'000));
    ASSERT_EQ(*ParseTime(PrintMicroTime(time)), time);
    ASSERT_EQ(*ParseTime(PrintTime(time)), absl::FromUnixSeconds(absl::ToUnixSeconds(time)));
  }
}

TEST(PrintAge, HasTwoFiguresAndOneWhereTheSecondSaysLittle) {
  const auto day = absl::Hours(24);
  const std::pair<absl::Duration, const char*> kCases[] = {
      {absl::Seconds(-5), "<invalid>"},
      {absl::Milliseconds(-1900), "0s"},
      {absl::ZeroDuration(), "0s"},
      {absl::Milliseconds(5900), "5s"},
      {absl::Seconds(119), "119s"},
      {absl::Seconds(120), "2m"},
      {absl::Seconds(123), "2m3s"},
      {absl::Seconds(599), "9m59s"},
      {absl::Minutes(10), "10m"},
      {absl::Seconds(645), "10m"},
      {absl::Minutes(179), "179m"},
      {absl::Hours(3), "3h"},
      {absl::Minutes(200), "3h20m"},
      {absl::Hours(8) + absl::Minutes(30), "8h"},
      {absl::Hours(47), "47h"},
      {absl::Hours(48), "2d"},
      {absl::Hours(52), "2d4h"},
      {day * 8, "8d"},
      {day * 8 + absl::Hours(5), "8d"},
      {day * 729, "729d"},
      {day * 730, "2y"},
      {day * 761, "2y31d"},
      {day * 365 * 8 + day, "8y"},
  };
  for (const auto& [age, printed] : kCases) EXPECT_EQ(PrintAge(age), printed) << age;
}

}  // namespace
}  // namespace trainyard
