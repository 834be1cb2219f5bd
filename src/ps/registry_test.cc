#include "ps/registry.h"

#include <atomic>

#include "base/clock.h"
#include "base/executor.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"

namespace trainyard::ps {
namespace {

class RegistryTest : public testing::Test {
 protected:
  void Put(const std::string& graph, std::int64_t incarnation) {
    const GraphPod pod{.pod_name = graph, .pod_ip = "127.0.0.1", .incarnation = incarnation};
    ASSERT_TRUE(store_->Put(keys_.Pod(graph), EncodePod(pod)).ok());
  }
  // What was told, waited for.
  void Await(const std::atomic<int>& count, int wanted) {
    while (count < wanted) std::this_thread::yield();
    EXPECT_EQ(count, wanted);
  }

  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const JobKeys keys_{"default/test"};
};

TEST_F(RegistryTest, KnowsWhoIsThereWhenItHasStarted) {
  Put("pserver-0", 3);
  std::atomic<int> told = 0;
  Registry registry(*store_, keys_,
                    {.on_pod = [&](const std::string&, const std::optional<GraphPod>&) { ++told; }});
  ASSERT_TRUE(registry.Start().ok());
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(registry.Find("pserver-0"));
  EXPECT_EQ(registry.Find("pserver-0")->incarnation, 3);
  EXPECT_FALSE(registry.Find("pserver-1"));
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Key(keys_.Pod("pserver-0"))).ok());
  Await(told, 2);
  EXPECT_FALSE(registry.Find("pserver-0"));
}

TEST_F(RegistryTest, WaitsForALaterIncarnation) {
  Put("pserver-0", 1);
  Registry registry(*store_, keys_, {});
  ASSERT_TRUE(registry.Start().ok());
  Executor other;
  other.Post([this] { Put("pserver-0", 2); });
  EXPECT_EQ(registry.WaitFor("pserver-0", 1, absl::Minutes(1))->incarnation, 2);
}

TEST_F(RegistryTest, TellsOfTheJobAndOfItsEnd) {
  const kv::Revision revision = PutMeta(*store_, keys_, {}, 0).value();
  std::atomic<int> metas = 0;
  std::atomic<int> deleted = 0;
  Registry registry(*store_, keys_,
                    {.on_meta = [&](const JobMeta&) { ++metas; }, .on_deleted = [&] { ++deleted; }});
  ASSERT_TRUE(registry.Start().ok());
  Await(metas, 1);
  ASSERT_TRUE(PutMeta(*store_, keys_, {.generation = 2}, revision).ok());
  Await(metas, 2);
  EXPECT_EQ(deleted, 0);
  ASSERT_TRUE(store_->Delete(kv::KeyRange::Key(keys_.Meta())).ok());
  Await(deleted, 1);
}

TEST_F(RegistryTest, TellsOfAClientThatIsGone) {
  const kv::Lease lease = store_->GrantLease(absl::Hours(1)).value();
  ASSERT_TRUE(store_->Put(keys_.Client(), "", lease.id).ok());
  std::atomic<int> gone = 0;
  Registry registry(*store_, keys_, {.on_client_gone = [&] { ++gone; }});
  ASSERT_TRUE(registry.Start().ok());
  EXPECT_EQ(gone, 0);
  ASSERT_TRUE(store_->RevokeLease(lease.id).ok());
  Await(gone, 1);
  std::atomic<int> missing = 0;
  Registry late(*store_, keys_, {.on_client_gone = [&] { ++missing; }});
  ASSERT_TRUE(late.Start().ok());
  Await(missing, 1);
}

}  // namespace
}  // namespace trainyard::ps
