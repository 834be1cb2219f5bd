#include "data/idx/file.h"

#include <cstring>

#include "base/status.h"
#include "data/data_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;

const std::string kItems = FromHex("00000b02 00000003 00000002") + "aabbccddeeff";

std::string PackIdx(std::string_view text) {
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(text);
  writer.Finish();
  return packed;
}

std::shared_ptr<const FileBytes> InMemory(std::string_view text) {
  auto bytes = std::make_unique<char[]>(text.size());
  if (!text.empty()) std::memcpy(bytes.get(), text.data(), text.size());
  return FileBytes::Own(std::move(bytes), text.size());
}

absl::StatusOr<Records> ReadIdx(const std::shared_ptr<const FileBytes>& bytes) {
  TY_ASSIGN_OR_RETURN(const auto file, OpenIdx(*bytes));
  Records records;
  Scratch scratch;
  TY_RETURN_IF_ERROR(file->NewReader(bytes, scratch)->Read({0, file->Count()}, [&](std::string_view record) {
    records.emplace_back(record);
    return absl::OkStatus();
  }));
  return records;
}

TEST(IdxFile, HasTheItemsOfItsFirstDimension) {
  EXPECT_EQ(ReadIdx(InMemory(kItems)).value(), (Records{"aabb", "ccdd", "eeff"}));
  const auto file = OpenIdx(*InMemory(kItems)).value();
  EXPECT_EQ(*file->Shape(), (ItemShape{.type = ElementType::kInt16, .dims = {2}}));
  EXPECT_EQ(file->Where(2, *InMemory(kItems)), "item 2 at byte 20");
}

TEST(IdxFile, HasExactlyTheSizeThatItsHeaderSays) {
  for (std::size_t length = 0; length < kItems.size(); ++length) {
    EXPECT_EQ(ReadIdx(InMemory(kItems.substr(0, length))).status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_THAT(Message(ReadIdx(InMemory(kItems.substr(0, 20))).status()),
              HasSubstr("damaged at byte 20: the file should end at byte 24 by its header, but ends at 20"));
  EXPECT_THAT(Message(ReadIdx(InMemory(kItems + "x")).status()), HasSubstr("damaged at byte 24"));
}

TEST(IdxFile, HasNoChecksumButAHeaderThatMustFit) {
  const Records items = ReadIdx(InMemory(kItems)).value();
  // Any byte of the header: an error, or the same bytes under the name of another type.
  for (std::size_t at = 0; at < 12; ++at) {
    for (int value = 1; value < 256; ++value) {
      std::string damaged = kItems;
      damaged[at] = static_cast<char>(damaged[at] ^ value);
      const auto read = ReadIdx(InMemory(damaged));
      if (read.ok()) {
        EXPECT_EQ(*read, items) << "byte " << at << " xor " << value;
      }
    }
  }
}

TEST(UnpackIdx, UnpacksTheWholeFile) {
  EXPECT_TRUE(LooksLikePackedIdx(PackIdx(kItems)));
  EXPECT_FALSE(LooksLikePackedIdx(PackIdx("some text")));
  EXPECT_FALSE(LooksLikePackedIdx(kItems));
  EXPECT_EQ(ReadIdx(UnpackIdx(PackIdx(kItems), 24).value()).value(), (Records{"aabb", "ccdd", "eeff"}));
}

TEST(UnpackIdx, NeverReadsSomethingElseFromDamage) {
  const std::string packed = PackIdx(kItems);
  for (std::size_t i = 0; i < packed.size() * 8; ++i) {
    std::string damaged = packed;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    const auto bytes = UnpackIdx(damaged, 1 << 20);
    if (bytes.ok()) {
      EXPECT_EQ((*bytes)->view(), kItems) << "bit " << i;
    }
  }
  for (std::size_t length = 0; length < packed.size(); ++length) {
    EXPECT_EQ(UnpackIdx(std::string_view(packed).substr(0, length), 1 << 20).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST(UnpackIdx, UnpacksNoMoreThanTheHeaderSaysAndTheCallerAllows) {
  EXPECT_THAT(Message(UnpackIdx(PackIdx(kItems), 23).status()),
              HasSubstr("unpacked it has 24 bytes, and at most 23 are allowed"));
  EXPECT_THAT(Message(UnpackIdx(PackIdx(kItems + "x"), 1000).status()), HasSubstr("which it cannot"));
  EXPECT_THAT(Message(UnpackIdx(PackIdx(kItems.substr(0, 23)), 1000).status()), HasSubstr("to fewer"));
  // 1 GiB by the header, and 12 bytes of it there.
  EXPECT_THAT(Message(UnpackIdx(PackIdx(FromHex("00000802 00100000 00000400")), 1U << 31U).status()),
              HasSubstr("which it cannot"));
  const std::string large = FromHex("00000801 00001000") + std::string(4097, 'x');
  EXPECT_THAT(Message(UnpackIdx(PackIdx(large), 10000).status()), HasSubstr("to more"));
}

}  // namespace
}  // namespace trainyard::data
