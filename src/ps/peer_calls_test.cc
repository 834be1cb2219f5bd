#include "ps/peer_calls.h"

#include <atomic>

#include "base/clock.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/rpc/message.pb.h"
#include "ps/rpc/server.h"

namespace trainyard::ps {
namespace {

using testing::HasSubstr;

class GroupCallTest : public testing::Test {
 protected:
  using Answer = std::function<absl::Status()>;

  // A server that answers so, where the registry finds it.
  void Serve(const std::string& graph, Answer answer, std::int64_t incarnation = 1) {
    auto server = RpcServer::Start({}, [answer](std::unique_ptr<Exchange> exchange) {
      const absl::Status status = answer();
      status.ok() ? exchange->Reply(wire::ApplyReply()) : exchange->Fail(status);
    });
    ASSERT_TRUE(server.ok()) << server.status();
    const GraphPod pod{
        .pod_name = graph, .pod_ip = "127.0.0.1", .pod_port = (*server)->port(), .incarnation = incarnation};
    servers_.push_back(*std::move(server));
    ASSERT_TRUE(store_->Put(keys_.Pod(graph), EncodePod(pod)).ok());
  }

  absl::Status CallAll(const std::vector<std::string>& graphs) {
    EXPECT_TRUE(registry_.Start().ok());
    GroupCall calls(
        registry_, channels_,
        {.method = "Apply", .timeout = absl::Seconds(10), .hopeless = [this] { return hopeless_(); }});
    for (const std::string& graph : graphs) calls.Add(graph, std::make_shared<wire::ApplyRequest>());
    return calls.Wait();
  }

  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const JobKeys keys_{"default/test"};
  std::vector<std::unique_ptr<RpcServer>> servers_;
  Registry registry_{*store_, keys_, {}};
  Channels channels_{""};
  std::function<absl::Status()> hopeless_ = [] { return absl::OkStatus(); };
};

TEST_F(GroupCallTest, IsDoneWhenAllHaveAnswered) {
  std::atomic<int> calls = 0;
  for (const char* graph : {"pserver-1", "pserver-2"})
    Serve(graph, [&] { return ++calls, absl::OkStatus(); });
  EXPECT_TRUE(CallAll({"pserver-1", "pserver-2"}).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(CallAll({}).ok());
}

TEST_F(GroupCallTest, AsksAgainWhereItMayHelp) {
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  Serve("pserver-1", [&] { return ++first < 3 ? absl::UnavailableError("not yet") : absl::OkStatus(); });
  Serve("pserver-2", [&] { return ++second, absl::OkStatus(); });
  EXPECT_TRUE(CallAll({"pserver-1", "pserver-2"}).ok());
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 1);
}

TEST_F(GroupCallTest, EndsWithAnAnswerThatIsForGood) {
  Serve("pserver-1", [] { return absl::OkStatus(); });
  Serve("pserver-2", [] { return absl::AbortedError("generation 2 has begun"); });
  const absl::Status called = CallAll({"pserver-1", "pserver-2"});
  EXPECT_TRUE(absl::IsAborted(called));
  EXPECT_THAT(std::string(called.message()), HasSubstr("pserver-2: generation 2"));
}

TEST_F(GroupCallTest, WaitsForAGraphThatIsNotThereUntilThatIsHopeless) {
  int looks = 0;
  hopeless_ = [&] { return ++looks < 3 ? absl::OkStatus() : absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(CallAll({"pserver-1"})));
}

TEST_F(GroupCallTest, CallsAGraphWhereItIsNow) {
  std::vector<std::unique_ptr<Exchange>> held;
  Mutex mu;
  auto silent = RpcServer::Start({}, [&](std::unique_ptr<Exchange> exchange) {
    const MutexLock lock(mu);
    held.push_back(std::move(exchange));
    // It dies without an answer, and another takes its place.
    if (held.size() == 1) Serve("pserver-1", [] { return absl::OkStatus(); }, 2);
  });
  ASSERT_TRUE(silent.ok());
  const GraphPod pod{.pod_name = "p", .pod_ip = "127.0.0.1", .pod_port = (*silent)->port(), .incarnation = 1};
  ASSERT_TRUE(store_->Put(keys_.Pod("pserver-1"), EncodePod(pod)).ok());
  EXPECT_TRUE(CallAll({"pserver-1"}).ok());
  const MutexLock lock(mu);
  EXPECT_EQ(held.size(), 1);
  held.clear();
}

}  // namespace
}  // namespace trainyard::ps
