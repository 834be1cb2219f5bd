#include "apiserver/schema/formats.h"

#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

TEST(MatchesFormat, TellsGoodFromBad) {
  struct Case {
    std::string_view format;
    std::string_view good;
    std::string_view bad;
  };
  const Case cases[] = {
      {"date-time", "2024-02-29T23:59:59.123Z", "2023-02-29T00:00:00Z"},
      {"date-time", "2024-01-01T00:00:00+02:00", "2024-01-01 00:00:00Z"},
      {"datetime", "2024-01-01T00:00:00Z", "2024-13-01T00:00:00Z"},
      {"date", "2024-01-31", "2024-01-32"},
      {"byte", "YWI=", "YWI"},
      {"byte", "", "Y!I="},
      {"ipv4", "10.0.0.1", "10.0.0.256"},
      {"ipv6", "::1", "10.0.0.1"},
      {"cidr", "10.0.0.0/8", "10.0.0.0/33"},
      {"uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400"},
      {"uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"},
      {"hostname", "a-b.example", "-a.example"},
      {"uri", "https://example.com/a", "no uri"},
      {"email", "a@example.com", "example.com"},
      {"duration", "1h30m", "1x"},
      {"duration", "22 ns", "h"},
      {"mac", "01:23:45:67:89:ab", "01:23:45:67:89"},
  };
  for (const Case& each : cases) {
    EXPECT_TRUE(MatchesFormat(each.format, each.good)) << each.format << " " << each.good;
    EXPECT_FALSE(MatchesFormat(each.format, each.bad)) << each.format << " " << each.bad;
  }
}

TEST(MatchesFormat, TakesEverythingForAFormatThatNobodyKnows) {
  EXPECT_TRUE(MatchesFormat("int-or-string", "x"));
}

}  // namespace
}  // namespace trainyard::apiserver
