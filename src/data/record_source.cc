#include "data/record_source.h"

#include "base/check.h"

namespace trainyard::data {

std::size_t BytesOf(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kFloat64:
      return 8;
  }
  TY_CHECK(false, "an element has a type");
}

std::string_view NameOf(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "u8";
    case ElementType::kInt8:
      return "i8";
    case ElementType::kInt16:
      return "i16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kFloat32:
      return "f32";
    case ElementType::kFloat64:
      return "f64";
  }
  TY_CHECK(false, "an element has a type");
}

std::uint64_t ItemShape::Elements() const {
  std::uint64_t elements = 1;
  for (const std::uint32_t dim : dims) elements *= dim;
  return elements;
}

}  // namespace trainyard::data
