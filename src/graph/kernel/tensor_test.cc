#include "graph/kernel/tensor.h"

#include <malloc.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

TEST(Tensor, BeginsAsZeros) {
  const Tensor tensor(DataType::kInt64, {2, 3});
  EXPECT_EQ(tensor.dims(), (Dims{2, 3}));
  EXPECT_EQ(tensor.count(), 6);
  EXPECT_EQ(tensor.bytes(), 48u);
  EXPECT_EQ(ValuesOf<std::int64_t>(tensor), (std::vector<std::int64_t>(6, 0)));
}

TEST(Tensor, LiesWhereVectorInstructionsWantIt) {
  for (const std::int64_t count : {1, 3, 1000}) {
    const Tensor tensor(DataType::kFloat32, {count});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.raw()) % 64, 0u);
  }
}

TEST(Tensor, OfNoDimsIsOneElementAndOfAZeroDimNone) {
  EXPECT_EQ(Tensor(DataType::kFloat32, {}).count(), 1);
  EXPECT_TRUE(Tensor(DataType::kFloat32, {3, 0}).empty());
  EXPECT_TRUE(Tensor().empty());
}

TEST(Tensor, CopiesAreViewsAndClonesAreNot) {
  Tensor tensor = F32({2}, {1, 2});
  const Tensor view = tensor;
  const Tensor clone = tensor.Clone();
  tensor.data<float>()[0] = 5;
  ExpectNear(view, {5, 2}, 0);
  ExpectNear(clone, {1, 2}, 0);
}

TEST(Tensor, UsesItsRoomAgainWhenItShrinksAndGrowsBack) {
  Tensor tensor(DataType::kFloat32, {100});
  const void* const memory = tensor.raw();
  tensor.Resize(DataType::kFloat32, {10, 2});
  EXPECT_EQ(tensor.raw(), memory);
  EXPECT_EQ(tensor.dims(), (Dims{10, 2}));
  tensor.Resize(DataType::kInt64, {50});
  EXPECT_EQ(tensor.raw(), memory);
}

TEST(Tensor, LeavesTheMemoryToItsViewsWhenItTakesAnotherSize) {
  Tensor tensor = F32({4}, {1, 2, 3, 4});
  const Tensor view = tensor.Rows(1, 2);
  tensor.Resize(DataType::kFloat32, {2});
  tensor.data<float>()[0] = 9;
  tensor.data<float>()[1] = 9;
  ExpectNear(view, {2, 3}, 0);
}

TEST(Tensor, RowsAndPartsAreViewsOfTheSameElements) {
  Tensor tensor = F32({3, 2}, {0, 1, 2, 3, 4, 5});
  Tensor rows = tensor.Rows(1, 2);
  EXPECT_EQ(rows.dims(), (Dims{2, 2}));
  ExpectNear(rows, {2, 3, 4, 5}, 0);
  rows.data<float>()[0] = 7;
  ExpectNear(tensor, {0, 1, 7, 3, 4, 5}, 0);
  ExpectNear(tensor.Part(3, {3}), {3, 4, 5}, 0);
  EXPECT_TRUE(tensor.Rows(3, 0).empty());
}

TEST(Tensor, ReshapedIsTheSameMemory) {
  const Tensor tensor = F32({3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor reshaped = tensor.Reshaped({6});
  EXPECT_EQ(reshaped.raw(), tensor.raw());
  EXPECT_EQ(reshaped.dims(), (Dims{6}));
}

TEST(Tensor, KeepsTheOwnerOfForeignMemoryAlive) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  const std::weak_ptr<std::vector<float>> watched = owner;
  {
    const Tensor tensor = Tensor::Over(owner->data(), DataType::kFloat32, {2}, owner);
    owner.reset();
    ASSERT_FALSE(watched.expired());
    ExpectNear(tensor, {1, 2}, 0);
  }
  EXPECT_TRUE(watched.expired());
}

TEST(TensorDeathTest, DiesOfBeingReadAsAnotherType) {
  const Tensor tensor(DataType::kInt64, {1});
  EXPECT_DEATH(tensor.data<float>(), "another type");
  EXPECT_DEATH(Tensor(tensor).Rows(1, 1), "inside its tensor");
}

TEST(SparseRows, KnowsTheDimsOfTheWhole) {
  const SparseRows rows = Sparse(9, {3, 3}, F32({2, 4}, std::vector<float>(8)));
  EXPECT_EQ(rows.WholeDims(), (Dims{9, 4}));
  EXPECT_EQ(TypeOf(rows), (VarType{VarKind::kSparseRows, DataType::kFloat32, {9, 4}}));
  EXPECT_EQ(TypeOf(Tensor(DataType::kBool, {2})), (VarType{VarKind::kDense, DataType::kBool, {2}}));
}

#ifndef TRAINYARD_SANITIZED  // their allocators use nothing again soon
TEST(Tensor, UsesMemoryAgainThatOneOfItsSizeHasFreed) {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as servers set it: what is freed stays with the process
  constexpr std::size_t kTensors = 60;
  const auto make = [] { return Tensor(DataType::kFloat32, {256000}); };
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<char[]>> between;
  for (std::size_t i = 0; i < kTensors; ++i) {
    tensors.push_back(make());
    for (const std::size_t size : {24, 60, 200}) between.push_back(std::make_unique<char[]>(size));
  }
  std::set<const void*> freed;
  for (std::size_t i = 0; i < kTensors; i += 2) {
    freed.insert(tensors[i].raw());
    tensors[i] = Tensor();
  }
  std::size_t again = 0;
  for (std::size_t i = 0; i < kTensors; i += 2) {
    tensors[i] = make();
    again += freed.count(tensors[i].raw());
  }
  EXPECT_GT(again, freed.size() / 2);
}
#endif

}  // namespace
}  // namespace trainyard::graph
