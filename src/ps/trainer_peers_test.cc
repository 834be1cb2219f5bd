// What a trainer sends, as a pserver sees it.
#include "ps/trainer_peers.h"

#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/memory_store.h"
#include "ps/rpc/server.h"

namespace trainyard::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

graph::Tensor TensorOf(std::int64_t count, float first) {
  graph::Tensor tensor(graph::DataType::kFloat32, {count});
  std::iota(tensor.data<float>(), tensor.data<float>() + count, first);
  return tensor;
}

class TrainerPeersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RpcServer::Start({}, [this](std::unique_ptr<Exchange> exchange) { Take(*exchange); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const GraphPod pod{.pod_name = "p", .pod_ip = "127.0.0.1", .pod_port = server_->port(), .incarnation = 1};
    ASSERT_TRUE(store_->Put(keys_.Pod("pserver-0"), EncodePod(pod)).ok());
    ASSERT_TRUE(registry_.Start().ok());
    ASSERT_TRUE(peers_.Join(1).ok());
  }

  // Everything is fine with it, but for what `refuse_` says; parameters are as many sevens as are asked for.
  void Take(Exchange& exchange) {
    const std::string method(exchange.method());
    wire::TransferRequest request;
    const bool transfers = method == "Push" || method == "Pull";
    EXPECT_TRUE(!transfers || exchange.message().Head(request));
    std::string line = method;
    std::vector<Payload> payloads;
    for (const wire::Part& part : request.parts()) {
      StrAppend(line, " ", part.name(), "[", part.offset(), "+", part.length(), "]");
      if (method != "Pull") continue;
      auto sevens = std::make_shared<std::vector<float>>(part.length() / sizeof(float) - short_, 7.0F);
      payloads.push_back({sevens->data(), sevens->size() * sizeof(float), sevens});
    }
    const MutexLock lock(mu_);
    calls_.push_back(line);
    if (method == "Push") {
      pushed_.resize(exchange.message().payload_size() / sizeof(float));
      exchange.message().Copy(0, pushed_.data(), exchange.message().payload_size());
    }
    if (refuse_ > 0 && method == "Push") {
      --refuse_;
      return exchange.Fail(absl::UnavailableError("not yet"));
    }
    exchange.Reply(wire::TransferReply(), std::move(payloads));
  }

  std::vector<std::string> TakeCalls() {
    const MutexLock lock(mu_);
    return std::exchange(calls_, {});
  }

  Mutex mu_;
  std::vector<std::string> calls_;
  std::vector<float> pushed_;  // last
  int refuse_ = 0;
  std::size_t short_ = 0;  // by so many numbers a parameter is too short
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(Clock::System());
  const JobKeys keys_{"default/test"};
  std::unique_ptr<RpcServer> server_;
  Registry registry_{*store_, keys_, {}};
  TrainerPeers peers_{registry_, {.graph = "trainer-0", .incarnation = 1}, [](wire::ContributeRequest&) {}};
};

TEST_F(TrainerPeersTest, SendsSmallGradientsInOneMessageAndThenTellsTheLead) {
  TakeCalls();
  ASSERT_TRUE(peers_.Send("pserver-0", "a", graph::Value(TensorOf(2, 1.0F))).ok());
  ASSERT_TRUE(peers_.Send("pserver-0", "b", graph::Value(TensorOf(3, 10.0F))).ok());
  EXPECT_THAT(TakeCalls(), ElementsAre()) << "nothing goes before the step is done";
  ASSERT_TRUE(peers_.SendBarrier({"pserver-0"}).ok());
  EXPECT_THAT(TakeCalls(), ElementsAre("Push a[0+8] b[0+12]", "Contribute"));
  EXPECT_THAT(pushed_, ElementsAre(1, 2, 10, 11, 12));
}

TEST_F(TrainerPeersTest, DoesNotLetLargeGradientsWait) {
  constexpr std::int64_t kLarge = 6 << 20;
  TakeCalls();
  ASSERT_TRUE(peers_.Send("pserver-0", "small", graph::Value(TensorOf(2, 1.0F))).ok());
  ASSERT_TRUE(peers_.Send("pserver-0", "large", graph::Value(TensorOf(kLarge / 4, 0.0F))).ok());
  std::vector<std::string> calls;
  while (calls.size() < 3) {
    for (std::string& call : TakeCalls()) calls.push_back(std::move(call));
  }
  EXPECT_THAT(calls, testing::UnorderedElementsAre("Push small[0+8]", "Push large[0+4194304]",
                                                   "Push large[4194304+2097152]"));
  ASSERT_TRUE(peers_.SendBarrier({"pserver-0"}).ok());
  EXPECT_THAT(TakeCalls(), ElementsAre("Contribute"));
}

TEST_F(TrainerPeersTest, FetchesSmallParametersInOneMessage) {
  TakeCalls();
  graph::Tensor a = TensorOf(2, 0.0F);
  graph::Tensor b = TensorOf(3, 0.0F);
  ASSERT_TRUE(peers_.Receive("pserver-0", "a", a).ok());
  ASSERT_TRUE(peers_.Receive("pserver-0", "b", b).ok());
  ASSERT_TRUE(peers_.FetchBarrier({"pserver-0"}).ok());
  EXPECT_THAT(TakeCalls(), ElementsAre("Pull a[0+8] b[0+12]"));
  EXPECT_THAT(absl::MakeConstSpan(a.data<float>(), 2), ElementsAre(7, 7));
  EXPECT_THAT(absl::MakeConstSpan(b.data<float>(), 3), ElementsAre(7, 7, 7));
}

TEST_F(TrainerPeersTest, TakesNoParametersOfAnotherSize) {
  short_ = 1;
  graph::Tensor a = TensorOf(2, 0.0F);
  ASSERT_TRUE(peers_.Receive("pserver-0", "a", a).ok());
  const absl::Status fetched = peers_.FetchBarrier({"pserver-0"});
  EXPECT_THAT(std::string(fetched.message()), HasSubstr("pserver-0 came with 4 bytes instead of 8"));
}

TEST_F(TrainerPeersTest, SendsAMessageAgainWholeUntilItIsTaken) {
  TakeCalls();
  refuse_ = 2;
  ASSERT_TRUE(peers_.Send("pserver-0", "a", graph::Value(TensorOf(1, 1.0F))).ok());
  ASSERT_TRUE(peers_.Send("pserver-0", "b", graph::Value(TensorOf(1, 2.0F))).ok());
  ASSERT_TRUE(peers_.SendBarrier({"pserver-0"}).ok());
  const std::string push = "Push a[0+4] b[0+4]";
  EXPECT_THAT(TakeCalls(), ElementsAre(push, push, push, "Contribute"));
}

TEST_F(TrainerPeersTest, ForgetsWhatItHasNotSentWhenItJoinsAgain) {
  ASSERT_TRUE(peers_.Send("pserver-0", "a", graph::Value(TensorOf(1, 1.0F))).ok());
  ASSERT_TRUE(peers_.Join(1).ok());
  TakeCalls();
  ASSERT_TRUE(peers_.SendBarrier({"pserver-0"}).ok());
  EXPECT_THAT(TakeCalls(), ElementsAre());
}

}  // namespace
}  // namespace trainyard::ps
