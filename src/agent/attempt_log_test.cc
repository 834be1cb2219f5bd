#include "agent/attempt_log.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <string>

#include "gtest/gtest.h"

namespace trainyard::agent {
namespace {

OwnedFd NewFile() { return OwnedFd(::memfd_create("test", MFD_CLOEXEC)); }
// One that takes no more than so many bytes, like a full disk.
OwnedFd NewFileOf(int bytes) {
  OwnedFd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), bytes), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  return file;
}

std::string ReadAll(const AttemptLog& log) {
  std::string all;
  while (log.begin() + all.size() < log.end()) {
    const std::string more = log.Read(log.begin() + all.size(), 3);
    if (more.empty()) return all + "?";
    all += more;
  }
  return all;
}

TEST(AttemptLog, DropsTheOldestHalfAndNeverTheNewest) {
  LogSpace space(NewFile, NewFile, 40);  // two files of 10 bytes for each log
  AttemptLog log(space);
  std::string printed;
  for (int i = 0; i < 100; ++i) {
    const std::string piece = std::to_string(i) + ",";
    log.Append(piece);
    printed += piece;
    ASSERT_EQ(log.end(), printed.size());
    ASSERT_LE(log.end() - log.begin(), 20u);
    ASSERT_GE(log.end() - log.begin(), std::min<std::uint64_t>(log.end(), 11));
    ASSERT_EQ(ReadAll(log), printed.substr(log.begin()));
  }
}

TEST(AttemptLog, TakesAPieceLargerThanAllOfIt) {
  LogSpace space(NewFile, NewFile, 40);
  AttemptLog log(space);
  log.Append("0123456789abcdefghijABCDEFGHIJ-");
  EXPECT_EQ(log.end(), 31u);
  EXPECT_EQ(log.begin(), 20u);
  EXPECT_EQ(ReadAll(log), "ABCDEFGHIJ-");
}

TEST(AttemptLog, ReadsFromAnyOffsetItHas) {
  LogSpace space(NewFile, NewFile, 40);
  AttemptLog log(space);
  EXPECT_EQ(log.begin(), 0u);
  EXPECT_EQ(log.Read(0, 10), "");
  log.Append("0123456789abcde");
  EXPECT_EQ(log.Read(8, 100), "89") << "to the end of a file";
  EXPECT_EQ(log.Read(10, 100), "abcde");
  EXPECT_EQ(log.Read(14, 100), "e");
  EXPECT_EQ(log.Read(15, 100), "");
}

TEST(AttemptLog, FindsTheLastLines) {
  LogSpace space(NewFile, NewFile, 40'000);
  const auto tail = [&](std::string_view text, std::uint64_t lines) {
    AttemptLog log(space);
    log.Append(text);
    return std::string(text.substr(log.FindTail(lines)));
  };
  EXPECT_EQ(tail("", 1), "");
  EXPECT_EQ(tail("a\nb\nc\n", 0), "");
  EXPECT_EQ(tail("a\nb\nc\n", 1), "c\n");
  EXPECT_EQ(tail("a\nb\nc", 1), "c") << "one without an end is a line";
  EXPECT_EQ(tail("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(tail("a\nb\nc\n", 3), "a\nb\nc\n");
  EXPECT_EQ(tail("a\nb\nc\n", 99), "a\nb\nc\n");
  EXPECT_EQ(tail("\n\n\n", 2), "\n\n");
  const std::string line(9'000, 'x');
  EXPECT_EQ(tail(line + "\n" + line + "\n", 1), line + "\n") << "lines longer than what is read at once";
}

TEST(AttemptLog, GoesOnInMemoryWhenTheDiskIsFull) {
  LogSpace space([] { return NewFileOf(5); }, NewFile, 40);
  AttemptLog log(space);
  log.Append("01234");
  EXPECT_TRUE(space.on_disk());
  log.Append("5678");
  EXPECT_FALSE(space.on_disk());
  EXPECT_EQ(ReadAll(log), "012345678") << "what the disk took is there too";
  log.Append("9abcdefghijkl");
  EXPECT_EQ(log.end(), 22u);
  EXPECT_EQ(ReadAll(log), std::string("0123456789abcdefghijkl").substr(log.begin()));
}

TEST(AttemptLog, BeginsInMemoryWhereThereIsNoFolder) {
  LogSpace space(std::string("/proc/none"), 64 << 20);
  AttemptLog log(space);
  log.Append("hello");
  EXPECT_FALSE(space.on_disk());
  EXPECT_EQ(ReadAll(log), "hello");
  EXPECT_EQ(space.FileBytes(), std::uint64_t{256} << 10) << "of 1 MiB for two logs";
}

TEST(AttemptLog, CountsWhatNobodyTakes) {
  LogSpace space([] { return OwnedFd(); }, [] { return NewFileOf(0); }, 40);
  AttemptLog log(space);
  log.Append("hello");
  EXPECT_EQ(log.end(), 5u);
  EXPECT_EQ(log.begin(), 5u);
  log.Append("again");
  EXPECT_EQ(log.begin(), 10u);
}

}  // namespace
}  // namespace trainyard::agent
