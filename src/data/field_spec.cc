#include "data/field_spec.h"

#include <charconv>
#include <cmath>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

constexpr std::string_view kUsage = "a field is raw, or f32 or i64 as in f32, f32x4, i64 or f32/255";

absl::Status Wrong(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("'", Escaped(field), "' is no field: ", why));
}

// Cuts what is behind the separator off the text.
std::optional<std::string_view> CutBehind(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

std::optional<double> ParseDivisor(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number == 0 || !std::isfinite(number) || !std::isfinite(1 / number)) return std::nullopt;
  return number;
}

absl::StatusOr<FieldSpec> ParseFieldSpec(std::string_view text) {
  FieldSpec field;
  std::string_view type = text;
  const auto divisor = CutBehind(type, '/');
  const auto elements = CutBehind(type, 'x');
  if (type == NameOf(FieldType::kFloat32)) {
    field.type = FieldType::kFloat32;
  } else if (type == NameOf(FieldType::kInt64)) {
    field.type = FieldType::kInt64;
  } else if (text != NameOf(FieldType::kRaw)) {
    return Wrong(text, kUsage);
  }
  if (elements) {
    field.elements = ParseNumber<std::uint64_t>(*elements);
    if (field.elements.value_or(0) == 0) return Wrong(text, "behind x stands how many elements it has");
  }
  if (divisor) {
    const auto number = ParseDivisor(*divisor);
    if (!number) return Wrong(text, "behind / stands a number, not 0, that its elements are divided by");
    field.scale = 1 / *number;
  }
  return field;
}

absl::Status TooFew(const SourceElements& source, std::uint64_t left) {
  return absl::InvalidArgumentError(StrCat("the records of ", source.name, " have ", *source.elements,
                                           " elements, and no field takes the last ", left));
}

// The fields of one source, from `next` on.
absl::StatusOr<std::vector<FieldSpec>> Take(const SourceElements& source, std::span<const FieldSpec> fields,
                                            std::size_t& next) {
  if (next == fields.size()) {
    return absl::InvalidArgumentError(StrCat("no field is left for ", source.name));
  }
  if (fields[next].type == FieldType::kRaw) return std::vector<FieldSpec>{fields[next++]};
  if (!source.elements) {
    return absl::InvalidArgumentError(
        StrCat("the records of ", source.name, " are bytes, not numbers: they can only be raw"));
  }
  std::vector<FieldSpec> taken;
  for (std::uint64_t left = *source.elements; left > 0; left -= *taken.back().elements) {
    if (next == fields.size() || fields[next].type == FieldType::kRaw) return TooFew(source, left);
    taken.push_back(fields[next++]);
    if (!taken.back().elements) taken.back().elements = left;
    if (*taken.back().elements > left) {
      return absl::InvalidArgumentError(StrCat("the records of ", source.name, " have ", *source.elements,
                                               " elements, and a field wants ", *taken.back().elements,
                                               " of the last ", left));
    }
  }
  return taken;
}

}  // namespace

std::string_view NameOf(FieldType type) {
  switch (type) {
    case FieldType::kRaw:
      return "raw";
    case FieldType::kFloat32:
      return "f32";
    case FieldType::kInt64:
      break;
  }
  return "i64";
}

absl::StatusOr<std::vector<FieldSpec>> ParseFieldSpecs(std::string_view text) {
  std::vector<FieldSpec> fields;
  for (const std::string_view field : Split(text, ',')) {
    TY_ASSIGN_OR_RETURN(fields.emplace_back(), ParseFieldSpec(field));
  }
  return fields;
}

absl::StatusOr<std::vector<std::vector<FieldSpec>>> DealFields(std::span<const FieldSpec> fields,
                                                               std::span<const SourceElements> sources) {
  std::vector<std::vector<FieldSpec>> dealt;
  std::size_t next = 0;
  for (const SourceElements& source : sources) {
    TY_ASSIGN_OR_RETURN(dealt.emplace_back(), Take(source, fields, next));
  }
  if (next == fields.size()) return dealt;
  return absl::InvalidArgumentError(
      StrCat("there are ", fields.size(), " fields, and the records need only ", next, " of them"));
}

}  // namespace trainyard::data
