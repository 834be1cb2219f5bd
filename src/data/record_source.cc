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

}  // namespace trainyard::data
