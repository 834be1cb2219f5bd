#include "kv/disk/record_codec.h"

#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

const Record kPut{.kind = Record::Kind::kPut,
                  .ends_txn = true,
                  .revision = 1LL << 40,
                  .sub = 3,
                  .create_revision = 7,
                  .version = 9,
                  .lease = -5,
                  .key = "key",
                  .value = "some value"};

TEST(RecordCodec, ReadsBackEveryKindOfRecord) {
  const std::vector<Record> records = {
      kPut,
      {.kind = Record::Kind::kDelete, .revision = 2, .key = "gone"},
      {.kind = Record::Kind::kLeaseGrant, .ends_txn = true, .lease = 11, .ttl_ms = 5000},
      {.kind = Record::Kind::kLeaseRevoke, .ends_txn = true, .lease = 11},
      {.kind = Record::Kind::kCompact, .ends_txn = true, .revision = 4},
      {.kind = Record::Kind::kBase, .ends_txn = true, .revision = 4},
  };
  std::string bytes;
  for (const Record& record : records)
    Encode(record, {.segment = 5, .offset = bytes.size(), .group = 64}, bytes);
  std::size_t at = 0;
  for (const Record& record : records) {
    const auto decoded = Decode(std::string_view(bytes).substr(at), 5, at);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->record, record);
    EXPECT_EQ(decoded->length, EncodedLength(record));
    EXPECT_EQ(decoded->group, 64u);
    EXPECT_EQ(decoded->length % 8, 0u);
    at += decoded->length;
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(RecordCodec, NoticesEveryFlippedBitAndEveryCut) {
  std::string bytes;
  Encode(kPut, {.segment = 1, .offset = 640, .group = 64}, bytes);
  ASSERT_TRUE(Decode(bytes, 1, 640).ok());
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(Decode(damaged, 1, 640).ok()) << "bit " << i;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Decode(std::string_view(bytes).substr(0, length), 1, 640).ok()) << length << " bytes";
  }
}

TEST(RecordCodec, NoticesARecordThatStrayedFromAnotherPlace) {
  std::string bytes;
  Encode(kPut, {.segment = 1, .offset = 640, .group = 64}, bytes);
  EXPECT_FALSE(Decode(bytes, 2, 640).ok());
  EXPECT_FALSE(Decode(bytes, 1, 648).ok());
}

TEST(RecordCodec, SeesNoRecordInZeros) { EXPECT_FALSE(Decode(std::string(4096, '\0'), 1, 64).ok()); }

}  // namespace
}  // namespace trainyard::kv
