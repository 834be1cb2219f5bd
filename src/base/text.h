// Putting text together and taking it apart. Not absl's: the distribution builds absl with a string_view of
// its own, which std::string_view does not convert to.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"

namespace trainyard {

namespace internal {

inline void AppendPiece(std::string& out, std::string_view text) { out += text; }
inline void AppendPiece(std::string& out, absl::string_view text) { out.append(text.data(), text.size()); }
inline void AppendPiece(std::string& out, const std::string& text) { out += text; }
inline void AppendPiece(std::string& out, const char* text) { out += text; }
inline void AppendPiece(std::string& out, char c) { out += c; }
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
void AppendPiece(std::string& out, T number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace internal

// Texts and whole numbers, one behind the other.
template <typename... Pieces>
void StrAppend(std::string& out, const Pieces&... pieces) {
  (internal::AppendPiece(out, pieces), ...);
}

template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string out;
  StrAppend(out, pieces...);
  return out;
}

// The parts between the separators; an empty text has one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
template <std::same_as<std::string> T>
std::vector<std::string_view> Split(T&& text, char separator) = delete;  // the parts would outlive it

// The text without white space and control characters around it.
std::string_view Trimmed(std::string_view text);

// The number that the whole of the text is.
template <std::integral T>
std::optional<T> ParseNumber(std::string_view text, int base = 10) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Eight lower-case hexadecimal digits.
std::string Hex32(std::uint32_t number);

// Printable: control characters, quotes, backslashes and bytes above 127 that are not UTF-8 as \n, \" or
// \xff.
std::string Escaped(std::string_view text);

// So many bytes of it at most, and "..." if that is not all; no character is cut in two.
std::string Shortened(std::string_view text, std::size_t most);

// Left-aligned columns, `gap` spaces apart; the last one is not padded.
std::string Table(const std::vector<std::vector<std::string>>& rows, std::size_t gap);

// "1.5 MiB", "512 B".
std::string FormatBytes(std::uint64_t bytes);

}  // namespace trainyard
