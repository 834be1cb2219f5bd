// What the elements of records become when they are converted: "f32/255,i64".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trainyard::data {

// raw: the record as it is. f32, i64: each element as one number of that type, little-endian, as trainers
// read them from RecordIO.
enum class FieldType : std::uint8_t { kRaw, kFloat32, kInt64 };
std::string_view NameOf(FieldType type);

struct FieldSpec {
  FieldType type = FieldType::kRaw;
  std::optional<std::uint64_t> elements;  // none: all that are left of its source
  double scale = 1;                       // what each number is multiplied by
  bool operator==(const FieldSpec&) const = default;
};

// By commas, each "raw" or TYPE[xELEMENTS][/DIVISOR]: "raw", "f32", "f32x4,i64", "f32/255". InvalidArgument:
// it is something else.
absl::StatusOr<std::vector<FieldSpec>> ParseFieldSpecs(std::string_view text);

// How many elements a source's records have, if that is known.
struct SourceElements {
  std::string name;
  std::optional<std::uint64_t> elements;
};

// Deals the fields out: each source takes as many as its elements need, and `elements` of each is then known
// but of a raw one. InvalidArgument: they do not come out even.
absl::StatusOr<std::vector<std::vector<FieldSpec>>> DealFields(std::span<const FieldSpec> fields,
                                                               std::span<const SourceElements> sources);

}  // namespace trainyard::data
