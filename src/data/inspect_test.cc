#include "data/inspect.h"

#include <string>

#include "base/status.h"
#include "base/text.h"
#include "data/data_testing.h"
#include "data/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::data {
namespace {

using ::testing::HasSubstr;
using testing_support::TempFolder;

absl::StatusOr<FileSummary> Inspect(std::string_view name, std::string_view bytes,
                                    const OpenOptions& options = {}) {
  const TempFolder folder;
  WriteBytes(folder / name, bytes);
  return InspectFile(folder / name, options);
}

TEST(InspectFile, TellsWhatChunksAreMadeOf) {
  const std::string plain = RecordIo({{"a", "b"}, {"c"}}, Compressor::kNone);
  EXPECT_EQ(Inspect("a", plain).value(), (FileSummary{.bytes = plain.size(),
                                                      .records = 3,
                                                      .chunks = 2,
                                                      .layouts = {Layout::kNew},
                                                      .compressors = {Compressor::kNone}}));
  const std::string mixed =
      StrCat(RecordIo({{"a"}}, Compressor::kGzip), OldChunk(Compressor::kNone, 1, Payload({"b"})));
  const FileSummary summary = Inspect("a", mixed).value();
  EXPECT_EQ(summary.layouts, (std::set{Layout::kNew, Layout::kOld}));
  EXPECT_EQ(summary.compressors, (std::set{Compressor::kNone, Compressor::kGzip}));
  EXPECT_EQ(Inspect("a", "").value(), FileSummary{});
}

TEST(InspectFile, TellsColumnsAndShapes) {
  EXPECT_EQ(Inspect("a.csv", "a,\"b,c\",d\n").value(),
            (FileSummary{.format = Format::kCsv, .bytes = 10, .records = 1, .columns = 3}));
  EXPECT_EQ(Inspect("a.csv", "").value(), (FileSummary{.format = Format::kCsv}));
  const std::string idx = FromHex("00000802 00000002 00000003 616263 646566");
  const ItemShape shape{.type = ElementType::kUint8, .dims = {3}};
  EXPECT_EQ(Inspect("a", idx).value(),
            (FileSummary{.format = Format::kIdx, .bytes = idx.size(), .records = 2, .shape = shape}));
  std::string packed;
  GzipWriter writer(packed);
  writer.Add(idx);
  writer.Finish();
  EXPECT_EQ(
      Inspect("a", packed).value(),
      (FileSummary{
          .format = Format::kIdx, .bytes = packed.size(), .records = 2, .packed = true, .shape = shape}));
}

TEST(InspectFile, NamesTheByteOfADamagedHeader) {
  const auto summary = Inspect("a", RecordIo({{"a"}}, Compressor::kNone) + "more");
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(summary.status()), HasSubstr("/a: damaged at byte 25: "));
}

}  // namespace
}  // namespace trainyard::data
