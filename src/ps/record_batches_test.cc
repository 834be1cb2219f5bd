#include "ps/record_batches.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/record_testing.h"
#include "rapidcheck/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::ps {
namespace {

using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Setup {
  int records = 10;
  std::int64_t batch_size = 4;
  std::uint64_t shuffle_seed = 0;
};

// Records that each hold their number.
class Numbers {
 public:
  explicit Numbers(const Setup& setup) {
    std::string text;
    for (int i = 0; i < setup.records; ++i) StrAppend(text, i, "\n");
    data::WriteBytes(folder_ / "a.csv", text);
    auto opened = RecordBatches::Open(ReadOp({.sources = {folder_ / "a.csv"},
                                              .batch_size = setup.batch_size,
                                              .fields = {{.name = "x", .item = {1}}},
                                              .shuffle_seed = setup.shuffle_seed}));
    TY_CHECK(opened.ok(), opened.status().ToString());
    batches = *std::move(opened);
  }

  absl::StatusOr<std::vector<float>> Next() {
    if (absl::Status next = batches->Next({&field_, 1}); !next.ok()) return next;
    return std::vector<float>(tensor.span<float>().begin(), tensor.span<float>().end());
  }
  // Batches until the share or the pass has ended.
  std::vector<std::vector<float>> Rest() {
    std::vector<std::vector<float>> rest;
    while (true) {
      auto next = Next();
      if (!next.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(next.status())) << next.status();
        return rest;
      }
      rest.push_back(*std::move(next));
    }
  }

  Tensor tensor;
  std::unique_ptr<RecordBatches> batches;

 private:
  const testing_support::TempFolder folder_;
  Tensor* field_ = &tensor;
};

using Batch = std::vector<float>;

TEST(RecordBatches, GivesAShareInOrder) {
  Numbers numbers({});
  EXPECT_EQ(numbers.batches->count(), 10);
  numbers.batches->Assign({.pass = 3, .places = {{0, 3}, {5, 8}}});
  EXPECT_EQ(numbers.batches->pass(), 3);
  EXPECT_EQ(numbers.Next().value(), (Batch{0, 1, 2, 5}));
  EXPECT_EQ(numbers.batches->last(), (Share{.pass = 3, .places = {{0, 3}, {5, 6}}}));
  EXPECT_EQ(numbers.tensor.dims(), (graph::Dims{4, 1}));
  EXPECT_EQ(numbers.Next().value(), (Batch{6, 7}));
  EXPECT_EQ(numbers.tensor.dims(), (graph::Dims{2, 1}));
  EXPECT_EQ(numbers.batches->last(), (Share{.pass = 3, .places = {{6, 8}}}));
  EXPECT_TRUE(absl::IsOutOfRange(numbers.Next().status()));
  EXPECT_TRUE(absl::IsOutOfRange(numbers.Next().status()));
  EXPECT_EQ(numbers.batches->pass(), 3);
  EXPECT_EQ(numbers.batches->last(), (Share{.pass = 3, .places = {{6, 8}}}));
}

TEST(RecordBatches, HasNothingBeforeItIsAssigned) {
  Numbers numbers({});
  EXPECT_TRUE(absl::IsOutOfRange(numbers.Next().status()));
  numbers.batches->Assign({});
  EXPECT_TRUE(absl::IsOutOfRange(numbers.Next().status()));
}

TEST(RecordBatches, ForgetsWhatWasReadAheadWhenItIsAssigned) {
  Numbers numbers({.records = 100});
  for (int i = 0; i < 50; ++i) {
    const std::int64_t first = i % 7 * 8;
    numbers.batches->Assign({.pass = i, .places = {{first, 100}}});
    if (i % 3 == 0) continue;
    ASSERT_EQ(numbers.Next().value().front(), static_cast<float>(first));
    ASSERT_EQ(numbers.batches->last().pass, i);
  }
}

TEST(RecordBatches, AllGoesOnFromPassToPass) {
  Numbers numbers({.records = 6});
  numbers.batches->AssignAll();
  for (std::int64_t pass = 0; pass < 4; ++pass) {
    EXPECT_EQ(numbers.batches->pass(), pass);
    EXPECT_THAT(numbers.Rest(), ElementsAre(Batch{0, 1, 2, 3}, Batch{4, 5}));
    EXPECT_EQ(numbers.batches->last().pass, pass);
  }
  EXPECT_EQ(numbers.batches->pass(), 4);
}

TEST(RecordBatches, ShufflesAnewInEachPass) {
  Numbers numbers({.records = 50, .batch_size = 8, .shuffle_seed = 5});
  numbers.batches->AssignAll();
  std::set<Batch> orders;
  for (std::int64_t pass = 0; pass < 5; ++pass) {
    Batch order;
    for (const Batch& batch : numbers.Rest()) order.insert(order.end(), batch.begin(), batch.end());
    ASSERT_EQ(order.size(), 50);
    for (std::size_t place = 0; place < 50; ++place) {
      EXPECT_EQ(order[place], RecordAt(static_cast<std::int64_t>(place), 50, pass, 5));
    }
    EXPECT_EQ(std::set<float>(order.begin(), order.end()).size(), 50);
    EXPECT_TRUE(orders.insert(order).second);
  }
}

TEST(RecordBatches, OrderDoesNotDependOnWhoReads) {
  Numbers whole({.records = 40, .batch_size = 40, .shuffle_seed = 9});
  whole.batches->Assign({.pass = 2, .places = {{0, 40}}});
  const Batch all = whole.Next().value();
  Numbers part({.records = 40, .batch_size = 3, .shuffle_seed = 9});
  part.batches->Assign({.pass = 2, .places = {{7, 9}, {30, 31}}});
  EXPECT_EQ(part.Next().value(), (Batch{all[7], all[8], all[30]}));
}

TEST(RecordBatches, RecordsAreInTheirPlaceWithoutASeed) { EXPECT_EQ(RecordAt(7, 10, 3, 0), 7); }

TEST(RecordBatches, RefusesPlacesThatThereAreNot) {
  for (const Ranges& places : {Ranges{{5, 11}}, {{-1, 3}}, {{3, 3}}, {{5, 7}, {2, 4}}, {{0, 3}, {2, 4}}}) {
    Numbers numbers({});
    numbers.batches->Assign({.places = places});
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(absl::IsInvalidArgument(numbers.Next().status())) << Print(places);
    numbers.batches->Assign({.places = {{0, 1}}});
    EXPECT_EQ(numbers.Next().value(), Batch{0});
  }
}

TEST(RecordBatches, TellsAnErrorWhenItsBatchIsAskedForAndStays) {
  const testing_support::TempFolder folder;
  data::WriteBytes(folder / "a.csv", "1\n2\n3\nfour\n5\n");
  const auto batches = RecordBatches::Open(
      ReadOp({.sources = {folder / "a.csv"}, .batch_size = 2, .fields = {{.name = "x", .item = {1}}}}));
  ASSERT_TRUE(batches.ok());
  (*batches)->AssignAll();
  Tensor tensor;
  Tensor* const fields[] = {&tensor};
  ASSERT_TRUE((*batches)->Next(fields).ok());
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = (*batches)->Next(fields);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(Message(status), HasSubstr("line 4"));
  }
  (*batches)->Assign({.places = {{4, 5}}});
  ASSERT_TRUE((*batches)->Next(fields).ok());
  EXPECT_EQ(tensor.data<float>()[0], 5);
}

TEST(RecordBatches, MemoryGoesRound) {
  Numbers numbers({.records = 400});
  numbers.batches->AssignAll();
  std::set<const void*> seen;
  for (int i = 0; i < 300; ++i) {
    if (numbers.Next().ok()) seen.insert(numbers.tensor.raw());
  }
  EXPECT_LE(seen.size(), 5);
}

TEST(RecordBatches, LeavesTensorsThatSomebodyHoldsAlone) {
  Numbers numbers({.records = 400});
  numbers.batches->AssignAll();
  std::vector<std::pair<Tensor, Batch>> held;
  for (int i = 0; i < 60; ++i) {
    const Batch batch = numbers.Next().value();
    if (i % 2 == 0) held.emplace_back(numbers.tensor.Reshaped({4}), batch);
  }
  for (const auto& [tensor, batch] : held) {
    EXPECT_EQ(Batch(tensor.span<float>().begin(), tensor.span<float>().end()), batch);
  }
}

TEST(RecordBatches, EndsWhileItReadsAhead) {
  for (int i = 0; i < 20; ++i) {
    Numbers numbers({.records = 1000, .batch_size = 16});
    numbers.batches->AssignAll();
    EXPECT_EQ(i % 2 == 0 && !numbers.Next().ok(), false);
  }
}

RC_GTEST_PROP(RecordBatchesProperties, EveryRecordOfAShareComesOnce, ()) {
  static Numbers& plain = *new Numbers({.records = 300, .batch_size = 7});
  static Numbers& shuffled = *new Numbers({.records = 300, .batch_size = 7, .shuffle_seed = 3});
  Numbers& numbers = *rc::gen::arbitrary<bool>() ? plain : shuffled;
  Share share{.pass = *rc::gen::inRange(0, 5)};
  std::int64_t at = 0;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    at += *rc::gen::inRange(1, 30);
    const std::int64_t begin = at;
    at += *rc::gen::inRange(1, 30);
    share.places.push_back({begin, at});
  }
  numbers.batches->Assign(share);
  Batch expected;
  for (const Range& range : share.places) {
    for (std::int64_t place = range.begin; place < range.end; ++place) {
      const std::uint64_t seed = &numbers == &plain ? 0 : 3;
      expected.push_back(static_cast<float>(RecordAt(place, 300, share.pass, seed)));
    }
  }
  Batch found;
  Ranges used;
  while (true) {
    const auto next = numbers.Next();
    if (!next.ok()) break;
    found.insert(found.end(), next->begin(), next->end());
    RC_ASSERT(SizeOf(numbers.batches->last().places) == static_cast<std::int64_t>(next->size()));
    used = Join(used, numbers.batches->last().places);
  }
  RC_ASSERT(found == expected);
  RC_ASSERT(used == share.places);
}

}  // namespace
}  // namespace trainyard::ps
