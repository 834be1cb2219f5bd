// Kills a process that writes to an embedded store, with SIGKILL and at random points, and looks for what it
// lost.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/fd.h"
#include "base/ids.h"
#include "base/process.h"
#include "base/text.h"
#include "gtest/gtest.h"
#include "kv/disk/embedded_store.h"
#include "tests/integration/crash_report.h"
#include "tests/support/temp_folder.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kThreads = 8;

int Kills() {
  const char* more = std::getenv("TRAINYARD_CRASH_KILLS");
  return more == nullptr ? 220 : std::atoi(more);
}

class CrashTest : public testing::Test {
 protected:
  // Runs the writer until it has reported `after` transactions, kills it, and takes note of all that it
  // reported.
  void WriteAndKill(std::uint64_t after) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    ProcessSpec spec;
    spec.argv = {TRAINYARD_CRASH_WRITER, store_, StrCat(kThreads)};
    spec.stdout_fd = writer.get();
    spec.stderr_path = folder_ / "stderr";
    auto child = Child::Spawn(spec);
    ASSERT_TRUE(child.ok()) << child.status();
    writer.Reset();
    CrashReport report;
    for (std::uint64_t seen = 0; seen < after && Next(reader, report); ++seen) Note(report);
    ASSERT_TRUE(child->Kill(SIGKILL).ok());
    const auto ended = child->Wait();
    ASSERT_TRUE(ended.ok());
    ASSERT_EQ(*ended, ExitStatus(Signaled{.signal = SIGKILL}))
        << "it ended by itself: see " << spec.stderr_path;
    while (Next(reader, report)) Note(report);
  }

  void FindNothingLost(int kill) {
    const auto store = kv::OpenEmbeddedStore(store_);
    ASSERT_TRUE(store.ok()) << "after kill " << kill << ": " << store.status();
    kv::Revision newest = 0;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      const auto one = (*store)->Get(CrashKey(thread, 0), 0);
      const auto twin = (*store)->Get(CrashKey(thread, 1), 0);
      ASSERT_TRUE(one.ok() && twin.ok()) << one.status() << twin.status();
      newest = one->revision;
      const std::uint64_t stored = one->kv ? CrashNumber(one->kv->value) : 0;
      EXPECT_GE(stored, acknowledged_[thread])
          << "after kill " << kill << " thread " << thread << " lost writes";
      EXPECT_LE(stored, acknowledged_[thread] + 1) << "a writer has one transaction under way";
      ASSERT_EQ(one->kv.has_value(), twin->kv.has_value()) << "after kill " << kill << ": a torn transaction";
      if (!one->kv) continue;
      EXPECT_EQ(one->kv->value, CrashValue(thread, stored)) << "after kill " << kill;
      EXPECT_EQ(one->kv->value, twin->kv->value) << "after kill " << kill << ": a torn transaction";
      acknowledged_[thread] = stored;
    }
    EXPECT_GE(newest, revision_) << "the revision went back";
    revision_ = newest;
  }

  testing_support::TempFolder folder_;
  const std::string store_ = folder_ / "store";
  std::map<std::uint32_t, std::uint64_t> acknowledged_;
  kv::Revision revision_ = 0;
  std::uint64_t reports_ = 0;

 private:
  static bool Next(const Fd& reader, CrashReport& report) {
    return ::read(reader.get(), &report, sizeof report) == sizeof report;
  }
  void Note(const CrashReport& report) {
    ++reports_;
    acknowledged_[report.thread] = std::max(acknowledged_[report.thread], report.number);
    revision_ = std::max(revision_, report.revision);
  }
};

TEST_F(CrashTest, LosesNothingAcknowledgedToSigkillAtRandomPoints) {
  IdSource dice(20240501);
  const int kills = Kills();
  for (int kill = 1; kill <= kills; ++kill) {
    // Every tenth is killed as it starts, so that recovery itself is interrupted too.
    WriteAndKill(kill % 10 == 0 ? 0 : 1 + dice.Below(400));
    if (HasFatalFailure()) return;
    FindNothingLost(kill);
    if (HasFailure()) return;
  }
  RecordProperty("kills", kills);
  RecordProperty("acknowledged", std::to_string(reports_));
  EXPECT_GT(reports_, static_cast<std::uint64_t>(kills)) << "nothing was written between the kills";
  std::cout << kills << " kills, " << reports_ << " acknowledged transactions, none lost\n";
}

}  // namespace
}  // namespace trainyard
