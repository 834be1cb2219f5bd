#include "kv/disk/manifest.h"

#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

using ::testing::HasSubstr;

const Manifest kManifest = {{.id = 3, .size = 4096, .end = 4000}, {.id = 4, .size = 8192, .end = 0}};

std::string Signed(std::string text) { return StrCat(text, "checksum ", Hex32(Crc32c(text)), "\n"); }

TEST(Manifest, ReadsBackWhatItPrints) {
  const auto parsed = ParseManifest(Print(kManifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, kManifest);
}

TEST(Manifest, NoticesEveryFlippedBitAndEveryCut) {
  const std::string text = Print(kManifest);
  for (std::size_t i = 0; i < text.size() * 8; ++i) {
    std::string damaged = text;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(ParseManifest(damaged).ok()) << "bit " << i;
  }
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseManifest(text.substr(0, length)).ok()) << length << " bytes";
  }
}

TEST(Manifest, SaysThatANewerVersionWroteIt) {
  const absl::Status status = ParseManifest(Signed("trainyard-store 2\nsegment 1 size 64 active\n")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("newer trainyard"));
}

TEST(Manifest, RefusesLinesThatMakeNoSenseThoughTheyAreSigned) {
  for (const char* lines :
       {"", "segment 1 size 64 end 65\nsegment 2 size 64 active\n", "segment 1 size 64 end 64\n",
        "segment 1 size 64 active\nsegment 2 size 64 active\n", "segment x size 64 active\n",
        "segment 1 size 64 active\nsegment 2 size 64 end 64\n", "something else\n"}) {
    const absl::Status status = ParseManifest(Signed(StrCat("trainyard-store 1\n", lines))).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << lines << status;
  }
}

}  // namespace
}  // namespace trainyard::kv
