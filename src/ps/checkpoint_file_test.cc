#include <filesystem>

#include "base/crc32c.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/checkpoint.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/temp_folder.h"

namespace trainyard::ps {
namespace {

using graph::DataType;
using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Floats(graph::Dims dims, float first) {
  Tensor tensor(DataType::kFloat32, std::move(dims));
  for (float& value : tensor.span<float>()) value = first++;
  return tensor;
}

CheckpointData SmallData(std::int64_t step, float first = 1) {
  CheckpointData data{.step = step, .layout = "two", .extra = std::string("lead\0\xff", 6)};
  data.variables["w.block0"] = Floats({2, 3}, first);
  data.variables["@STEP@"] = Tensor(DataType::kInt64, {1});
  data.variables["@STEP@"].data<std::int64_t>()[0] = step;
  data.variables["flags"] = Tensor(DataType::kBool, {2});
  data.variables["flags"].data<bool>()[1] = true;
  data.variables["scalar"] = Floats({}, 7);
  data.variables["none"] = Floats({0, 4}, 0);
  return data;
}

void ExpectSame(const CheckpointData& actual, const CheckpointData& expected) {
  EXPECT_EQ(actual.step, expected.step);
  EXPECT_EQ(actual.layout, expected.layout);
  EXPECT_EQ(actual.extra, expected.extra);
  ASSERT_EQ(actual.variables.size(), expected.variables.size());
  for (const auto& [name, tensor] : expected.variables) {
    ASSERT_TRUE(actual.variables.contains(name)) << name;
    const Tensor& read = actual.variables.at(name);
    ASSERT_EQ(read.type(), tensor.type()) << name;
    ASSERT_EQ(read.dims(), tensor.dims()) << name;
    const auto bytes = [](const Tensor& t) {
      return std::string_view(static_cast<const char*>(t.raw()), t.bytes());
    };
    EXPECT_EQ(bytes(read), bytes(tensor)) << name;
  }
}

TEST(CheckpointFile, HoldsAllOfADataAndNothingElse) {
  const testing_support::TempFolder folder;
  const CheckpointData data = SmallData(40);
  const std::string directory = folder / "of/the/job";
  const Checkpoint written = WriteCheckpoint(directory, "pserver-0", data).value();
  EXPECT_EQ(written.step, 40);
  EXPECT_EQ(written.layout, "two");
  EXPECT_EQ(written.bytes, std::filesystem::file_size(written.file));
  EXPECT_EQ(written.file, StrCat(directory, "/pserver-0-40-", Hex32(written.crc32c), ".ckpt"));
  ExpectSame(ReadCheckpoint(written).value(), data);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST(CheckpointFile, HoldsTensorsOfSeveralPieces) {
  const testing_support::TempFolder folder;
  CheckpointData data{.step = 1};
  data.variables["exact"] = Floats({2, 1 << 20}, 0);
  data.variables["more"] = Floats({(1 << 20) + 1}, 0);
  data.variables["numbers"] = Tensor(DataType::kInt64, {3, 500000});
  data.variables["numbers"].data<std::int64_t>()[1499999] = 8;
  const Checkpoint written = WriteCheckpoint(folder.path(), "pserver-0", data).value();
  ExpectSame(ReadCheckpoint(written).value(), data);
}

TEST(CheckpointFile, HoldsNothingAtAll) {
  const testing_support::TempFolder folder;
  const Checkpoint written = WriteCheckpoint(folder.path(), "pserver-0", {}).value();
  ExpectSame(ReadCheckpoint(written).value(), {});
}

TEST(CheckpointFile, RefusesNamesThatAreNone) {
  const testing_support::TempFolder folder;
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpoint(folder.path(), "../x", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpoint(folder.path(), "pserver-0", {.step = -1}).status()));
  CheckpointData data;
  data.variables["a b"] = Floats({1}, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpoint(folder.path(), "pserver-0", data).status()));
}

TEST(CheckpointFile, OfTheSameStepAgainIsAnotherFile) {
  kv::FakeFileSystem files;
  const Checkpoint first = WriteCheckpoint("dir", "pserver-0", SmallData(5, 1), files).value();
  const Checkpoint second = WriteCheckpoint("dir", "pserver-0", SmallData(5, 2), files).value();
  ExpectSame(ReadCheckpoint(first, files).value(), SmallData(5, 1));
  ExpectSame(ReadCheckpoint(second, files).value(), SmallData(5, 2));
}

class DamagedCheckpoint : public testing::Test {
 protected:
  void ExpectLost(const std::string& what) {
    const absl::Status status = ReadCheckpoint(written_, files_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << what << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr(written_.file)) << what;
  }

  kv::FakeFileSystem files_;
  Checkpoint written_ = WriteCheckpoint("dir", "pserver-0", SmallData(40), files_).value();
  const std::string bytes_ = files_.Bytes(written_.file);
};

TEST_F(DamagedCheckpoint, IsFoundByEveryByte) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    for (const int flipped : {1, 0x80, 0xff}) {
      std::string& bytes = files_.Bytes(written_.file);
      bytes = bytes_;
      bytes[i] = static_cast<char>(bytes[i] ^ flipped);
      ExpectLost(StrCat("byte ", i));
    }
  }
}

TEST_F(DamagedCheckpoint, IsFoundWhereverItIsCut) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    files_.Bytes(written_.file) = bytes_.substr(0, size);
    ExpectLost(StrCat("cut at ", size));
    // As if the pointer were of the cut file.
    const Checkpoint whole = written_;
    written_.bytes = size;
    written_.crc32c = Crc32c(bytes_.substr(0, size));
    ExpectLost(StrCat("cut at ", size, " before it was published"));
    written_ = whole;
  }
  files_.Bytes(written_.file) = bytes_ + "x";
  ExpectLost("longer");
}

TEST_F(DamagedCheckpoint, IsOneOfAnotherStepOrLayout) {
  Checkpoint other = written_;
  written_.step = 41;
  ExpectLost("step");
  written_ = other;
  written_.layout = "three";
  ExpectLost("layout");
}

TEST_F(DamagedCheckpoint, ThatClaimsMoreThanItHasAllocatesNothing) {
  // The head's own checksum is right: somebody made it so.
  std::string bytes = bytes_;
  const std::size_t at = bytes.find("[2,3]");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "[9e9]");
  for (const std::string_view dims : {"[999]", "[1,0]"}) {
    bytes.replace(at, 5, dims);
    const std::size_t head = bytes.find("TYTENSOR") - 4;
    const std::uint32_t crc = Crc32c(std::string_view(bytes).substr(0, head));
    for (std::size_t i = 0; i < 4; ++i) bytes[head + i] = static_cast<char>(crc >> (8 * i));
    files_.Bytes(written_.file) = bytes;
    written_.crc32c = Crc32c(bytes);
    ExpectLost(std::string(dims));
  }
}

TEST(CheckpointFile, ThatIsGoneIsNotFound) {
  const testing_support::TempFolder folder;
  const absl::Status status = ReadCheckpoint({.file = folder / "gone.ckpt"}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Message(status), HasSubstr("gone.ckpt"));
}

TEST(CheckpointFile, LeavesNoDraftWhenTheDiskIsFull) {
  kv::FakeFileSystem files;
  ASSERT_TRUE(WriteCheckpoint("dir", "pserver-0", SmallData(1), files).ok());
  const int before = files.changes();
  ASSERT_TRUE(WriteCheckpoint("dir", "pserver-0", SmallData(2), files).ok());
  const int changes = files.changes() - before;
  const std::size_t paths = files.Paths().size();
  for (int n = 1; n <= changes; ++n) {
    files.FailChange(n, absl::ResourceExhaustedError("no room"));
    const auto written = WriteCheckpoint("dir", "pserver-0", SmallData(3), files);
    EXPECT_FALSE(written.ok()) << n;
    files.FailChange(0, absl::OkStatus());
    // The last change makes the name durable: the file is whole by then.
    EXPECT_LE(files.Paths().size(), paths + 1) << n;
    for (const std::string& path : files.Paths()) EXPECT_FALSE(path.ends_with(".draft")) << path;
  }
}

TEST(CheckpointFile, DraftsOfWritersThatDiedGoWithTheNextWrite) {
  kv::FakeFileSystem files;
  files.CutPowerAt(3);
  ASSERT_FALSE(WriteCheckpoint("dir", "pserver-1", SmallData(1), files).ok());
  files.RestartProcess();
  ASSERT_EQ(files.Paths().size(), 1);
  ASSERT_TRUE(files.Paths()[0].ends_with(".draft"));
  // Another graph's are another's.
  const Checkpoint ten = WriteCheckpoint("dir", "pserver-10", SmallData(1), files).value();
  ASSERT_EQ(files.Paths().size(), 2);
  const Checkpoint one = WriteCheckpoint("dir", "pserver-1", SmallData(1), files).value();
  EXPECT_THAT(files.Paths(), testing::UnorderedElementsAre(one.file, ten.file));
}

}  // namespace
}  // namespace trainyard::ps
