#include "kv/disk/embedded_store.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_file_system.h"

namespace trainyard::kv {
namespace {

using ::testing::HasSubstr;

// A store on a file system whose power can be cut.
class FakeDisk : public testing::Test {
 protected:
  EmbeddedOptions Options() {
    EmbeddedOptions options;
    options.clock = &clock_;
    options.files = &files_;
    options.keeper = false;
    options.journal.first_segment_bytes = 2048;
    options.journal.max_segment_bytes = 8192;
    options.journal.prepare_in_background = false;
    return options;
  }
  absl::StatusOr<std::unique_ptr<LocalStore>> Open() { return OpenEmbeddedStore("store", Options()); }
  std::unique_ptr<LocalStore> MustOpen() {
    auto store = Open();
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  ManualClock clock_;
  FakeFileSystem files_;
};

// Everything that a reader can see.
std::map<std::string, std::string> Contents(Store& store) {
  std::map<std::string, std::string> contents;
  const auto range = store.Range({.range = KeyRange::From("")});
  EXPECT_TRUE(range.ok()) << range.status();
  if (range.ok()) {
    for (const KeyValue& kv : range->kvs) contents[kv.key] = kv.value;
  }
  return contents;
}

TEST_F(FakeDisk, KeepsKeysHistoryLeasesAndRevisionAcrossRestarts) {
  Revision one = 0;
  Revision last = 0;
  Lease lease;
  {
    const auto store = MustOpen();
    one = *store->Put("a", "1");
    lease = *store->GrantLease(absl::Seconds(10));
    ASSERT_TRUE(store->Put("a", "2").ok());
    ASSERT_TRUE(store->Put("leased", "x", lease.id).ok());
    ASSERT_TRUE(store->Put("gone", "x").ok());
    last = *store->Put("z", std::string(5000, 'z'));
    ASSERT_TRUE(store->Delete(KeyRange::Key("gone")).ok());
  }
  const auto store = MustOpen();
  EXPECT_EQ(store->Get("a", 0)->revision, last + 1);
  EXPECT_EQ(*store->Get("a", 0)->kv, (KeyValue{"a", "2", one, one + 1, 2, kNoLease}));
  EXPECT_EQ(store->Get("a", one)->kv->value, "1");
  EXPECT_EQ(store->Get("z", 0)->kv->value, std::string(5000, 'z'));
  EXPECT_EQ(store->Get("gone", 0)->kv, std::nullopt);
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(store->Get("leased", 0)->kv) << "a lease has its whole time again";
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(store->Get("leased", 0)->kv);
  EXPECT_EQ(*store->Put("b", "1"), last + 3);
}

TEST_F(FakeDisk, ReadsAPastOfLargeValuesLittleByLittle) {
  constexpr std::size_t kValues = 12;
  const auto store = MustOpen();
  for (std::size_t i = 0; i < kValues; ++i) ASSERT_TRUE(store->Put("a", std::string(1 << 20, 'x')).ok());
  const auto watcher = *store->Watch({.range = KeyRange::Key("a"), .start_revision = 1});
  std::size_t seen = 0;
  while (seen < kValues) {
    const absl::StatusOr<WatchBatch> batch = watcher->Next(absl::ZeroDuration());
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_LE(batch->events.size(), 5);
    seen += batch->events.size();
  }
  EXPECT_EQ(seen, kValues);
}

TEST_F(FakeDisk, GivesBackTheSpaceOfWhatWasCompactedAndKeepsTheRest) {
  Revision last = 0;
  const auto bytes = [&] {
    std::size_t total = 0;
    for (const std::string& path : files_.Paths()) total += files_.Bytes(path).size();
    return total;
  };
  const auto check = [&](Store& store) {
    EXPECT_EQ(store.Get("hot", 0)->kv->value, "199");
    EXPECT_EQ(store.Get("hot", 0)->kv->version, 200);
    EXPECT_EQ(store.Get("cold", 0)->kv->value, "kept");
    EXPECT_EQ(store.Get("hot", 0)->revision, last);
    EXPECT_TRUE(IsCompacted(store.Get("hot", last - 1).status()));
  };
  {
    const auto store = MustOpen();
    ASSERT_TRUE(store->Put("cold", "kept").ok());
    for (int i = 0; i < 200; ++i) last = *store->Put("hot", std::to_string(i));
    ASSERT_TRUE(store->Put("dead", "x").ok());
    last = store->Delete(KeyRange::Key("dead")).ok() ? store->Get("hot", 0)->revision : 0;
    const std::size_t before = bytes();
    const auto reader = *store->Watch({.range = KeyRange::Key("hot"), .start_revision = last - 10});
    ASSERT_TRUE(store->Compact(last).ok());
    EXPECT_LT(bytes(), before / 2);
    check(*store);
    // A watch that had begun keeps the files that it still reads from.
    EXPECT_EQ(reader->Next(absl::ZeroDuration())->events.back().kv.value, "199");
  }
  const auto store = MustOpen();
  check(*store);
  EXPECT_EQ(*store->Put("hot", "200"), last + 1);
}

// One step of a workload: what it does, and what is there if it was acknowledged.
struct Workload {
  std::map<std::string, std::string> acknowledged;
  std::map<std::string, std::string> attempted;  // what the last step, which failed, would have left
  absl::Status status;                           // of the last step

  // A transaction on two keys, so that half of one would show.
  void Step(Store& store, int i) {
    const std::string value = StrCat(i, std::string(static_cast<std::size_t>(i * 37 % 400), 'v'));
    TxnRequest request{.then = {PutOp{StrCat("k", i % 7), value}, PutOp{"twin", value}}};
    attempted = acknowledged;
    attempted[StrCat("k", i % 7)] = attempted["twin"] = value;
    if (i % 5 == 4) {
      request.then.push_back(DeleteOp{KeyRange::Key(StrCat("k", (i + 3) % 7))});
      attempted.erase(StrCat("k", (i + 3) % 7));
    }
    const auto result = store.Txn(request);
    status = result.status();
    if (result.ok()) acknowledged = attempted;
    if (result.ok() && i % 10 == 9) status = store.Compact(result->revision);
  }
};

TEST_F(FakeDisk, LosesNothingAcknowledgedWhereverThePowerIsCut) {
  // Cut at every single call that writes, and let the dice decide what had reached the disk.
  constexpr int kSteps = 40;
  int cuts = 0;
  for (int cut = 1;; ++cut) {
    files_ = FakeFileSystem();
    files_.CutPowerAt(cut);
    Workload workload;
    if (auto store = Open(); store.ok()) {
      for (int i = 0; i < kSteps && workload.status.ok(); ++i) workload.Step(**store, i);
    } else {
      workload.status = store.status();
    }
    if (workload.status.ok()) break;
    ++cuts;
    IdSource dice(static_cast<std::uint64_t>(cut));
    files_.RestorePower(dice);
    auto store = Open();
    ASSERT_TRUE(store.ok()) << "cut at " << cut << ": " << store.status();
    const auto contents = Contents(**store);
    EXPECT_TRUE(contents == workload.acknowledged || contents == workload.attempted) << "cut at " << cut;
    ASSERT_TRUE((*store)->Put("after", "1").ok()) << "cut at " << cut;
  }
  EXPECT_GT(cuts, 200) << "the workload is too small to prove anything";
}

TEST_F(FakeDisk, LosesNothingToAPowerCutThatFollowsAKilledProcess) {
  // What the killed process had written was in the kernel's memory only. The next one builds on it.
  for (int kill = 1;; ++kill) {
    files_ = FakeFileSystem();
    files_.CutPowerAt(kill);
    Workload workload;
    if (auto store = Open(); store.ok()) {
      for (int i = 0; i < 25 && workload.status.ok(); ++i) workload.Step(**store, i);
    } else {
      workload.status = store.status();
    }
    if (workload.status.ok()) break;
    files_.RestartProcess();
    for (const int cut : {1, 2, 3, 4, 7, 11}) {
      const FakeFileSystem::Image image = files_.Save();
      Workload second;
      {
        auto store = Open();
        ASSERT_TRUE(store.ok()) << "killed at " << kill << ": " << store.status();
        second.acknowledged = Contents(**store);
        EXPECT_TRUE(second.acknowledged == workload.acknowledged ||
                    second.acknowledged == workload.attempted);
        files_.CutPowerAt(cut);
        for (int i = 0; i < 25 && second.status.ok(); ++i) second.Step(**store, i);
        if (second.status.ok()) files_.CutPowerAt(1);
      }
      IdSource dice(static_cast<std::uint64_t>(kill * 100 + cut));
      files_.RestorePower(dice);
      auto store = Open();
      ASSERT_TRUE(store.ok()) << "killed at " << kill << ", cut at " << cut << ": " << store.status();
      const auto contents = Contents(**store);
      EXPECT_TRUE(contents == second.acknowledged || contents == second.attempted)
          << "killed at " << kill << ", cut at " << cut;
      store->reset();
      files_.Load(image);
    }
  }
}

TEST_F(FakeDisk, RefusesAManifestThatIsOlderThanTheSegments) {
  std::string old;
  {
    const auto store = MustOpen();
    ASSERT_TRUE(store->Put("first", "1").ok());
    old = files_.Bytes("store/MANIFEST");
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(store->Put(StrCat("k", i), std::string(300, 'x')).ok());
  }
  const std::vector<std::string> before = files_.Paths();
  files_.Bytes("store/MANIFEST") = old;
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(files_.Paths(), before) << "and deletes nothing";
}

TEST_F(FakeDisk, KeepsHistoryAndLeasesThroughARewriting) {
  Revision middle = 0;
  Revision last = 0;
  Lease lease;
  const auto check = [&](LocalStore& store) {
    EXPECT_EQ(store.Get("k", middle)->kv->value, "middle");
    EXPECT_EQ(store.Get("k", middle)->kv->version, 201);
    EXPECT_EQ(store.Get("k", last)->kv->value, "last");
    EXPECT_FALSE(store.Get("ended", last)->kv);
    EXPECT_TRUE(store.Get("ended", middle)->kv);
    const auto watcher = *store.Watch({.range = KeyRange::From(""), .start_revision = middle});
    std::vector<std::string> events;
    for (auto batch = watcher->Next(absl::ZeroDuration()); batch.ok();
         batch = watcher->Next(absl::ZeroDuration())) {
      for (const WatchEvent& event : batch->events) events.push_back(event.kv.key + event.kv.value);
    }
    EXPECT_THAT(events, testing::ElementsAre("ended1", "kmiddle", "two", "one", "ended", "klast", "leasedx"));
  };
  {
    const auto store = MustOpen();
    lease = *store->GrantLease(absl::Seconds(10));
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(store->Put("k", std::to_string(i)).ok());
    middle = store->Txn({.then = {PutOp{"ended", "1"}, PutOp{"k", "middle"}}})->revision;
    ASSERT_TRUE(store->Txn({.then = {PutOp{"two", ""}, PutOp{"one", ""}}}).ok());
    ASSERT_TRUE(store->Delete(KeyRange::Key("ended")).ok());
    ASSERT_TRUE(store->Put("k", "last").ok());
    last = *store->Put("leased", "x", lease.id);
    const std::size_t files = files_.Paths().size();
    ASSERT_TRUE(store->Compact(middle).ok());
    EXPECT_LT(files_.Paths().size(), files) << "it was rewritten";
    check(*store);
  }
  const auto store = MustOpen();
  check(*store);
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(store->Get("leased", 0)->kv) << "the lease was copied too";
}

TEST_F(FakeDisk, SurvivesASecondCutDuringRecovery) {
  Workload workload;
  {
    const auto store = MustOpen();
    for (int i = 0; i < 15; ++i) workload.Step(*store, i);
    files_.CutPowerAt(1);
    workload.Step(*store, 15);
    ASSERT_FALSE(workload.status.ok());
  }
  for (int cut = 1; cut < 30; ++cut) {
    IdSource dice(static_cast<std::uint64_t>(cut));
    files_.RestorePower(dice);
    files_.CutPowerAt(cut);
    (void)Open();
  }
  IdSource dice(99);
  files_.RestorePower(dice);
  const auto contents = Contents(*MustOpen());
  EXPECT_TRUE(contents == workload.acknowledged || contents == workload.attempted);
}

TEST_F(FakeDisk, GoesOnAfterAnyOneCallHasFailedForWantOfSpace) {
  for (int fail = 1; fail < 120; ++fail) {
    files_ = FakeFileSystem();
    Workload workload;
    {
      const auto store = MustOpen();
      files_.FailChange(fail, absl::ResourceExhaustedError("disk full"));
      int failures = 0;
      // Only a failed sync makes it refuse all that follows.
      for (int i = 0; i < 30 && !absl::IsDataLoss(workload.status); ++i) {
        workload.Step(*store, i);
        if (!workload.status.ok()) ++failures;
        EXPECT_EQ(Contents(*store), workload.acknowledged) << "call " << fail << ", step " << i;
      }
      EXPECT_LE(failures, 1) << "call " << fail << ": one failure must not cause another";
    }
    const auto contents = Contents(*MustOpen());
    EXPECT_TRUE(contents == workload.acknowledged || contents == workload.attempted) << "call " << fail;
  }
}

TEST_F(FakeDisk, TakesNoMoreWritesOnceASyncHasFailed) {
  const auto store = MustOpen();
  ASSERT_TRUE(store->Put("a", "1").ok());
  files_.FailChange(2, absl::InternalError("input/output error"));  // the write, then its sync
  const absl::Status failed = store->Put("b", "1").status();
  EXPECT_TRUE(absl::IsDataLoss(failed)) << failed;
  EXPECT_THAT(Message(failed), HasSubstr("takes no more writes"));
  EXPECT_TRUE(absl::IsDataLoss(store->Put("c", "1").status()));
  EXPECT_EQ(store->Get("a", 0)->kv->value, "1") << "what was acknowledged can still be read";
  EXPECT_FALSE(store->Get("b", 0)->kv);
}

TEST_F(FakeDisk, NeverOpensDamagedDataAsIfItWereWhole) {
  Workload workload;
  {
    const auto store = MustOpen();
    for (int i = 0; i < 38; ++i) workload.Step(*store, i);
  }
  IdSource ids(1);
  int refused = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const std::vector<std::string> paths = files_.Paths();
    const std::string path = paths[ids.Below(paths.size())];
    std::string& bytes = files_.Bytes(path);
    if (bytes.empty()) continue;
    const std::string saved = bytes;
    const std::size_t at = ids.Below(bytes.size());
    switch (ids.Below(4)) {
      case 0:  // a bit
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << ids.Below(8)));
        break;
      case 1:  // a sector of zeros
        for (std::size_t i = at / 512 * 512; i < std::min(bytes.size(), at / 512 * 512 + 512); ++i)
          bytes[i] = 0;
        break;
      case 2:  // a sector of garbage
        for (std::size_t i = at / 512 * 512; i < std::min(bytes.size(), at / 512 * 512 + 512); ++i) {
          bytes[i] = static_cast<char>(ids.Below(256));
        }
        break;
      default:  // the end is missing
        bytes.resize(at);
    }
    if (const auto store = Open(); store.ok()) {
      EXPECT_EQ(Contents(**store), workload.acknowledged) << "trial " << trial << ": silent loss in " << path;
    } else {
      ++refused;
      EXPECT_TRUE(absl::IsDataLoss(store.status()) || absl::IsFailedPrecondition(store.status()))
          << store.status();
      EXPECT_THAT(Message(store.status()), HasSubstr("store/")) << "the message names the file";
    }
    files_.Bytes(path) = saved;
  }
  EXPECT_GT(refused, 300);
}

TEST_F(FakeDisk, NoticesAMissingFile) {
  {
    const auto store = MustOpen();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(store->Put(StrCat("k", i), std::string(300, 'x')).ok());
  }
  ASSERT_TRUE(files_.Remove("store/00000001.seg").ok());
  const absl::Status segment = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(segment)) << segment;
  EXPECT_THAT(Message(segment), HasSubstr("store/00000001.seg is missing"));
  ASSERT_TRUE(files_.Remove("store/MANIFEST").ok());
  const absl::Status manifest = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(manifest)) << manifest;
  EXPECT_THAT(Message(manifest), HasSubstr("store/MANIFEST is missing"));
}

// On a real disk.
class RealDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = StrCat(testing::TempDir(), "embedded_store_test.XXXXXX");
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(RealDisk, HasOneOwnerAndNamesIt) {
  const auto store = OpenEmbeddedStore(folder_ + "/s");
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::Status second = OpenEmbeddedStore(folder_ + "/s").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(Message(second), HasSubstr(StrCat("pid ", ::getpid())));
}

TEST_F(RealDisk, RefusesAFolderThatIsSomethingElse) {
  std::ofstream(folder_ + "/thesis.tex") << "years of work";
  const absl::Status status = OpenEmbeddedStore(folder_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("is not a store: it holds thesis.tex"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "and leaves nothing there";
}

TEST_F(RealDisk, RefusesAPathThatIsAFile) {
  std::ofstream(folder_ + "/file") << "x";
  const absl::Status status = OpenEmbeddedStore(folder_ + "/file").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr(folder_ + "/file"));
}

TEST_F(RealDisk, GrowsThroughManySegmentsAndComesBack) {
  {
    const auto store = OpenEmbeddedStore(folder_ + "/s");
    ASSERT_TRUE(store.ok()) << store.status();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE((*store)->Put(StrCat("k", i), std::string(200000, 'x')).ok());
  }
  const auto store = OpenEmbeddedStore(folder_ + "/s");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Contents(**store).size(), 40u);
}

}  // namespace
}  // namespace trainyard::kv
