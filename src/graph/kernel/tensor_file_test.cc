#include "graph/kernel/tensor_file.h"

#include <string>

#include "base/crc32c.h"
#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

// With the checksum that it should have.
std::string Sealed(std::string bytes) {
  const std::uint32_t checksum = Crc32c(std::string_view(bytes).substr(0, bytes.size() - 4));
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

TEST(TensorFile, KeepsEveryTypeAndShape) {
  Tensor truth(DataType::kBool, {3});
  truth.data<bool>()[1] = true;
  for (const Tensor& tensor :
       {F32({2, 3}, {1, -2, 3.5F, 0, 1e30F, 6}), I64({1, 2}, {-5, std::int64_t{1} << 60}), truth,
        F32({}, {7}), F32({0, 4}, {})}) {
    const std::string bytes = EncodeTensor(tensor);
    EXPECT_EQ(bytes.size(), EncodedBytes(tensor.type(), tensor.dims()));
    const absl::StatusOr<Tensor> decoded = DecodeTensor(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->type(), tensor.type());
    EXPECT_EQ(decoded->dims(), tensor.dims());
    EXPECT_EQ(EncodeTensor(*decoded), bytes);
  }
}

TEST(TensorFile, IsThisLayout) {
  const std::string bytes = EncodeTensor(F32({1}, {1}));
  EXPECT_EQ(bytes.substr(0, 28), std::string("TYTENSOR\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 28));
  EXPECT_EQ(bytes.substr(28, 4), std::string("\0\0\x80\x3f", 4));
  EXPECT_EQ(bytes.size(), 36u);
}

TEST(TensorFile, IsNotReadWhenAnyBitHasChanged) {
  const std::string bytes = EncodeTensor(F32({2, 2}, {1, 2, 3, 4}));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(DecodeTensor(changed).ok()) << "bit " << i;
  }
}

TEST(TensorFile, IsNotReadWhenItIsCutOrHasMore) {
  const std::string bytes = EncodeTensor(F32({2, 2}, {1, 2, 3, 4}));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeTensor(bytes.substr(0, size)).ok());
  EXPECT_FALSE(DecodeTensor(bytes + 'x').ok());
}

TEST(TensorFile, RefusesHeadsThatLie) {
  const std::string bytes = EncodeTensor(F32({2, 2}, {1, 2, 3, 4}));
  const auto with = [&](std::size_t at, char byte) {
    std::string changed = bytes;
    changed[at] = byte;
    return DecodeTensor(Sealed(changed)).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(with(8, 2))) << "another version";
  EXPECT_TRUE(absl::IsInvalidArgument(with(12, 9))) << "no type";
  EXPECT_TRUE(absl::IsInvalidArgument(with(16, 9))) << "too many dims";
  EXPECT_TRUE(absl::IsInvalidArgument(with(19, '\xff'))) << "far too many dims";
  EXPECT_TRUE(absl::IsInvalidArgument(with(27, '\x7f'))) << "a dim beyond all bounds";
  EXPECT_TRUE(absl::IsDataLoss(with(20, 3))) << "more elements than there are";
  EXPECT_TRUE(absl::IsDataLoss(with(20, 0))) << "fewer";
}

TEST(TensorFile, RefusesBoolsThatAreNeitherTrueNorFalse) {
  std::string bytes = EncodeTensor(Bool(true));
  bytes[28] = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeTensor(Sealed(bytes)).status()));
}

}  // namespace
}  // namespace trainyard::graph
