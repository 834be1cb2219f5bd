// Large values over every store.
#include "kv/large_value.h"

#include <thread>

#include "tests/contract/store_contract.h"

namespace trainyard::kv {
namespace {

class LargeValues : public StoreContract {
 protected:
  std::string Value(std::size_t bytes, char fill) {
    std::string value(bytes, fill);
    value.back() = '!';
    return value;
  }
  std::size_t Stored() { return store().Range({.range = All(), .keys_only = true})->kvs.size(); }

  IdSource ids_{1};
};

INSTANTIATE_TEST_SUITE_P(Stores, LargeValues, testing::ValuesIn(AllStoreKinds()), KindName);

TEST_P(LargeValues, ComeBackWholeWhateverTheirSize) {
  for (const std::size_t bytes : {1u, 1u << 20, (1u << 20) + 1, 5u << 20}) {
    const std::string value = Value(bytes, 'a');
    const auto revision = PutLarge(store(), ids_, K("v"), value);
    ASSERT_TRUE(revision.ok()) << revision.status();
    const auto read = GetLarge(store(), K("v"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE((*read)->value == value);
    EXPECT_EQ((*read)->mod_revision, *revision);
  }
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), "").ok());
  EXPECT_EQ((*GetLarge(store(), K("v")))->value, "");
}

TEST_P(LargeValues, LeaveNoChunkOfWhatTheyReplace) {
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), Value(5 << 20, 'a')).ok());
  EXPECT_EQ(Stored(), 6u);
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), Value(2 << 20, 'b')).ok());
  EXPECT_EQ(Stored(), 3u);
  EXPECT_TRUE(*DeleteLarge(store(), K("v")));
  EXPECT_EQ(Stored(), 0u);
  EXPECT_FALSE(*DeleteLarge(store(), K("v")));
  EXPECT_EQ(*GetLarge(store(), K("v")), std::nullopt);
}

TEST_P(LargeValues, AreStoredOnlyOverTheRevisionThatWasExpected) {
  const auto first = PutLarge(store(), ids_, K("v"), Value(2 << 20, 'a'), 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsAborted(PutLarge(store(), ids_, K("v"), Value(3 << 20, 'b'), 0).status()));
  EXPECT_EQ(Stored(), 3u) << "the failed attempt left nothing";
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), Value(3 << 20, 'c'), *first).ok());
  EXPECT_TRUE(absl::IsAborted(PutLarge(store(), ids_, K("v"), Value(3 << 20, 'd'), *first).status()));
  EXPECT_EQ((*GetLarge(store(), K("v")))->value[0], 'c');
}

TEST_P(LargeValues, AreSweptUpAfterAWriterThatDied) {
  ASSERT_TRUE(store().Put(K("v/.chunk/00000000-dead/000000"), "left behind").ok());
  ASSERT_TRUE(store().Put(K("v/.chunk/zzzzzzzz-dead/000000"), "left behind").ok());
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), Value(2 << 20, 'a')).ok());
  EXPECT_EQ(Stored(), 3u);
}

TEST_P(LargeValues, StayWholeWhenManyWriteAtOnce) {
  constexpr int kWriters = 4;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      IdSource ids(static_cast<std::uint64_t>(100 + i));
      for (int round = 0; round < 5; ++round) {
        const auto put = PutLarge(store(), ids, K("v"), Value(1500000, static_cast<char>('a' + i)));
        EXPECT_TRUE(put.ok() || absl::IsAborted(put.status())) << put.status();
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto read = GetLarge(store(), K("v"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE((*read)->value == Value(1500000, (*read)->value[0]));
  EXPECT_EQ(Stored(), 3u) << "the losers left nothing";
}

TEST_P(LargeValues, SayWhenAHeadIsNonsense) {
  Put("v", "trainyard-chunks 1 5b6c4652 99999999999999 99999999999999 d280b0c4");
  const absl::Status status = GetLarge(store(), K("v")).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_P(LargeValues, SayWhenAChunkIsGone) {
  ASSERT_TRUE(PutLarge(store(), ids_, K("v"), Value(3 << 20, 'a')).ok());
  const auto chunks = store().Range({.range = KeyRange::Prefix(K("v/.chunk/")), .keys_only = true});
  ASSERT_TRUE(store().Delete(KeyRange::Key(chunks->kvs.at(1).key)).ok());
  const absl::Status status = GetLarge(store(), K("v")).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_P(LargeValues, ReadAValueThatWasPutWhole) {
  const Revision revision = Put("v", "small");
  const auto read = GetLarge(store(), K("v"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->value, "small");
  EXPECT_EQ((*read)->mod_revision, revision);
}

}  // namespace
}  // namespace trainyard::kv
