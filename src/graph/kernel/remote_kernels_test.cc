#include "graph/kernel/kernel_testing.h"
#include "gtest/gtest.h"

namespace trainyard::graph {
namespace {

// Writes down what it is asked for, and answers with the number of the call.
class Listening final : public Peers {
 public:
  absl::Status Send(std::string_view graph, const std::string& name, const Value& value) override {
    return Tell("send ", name, " ", Print(TypeOf(value)), " to ", graph);
  }
  absl::Status SendBarrier(const Strings& graphs) override { return Tell("sent ", graphs.size()); }
  absl::Status Receive(std::string_view graph, const std::string& name, Tensor& into) override {
    into.data<float>()[0] = static_cast<float>(told.size());
    return Tell("receive ", name, " ", Print(into.dims()), " from ", graph);
  }
  absl::Status FetchBarrier(const Strings& graphs) override { return Tell("fetched ", graphs.size()); }
  absl::Status Prefetch(std::string_view graph, const std::string& table, const Tensor& ids,
                        Tensor& rows) override {
    rows.Resize(DataType::kFloat32, {ids.count(), 2});
    return Tell("rows ", Print(ids.dims()), " of ", table, " from ", graph);
  }

  Strings told;
  absl::Status answer;

 private:
  template <typename... Parts>
  absl::Status Tell(const Parts&... parts) {
    told.push_back(StrCat(parts...));
    return answer;
  }
};

const Strings kGraphs = {"ps-0", "ps-1"};

OpCall Send() {
  return {.type = "send",
          .in = {{"X", {F32({2}, {1, 2}), Sparse(9, {1}, F32({1, 1}, {1}))}}},
          .attrs = {{"graphs", kGraphs}}};
}
OpCall Recv() {
  return {.type = "recv",
          .in = {{"Into", {F32({2}, {0, 0}), F32({1}, {0})}}},
          .attrs = {{"graphs", kGraphs}},
          .outs = {{"Out", 2}},
          .in_place = {{"Out", "Into"}}};
}
OpCall Barrier(std::string type) { return {.type = std::move(type), .attrs = {{"graphs", kGraphs}}}; }
OpCall Prefetch() {
  return {.type = "prefetch",
          .in = {{"Ids", {I64({3}, {1, 2, 3}), I64({0}, {})}}},
          .attrs = {{"graphs", kGraphs}, {"table", std::string("emb")}, {"width", std::int64_t{2}}},
          .outs = {{"Out", 2}}};
}

std::vector<OpCall> All() {
  return {Send(), Barrier("send_barrier"), Recv(), Barrier("fetch_barrier"), Prefetch()};
}

TEST(RemoteKernels, AskThePeersThatTheyName) {
  Listening peers;
  for (const OpCall& call : All()) {
    const absl::Status status = RunOp(call, {.peers = &peers}).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(peers.told, (Strings{"send X f32[2] to ps-0", "send X.1 sparse f32[9, 1] to ps-1", "sent 2",
                                 "receive Into [2] from ps-0", "receive Into.1 [1] from ps-1", "fetched 2",
                                 "rows [3] of emb from ps-0", "rows [0] of emb from ps-1"}));
}

TEST(RemoteKernels, ReceiveIntoTheVariablesThemselves) {
  Listening peers;
  const auto results = RunOp(Recv(), {.peers = &peers});
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectNear(std::get<Tensor>(results->at("Out")[1]), {1}, 0);
}

TEST(RemoteKernels, WaitForWhatTheyReceiveIfTheyAreToldTo) {
  Listening peers;
  OpCall call = Recv();
  call.attrs["wait"] = true;
  ASSERT_TRUE(RunOp(call, {.peers = &peers}).ok());
  EXPECT_EQ(peers.told.back(), "fetched 2");
}

TEST(RemoteKernels, SayThatThereAreNoPeers) {
  for (const OpCall& call : All()) EXPECT_TRUE(absl::IsFailedPrecondition(RunOp(call).status())) << call.type;
}

TEST(RemoteKernels, PassOnWhatPeersAnswer) {
  Listening peers;
  peers.answer = absl::UnavailableError("gone");
  for (const OpCall& call : All()) {
    peers.told.clear();
    EXPECT_TRUE(absl::IsUnavailable(RunOp(call, {.peers = &peers}).status())) << call.type;
    EXPECT_EQ(peers.told.size(), 1u) << "it went on after an error";
  }
}

TEST(RemoteKernels, ReceiveNothingSparse) {
  Listening peers;
  const OpCall call = {.type = "recv",
                       .in = {{"Into", {Sparse(9, {1}, F32({1, 1}, {1}))}}},
                       .attrs = {{"graphs", Strings{"ps-0"}}},
                       .in_place = {{"Out", "Into"}}};
  EXPECT_TRUE(absl::IsInvalidArgument(RunOp(call, {.peers = &peers}).status()));
}

}  // namespace
}  // namespace trainyard::graph
