#include "master/task_log.h"

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/disk/embedded_store.h"
#include "kv/memory_store.h"
#include "ps/job_testing.h"

namespace trainyard::master {
namespace {

using testing::HasSubstr;

tasks::Command Begin(std::int64_t records) {
  return tasks::Begin{.kind = tasks::Kind::kTraining,
                      .options = {.records = records, .records_per_task = 2, .epochs = 3, .seed = 4}};
}

std::unique_ptr<TaskLog> Open(kv::Store& store, std::int64_t batches_per_snapshot = 4096) {
  auto log =
      TaskLog::Open(store, {.prefix = "job", .owner = "me", .batches_per_snapshot = batches_per_snapshot});
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

TEST(TaskLog, IsTheSameQueueAfterEveryCommand) {
  const auto store = kv::NewMemoryStore(Clock::System());
  for (const std::int64_t batches_per_snapshot : {3, 1000}) {
    ASSERT_TRUE(store->Delete(kv::KeyRange::Prefix("job")).ok());
    auto log = Open(*store, batches_per_snapshot);
    EXPECT_TRUE(log->was_empty());
    log->Apply(Begin(40));
    for (int i = 0; i < 30; ++i) {
      const tasks::Answer answer = log->Apply(tasks::Lease{i % 3});
      if (i % 4 != 0) log->Apply(tasks::Finish{i % 3, answer.task.id, {}});
      if (i % 7 == 0) log->Apply(tasks::Leave{i % 3});
      const tasks::Queue::State state = log->queue().Save();
      log = Open(*store, batches_per_snapshot);
      ASSERT_EQ(log->queue().Save(), state) << i;
      EXPECT_FALSE(log->was_empty());
    }
  }
}

TEST(TaskLog, TellsOfACommandOnlyWhenItIsStored) {
  const ps::Folder folder;
  const auto store = kv::OpenEmbeddedStore(folder.At("store"));
  ASSERT_TRUE(store.ok()) << store.status();
  Mutex mu;
  CondVar changed;
  int told = 0;
  auto log = Open(**store);
  log->Apply(Begin(2000));
  for (int i = 0; i < 500; ++i) {
    const tasks::Answer answer = log->Apply(tasks::Lease{0});
    log->WhenDurable([&, id = answer.task.id] {
      const MutexLock lock(mu);
      EXPECT_EQ(id, told + 1) << "in order";
      ++told;
      changed.SignalAll();
    });
  }
  {
    const MutexLock lock(mu);
    while (told < 500) changed.Wait(mu);
  }
  const tasks::Queue::State state = log->queue().Save();
  log.reset();
  EXPECT_EQ(Open(**store)->queue().Save(), state);
}

TEST(TaskLog, WritesWhatIsGatheredAtOnce) {
  const auto store = kv::NewMemoryStore(Clock::System());
  const auto log = Open(*store);
  log->Apply(Begin(20));
  const kv::Revision before = store->Get("job/owner", 0)->revision;
  int told = 0;
  log->Gather();
  for (int i = 0; i < 5; ++i) {
    log->Apply(tasks::Lease{i});
    log->WhenDurable([&told] { ++told; });
  }
  EXPECT_EQ(told, 0) << "nothing is stored yet";
  EXPECT_EQ(Open(*store)->queue().CountLeased(tasks::Kind::kTraining), 0);
  log->Settle();
  EXPECT_EQ(told, 5);
  const kv::Revision owners = 1;  // whoever looked in between
  EXPECT_EQ(store->Get("job/owner", 0)->revision, before + owners + 1);
  log->Apply(tasks::Lease{9}, [&told] { ++told; });
  EXPECT_EQ(told, 6) << "by itself again";
  EXPECT_EQ(Open(*store)->queue().CountLeased(tasks::Kind::kTraining), 6);
}

TEST(TaskLog, RefusesWhoHadItBefore) {
  const auto store = kv::NewMemoryStore(Clock::System());
  absl::Status broken;
  auto old = TaskLog::Open(
      *store, {.prefix = "job", .owner = "old", .on_broken = [&](const absl::Status& why) { broken = why; }});
  ASSERT_TRUE(old.ok());
  (*old)->Apply(Begin(10));
  const auto young = Open(*store);
  (*old)->Apply(tasks::Lease{0});
  EXPECT_THAT(std::string(broken.message()), HasSubstr("another process has taken the task log job over"));
  EXPECT_EQ(young->queue().CountLeased(tasks::Kind::kTraining), 0);
  EXPECT_EQ(Open(*store)->queue().CountLeased(tasks::Kind::kTraining), 0);
}

TEST(TaskLog, GoesOnFromAnotherState) {
  const auto store = kv::NewMemoryStore(Clock::System());
  auto log = Open(*store);
  log->Apply(Begin(10));
  const tasks::Queue::State before = log->queue().Save();
  log->Apply(tasks::Lease{0});
  log->Replace(before);
  log->Apply(tasks::Lease{5});
  const tasks::Queue::State after = log->queue().Save();
  EXPECT_EQ(after.leased.front().worker, 5);
  log = Open(*store);
  EXPECT_EQ(log->queue().Save(), after);
}

TEST(TaskLog, NamesWhatIsDamaged) {
  const auto store = kv::NewMemoryStore(Clock::System());
  Open(*store)->Apply(Begin(10));
  ASSERT_TRUE(store->Put("job/log/000000000001", "\xff").ok());
  const auto log = TaskLog::Open(*store, {.prefix = "job", .owner = "me"});
  EXPECT_TRUE(absl::IsDataLoss(log.status()));
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("job/log/000000000001"));
}

}  // namespace
}  // namespace trainyard::master
