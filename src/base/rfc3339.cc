#include "base/rfc3339.h"

#include <optional>

#include "absl/time/civil_time.h"
#include "base/text.h"

namespace trainyard {
namespace {

// Reads a text from its front; false once anything was not as asked for.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  // A number of exactly `digits` digits, at most `most`.
  int Number(std::size_t digits, int most) {
    int number = 0;
    for (std::size_t i = 0; i < digits; ++i) number = number * 10 + Digit();
    if (number > most) ok_ = false;
    return number;
  }
  void Expect(char c) {
    if (!Take(c)) ok_ = false;
  }
  bool Take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Digits behind a point, at least one. What is below a nanosecond is cut off.
  absl::Duration Fraction() {
    std::int64_t nanos = 0;
    std::int64_t unit = 100'000'000;
    do {
      nanos += Digit() * unit;
      unit /= 10;
    } while (!text_.empty() && IsDigit(text_.front()));
    return absl::Nanoseconds(nanos);
  }
  bool Done() const { return ok_ && text_.empty(); }

 private:
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  int Digit() {
    if (text_.empty() || !IsDigit(text_.front())) {
      ok_ = false;
      return 0;
    }
    const int digit = text_.front() - '0';
    text_.remove_prefix(1);
    return digit;
  }

  std::string_view text_;
  bool ok_ = true;
};

std::optional<absl::Time> Read(std::string_view text) {
  TimeReader reader(text);
  const int year = reader.Number(4, 9999);
  reader.Expect('-');
  const int month = reader.Number(2, 12);
  reader.Expect('-');
  const int day = reader.Number(2, 31);
  reader.Expect('T');
  const int hour = reader.Number(2, 23);
  reader.Expect(':');
  const int minute = reader.Number(2, 59);
  reader.Expect(':');
  const int second = reader.Number(2, 59);
  const absl::Duration fraction = reader.Take('.') ? reader.Fraction() : absl::ZeroDuration();
  absl::Duration offset;
  if (!reader.Take('Z')) {
    const bool west = reader.Take('-');
    if (!west) reader.Expect('+');
    offset += absl::Hours(reader.Number(2, 23));
    reader.Expect(':');
    offset += absl::Minutes(reader.Number(2, 59));
    if (west) offset = -offset;
  }
  if (!reader.Done()) return std::nullopt;
  const absl::CivilSecond civil(year, month, day, hour, minute, second);
  // A day that the month does not have has become one of the next.
  if (civil.month() != month || civil.day() != day) return std::nullopt;
  return absl::FromCivil(civil, absl::UTCTimeZone()) + fraction - offset;
}

void AppendPadded(std::string& out, std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  if (text.size() < digits) out.append(digits - text.size(), '0');
  out += text;
}

std::string PrintSeconds(absl::Time time) {
  const absl::CivilSecond civil = absl::ToCivilSecond(time, absl::UTCTimeZone());
  std::string text;
  AppendPadded(text, civil.year(), 4);
  const std::pair<char, int> parts[] = {{'-', civil.month()},
                                        {'-', civil.day()},
                                        {'T', civil.hour()},
                                        {':', civil.minute()},
                                        {':', civil.second()}};
  for (const auto& [separator, number] : parts) {
    text.push_back(separator);
    AppendPadded(text, number, 2);
  }
  return text;
}

// "3h12m", or "3h" if the second is zero.
std::string TwoFigures(std::int64_t first, char unit, std::int64_t second, char small_unit) {
  return second == 0 ? StrCat(first, unit) : StrCat(first, unit, second, small_unit);
}

}  // namespace

std::string PrintTime(absl::Time time) { return PrintSeconds(time) + "Z"; }

std::string PrintMicroTime(absl::Time time) {
  const absl::Duration since = time - absl::FromUnixSeconds(absl::ToUnixSeconds(time));
  std::string text = PrintSeconds(time) + ".";
  AppendPadded(text, absl::ToInt64Microseconds(since), 6);
  return text + "Z";
}

absl::StatusOr<absl::Time> ParseTime(std::string_view text) {
  if (const auto time = Read(text)) return *time;
  return absl::InvalidArgumentError(
      StrCat("\"", Escaped(text), "\" is no time: write it as 2024-05-01T10:00:00Z"));
}

std::string PrintAge(absl::Duration age) {
  const std::int64_t seconds = absl::ToInt64Seconds(age);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return StrCat(seconds, "s");
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return TwoFigures(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return StrCat(minutes, "m");
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return TwoFigures(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return StrCat(hours, "h");
  const std::int64_t days = hours / 24;
  if (days < 8) return TwoFigures(days, 'd', hours % 24, 'h');
  if (days < std::int64_t{2} * 365) return StrCat(days, "d");
  const std::int64_t years = days / 365;
  if (years < 8) return TwoFigures(years, 'y', days % 365, 'd');
  return StrCat(years, "y");
}

}  // namespace trainyard
