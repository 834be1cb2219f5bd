// Numbers that records consist of, as elements of tensors: f32, or i64.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/whole_number.h"
#include "data/record_source.h"

namespace trainyard::data {

// The number times `scale`. False: no element can be that; an i64 loses its fraction.
inline bool StoreElement(double number, double scale, float& out) {
  out = static_cast<float>(number * scale);
  return true;
}
inline bool StoreElement(double number, double scale, std::int64_t& out) {
  const auto whole = WholeNumber(number * scale);
  out = whole.value_or(0);
  return whole.has_value();
}

// The same of a number in a column of CSV; blanks around it and a plus before it do not count. False: it is
// no finite number, or too large, or for an i64 without a scale it has a fraction ("3.0" has none).
bool ParseElement(std::string_view text, double scale, float& out);
bool ParseElement(std::string_view text, double scale, std::int64_t& out);

// An element of IDX, which is big-endian.
template <typename T>
T LoadBig(const char* bytes) {
  std::array<char, sizeof(T)> reversed;
  std::reverse_copy(bytes, bytes + sizeof(T), reversed.begin());
  return std::bit_cast<T>(reversed);
}

// Calls `visit` with a number of the type: WithElementType(type, [&](auto zero) { decltype(zero)... }).
template <typename Visit>
auto WithElementType(ElementType type, Visit visit) {
  switch (type) {
    case ElementType::kUint8:
      return visit(std::uint8_t{});
    case ElementType::kInt8:
      return visit(std::int8_t{});
    case ElementType::kInt16:
      return visit(std::int16_t{});
    case ElementType::kInt32:
      return visit(std::int32_t{});
    case ElementType::kFloat32:
      return visit(float{});
    case ElementType::kFloat64:
      break;
  }
  return visit(double{});
}

}  // namespace trainyard::data
