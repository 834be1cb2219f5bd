#include "data/idx/header.h"

#include <optional>

#include "base/text.h"
#include "data/damage.h"
#include "data/endian.h"

namespace trainyard::data {
namespace {

constexpr std::uint64_t kMaxItemBytes = std::uint64_t{1} << 31U;  // so that no file's size overflows

std::optional<ElementType> TypeOf(std::uint32_t code) {
  switch (code) {
    case 0x08:
      return ElementType::kUint8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0b:
      return ElementType::kInt16;
    case 0x0c:
      return ElementType::kInt32;
    case 0x0d:
      return ElementType::kFloat32;
    case 0x0e:
      return ElementType::kFloat64;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool LooksLikeIdx(std::string_view bytes) {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && TypeOf(ByteAt(bytes.data(), 2)) &&
         bytes[3] != 0;
}

absl::StatusOr<IdxHeader> ParseIdxHeader(std::string_view start) {
  if (!LooksLikeIdx(start)) {
    return DamageAt(0, "this is no IDX file: it does not begin with 0, 0, a type and a number of dimensions");
  }
  IdxHeader header;
  const std::uint32_t dims = ByteAt(start.data(), 3);
  header.bytes = 4 + 4 * std::size_t{dims};
  if (start.size() < header.bytes) {
    return DamageAt(start.size(), StrCat("the file ends within its header of ", header.bytes, " bytes"));
  }
  header.items = LoadBig32(start.data() + 4);
  header.shape.type = *TypeOf(ByteAt(start.data(), 2));
  header.item_bytes = BytesOf(header.shape.type);
  for (std::size_t at = 8; at < header.bytes; at += 4) {
    const std::uint32_t dim = LoadBig32(start.data() + at);
    if (dim == 0 || dim > kMaxItemBytes / header.item_bytes) {
      return DamageAt(at, StrCat("a dimension of ", dim, " makes items that are empty or larger than 2 GiB"));
    }
    header.item_bytes *= dim;
    header.shape.dims.push_back(dim);
  }
  return header;
}

}  // namespace trainyard::data
