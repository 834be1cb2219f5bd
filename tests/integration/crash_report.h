// What crash_writer and crash_test agree on.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"

namespace trainyard {

// One acknowledged transaction, as written to the pipe: small enough for the kernel to keep whole.
struct CrashReport {
  std::uint32_t thread = 0;
  std::uint32_t unused = 0;
  std::uint64_t number = 0;
  std::int64_t revision = 0;
};

// Each transaction puts the same value under two keys: half of one would show.
inline std::string CrashKey(std::uint32_t thread, int twin) { return StrCat("writer/", thread, "/", twin); }
inline std::string CrashValue(std::uint32_t thread, std::uint64_t number) {
  return StrCat(number, ":",
                std::string((thread * 131 + number * 29) % 700, static_cast<char>('a' + number % 26)));
}
inline std::uint64_t CrashNumber(std::string_view value) {
  return std::strtoull(std::string(value).c_str(), nullptr, 10);
}

}  // namespace trainyard
