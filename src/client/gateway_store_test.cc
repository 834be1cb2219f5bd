#include "client/gateway_store.h"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

// A body that a test writes while it is read.
class ScriptedBody : public kube::BodyReader {
 public:
  absl::StatusOr<std::string> Read(absl::Duration timeout) override {
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    MutexLock lock(mu_);
    while (pieces_.empty() && !cancelled_) {
      if (!changed_.WaitUntil(mu_, deadline)) return absl::DeadlineExceededError("nothing");
    }
    if (cancelled_) return absl::CancelledError("cancelled");
    absl::StatusOr<std::string> next = std::move(pieces_.front());
    pieces_.pop_front();
    return next;
  }
  void Cancel() override {
    MutexLock lock(mu_);
    cancelled_ = true;
    changed_.SignalAll();
  }
  void Write(absl::StatusOr<std::string> piece) {
    MutexLock lock(mu_);
    pieces_.push_back(std::move(piece));
    changed_.SignalAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<absl::StatusOr<std::string>> pieces_ TY_GUARDED_BY(mu_);
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
};

// Answers what a test has laid out, in order, and keeps what it was asked.
class Script {
 public:
  void Answer(absl::StatusOr<kube::Response> answer) {
    MutexLock lock(mu_);
    answers_.push_back(std::move(answer));
  }
  void Answer(int code, std::string body) { Answer(kube::Response{.code = code, .body = std::move(body)}); }
  std::shared_ptr<ScriptedBody> Stream(std::vector<std::string> pieces) {
    auto body = std::make_shared<ScriptedBody>();
    for (std::string& piece : pieces) body->Write(std::move(piece));
    MutexLock lock(mu_);
    streams_.push_back(body);
    changed_.SignalAll();
    return body;
  }
  std::vector<std::string> Asked() {
    MutexLock lock(mu_);
    return asked_;
  }

  absl::StatusOr<kube::Response> Take(const kube::Request& request) {
    MutexLock lock(mu_);
    asked_.push_back(StrCat(request.method, " ", request.target, " ", request.body));
    if (answers_.empty()) return absl::UnavailableError("nobody is there");
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  std::shared_ptr<ScriptedBody> TakeStream(const kube::Request& request) {
    MutexLock lock(mu_);
    asked_.push_back(StrCat(request.method, " ", request.target, " ", request.body));
    if (streams_.empty()) return nullptr;
    auto stream = std::move(streams_.front());
    streams_.pop_front();
    return stream;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<absl::StatusOr<kube::Response>> answers_ TY_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<ScriptedBody>> streams_ TY_GUARDED_BY(mu_);
  std::vector<std::string> asked_ TY_GUARDED_BY(mu_);
};

class SharedBody final : public kube::BodyReader {
 public:
  explicit SharedBody(std::shared_ptr<ScriptedBody> body) : body_(std::move(body)) {}
  absl::StatusOr<std::string> Read(absl::Duration timeout) override { return body_->Read(timeout); }
  void Cancel() override { body_->Cancel(); }

 private:
  const std::shared_ptr<ScriptedBody> body_;
};

class ScriptedTransport final : public kube::Transport {
 public:
  explicit ScriptedTransport(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override {
    std::vector<absl::StatusOr<kube::Response>> answers;
    for (const kube::Request& request : requests) answers.push_back(script_->Take(request));
    return answers;
  }
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override {
    auto stream = script_->TakeStream(request);
    if (stream == nullptr) return absl::UnavailableError("nobody is there");
    kube::OpenedResponse opened;
    opened.body = std::make_unique<SharedBody>(std::move(stream));
    return opened;
  }
  std::string Server() const override { return "http://store"; }

 private:
  const std::shared_ptr<Script> script_;
};

constexpr char kDone[] = R"({"header":{"revision":"5"}})";

std::string Created(int revision) {
  return StrCat(R"({"result":{"header":{"revision":")", revision, "\"},\"created\":true}}\n");
}
std::string Put(int revision) {
  return StrCat(R"({"result":{"header":{"revision":")", revision,
                R"("},"events":[{"kv":{"key":"YQ==","mod_revision":")", revision, "\"}}]}}\n");
}
std::string Progress(int revision) {
  return StrCat(R"({"result":{"header":{"revision":")", revision, "\"}}}\n");
}

class GatewayStores : public testing::Test {
 protected:
  // After the first answer an outage counts as one that passes.
  void GetAnswered() {
    script_->Answer(200, kDone);
    ASSERT_TRUE(store_->Get("a").ok());
  }
  // The first revision that each watch so far has asked for.
  std::vector<std::string> Starts() {
    std::vector<std::string> starts;
    for (const std::string& asked : script_->Asked()) {
      if (asked.find("/v3/watch") == std::string::npos) continue;
      const std::size_t at = asked.find("start_revision");
      starts.push_back(at == std::string::npos ? "next"
                                               : asked.substr(at + 17, asked.find('"', at + 17) - at - 17));
    }
    return starts;
  }
  static kv::Revision NextRevision(kv::Watcher& watcher) {
    const auto batch = watcher.Next(kPatience);
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? batch->revision : 0;
  }

  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::unique_ptr<kv::Store> store_ =
      NewGatewayStore(std::make_unique<ScriptedTransport>(script_), "/base", absl::Seconds(5));
};

TEST_F(GatewayStores, AskUnderTheirPath) {
  script_->Answer(200, kDone);
  EXPECT_EQ(store_->Get("a")->revision, 5);
  EXPECT_THAT(script_->Asked(), ElementsAre(R"(POST /base/v3/kv/range {"key":"YQ=="})"));
  EXPECT_EQ(store_->Url(), "http://store/base");
  EXPECT_EQ(ServiceProxyPath("ns", "store", "http"), "/api/v1/namespaces/ns/services/store:http/proxy");
}

TEST_F(GatewayStores, SayAtOnceThatNobodyHasEverBeenThere) {
  const absl::Status status = store_->Put("a", "1").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the store at http://store/base cannot be reached"));
  EXPECT_EQ(script_->Asked().size(), 1U);
  EXPECT_TRUE(absl::IsUnavailable(store_->Watch({.range = kv::KeyRange::Key("a")}).status()));
}

TEST_F(GatewayStores, RepeatAWriteThatWasCertainlyNotMade) {
  GetAnswered();
  script_->Answer(absl::UnavailableError("no connection"));
  script_->Answer(200, kDone);
  EXPECT_TRUE(store_->Put("a", "1").ok());
}

TEST_F(GatewayStores, NeverRepeatAWriteThatMayHaveBeenMade) {
  GetAnswered();
  for (const absl::Status& broken :
       {absl::UnknownError("it broke"), absl::DeadlineExceededError("it was slow")}) {
    script_->Answer(broken);
    const std::size_t before = script_->Asked().size();
    const absl::Status status = store_->Put("a", "1").status();
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
    EXPECT_EQ(script_->Asked().size(), before + 1);
  }
}

TEST_F(GatewayStores, RepeatAReadWhateverBecameOfIt) {
  GetAnswered();
  script_->Answer(absl::UnknownError("it broke"));
  script_->Answer(502, "<html>");
  script_->Answer(200, kDone);
  EXPECT_TRUE(store_->Get("a").ok());
}

TEST_F(GatewayStores, FinishTransactionsThatNobodyWaitsFor) {
  GetAnswered();
  script_->Answer(200, R"({"header":{"revision":"6"},"succeeded":true})");
  script_->Answer(absl::UnavailableError("no connection"));
  script_->Answer(absl::UnknownError("it broke"));
  Mutex mu;
  CondVar changed;
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 2; ++i) {
    store_->TxnAsync({.then = {kv::PutOp{"a", "1"}}}, [&](const absl::StatusOr<kv::TxnResult>& result) {
      MutexLock lock(mu);
      codes.push_back(result.status().code());
      changed.SignalAll();
    });
  }
  MutexLock lock(mu);
  while (codes.size() < 2) changed.Wait(mu);
  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kUnknown));
}

TEST_F(GatewayStores, TellALeaseThatEndedByItsMissingTime) {
  script_->Answer(200, "{\"result\":{\"header\":{\"revision\":\"5\"},\"ID\":\"7\",\"TTL\":\"10\"}}\n");
  EXPECT_EQ(*store_->KeepAlive(7), absl::Seconds(10));
  script_->Answer(200, "{\"result\":{\"header\":{\"revision\":\"5\"},\"ID\":\"7\"}}\n");
  EXPECT_TRUE(absl::IsNotFound(store_->KeepAlive(7).status()));
  script_->Answer(200, "{\"error\":{\"grpc_code\":14,\"message\":\"gone\"}}\n");
  EXPECT_TRUE(absl::IsUnavailable(store_->KeepAlive(7).status())) << "not as if the lease had ended";
}

TEST_F(GatewayStores, SayThatAnAnswerIsNoStores) {
  script_->Answer(200, "<html>hello</html>");
  EXPECT_EQ(store_->Get("a").status().code(), absl::StatusCode::kInternal);
}

TEST_F(GatewayStores, GoOnWithAWatchFromWhereItBroke) {
  const auto first = script_->Stream({Created(4), Put(5), Put(6)});
  const auto second = script_->Stream({Created(7), Put(7)});
  const auto third = script_->Stream({Created(9)});
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_EQ(NextRevision(**watcher), 5);
  EXPECT_EQ(NextRevision(**watcher), 6);
  first->Write(absl::UnavailableError("the connection broke"));
  EXPECT_EQ(NextRevision(**watcher), 7);
  second->Write(Progress(8));
  second->Write("");  // the end, as a server that is stopped says it
  third->Write(Put(9));
  EXPECT_EQ(NextRevision(**watcher), 9);
  EXPECT_THAT(Starts(), ElementsAre("next", "7", "9")) << "progress is a place to go on from too";
}

TEST_F(GatewayStores, TellProgressOnlyToWhoAsksForIt) {
  const auto quiet = script_->Stream({Created(4), Progress(4), Put(5)});
  const auto silent = store_->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_EQ(NextRevision(**silent), 5);
  const auto stream = script_->Stream({Created(4), Progress(4), Progress(4), Progress(6)});
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a"), .progress = true});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_EQ(NextRevision(**watcher), 4);
  EXPECT_EQ(NextRevision(**watcher), 4) << "also where nothing has happened at all";
  EXPECT_EQ(NextRevision(**watcher), 6);
}

TEST_F(GatewayStores, WaitForAStartThatIsStillToCome) {
  const auto stream = script_->Stream({Created(4), Progress(5), Put(9)});
  const auto watcher =
      store_->Watch({.range = kv::KeyRange::Key("a"), .start_revision = 8, .progress = true});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_EQ(NextRevision(**watcher), 9) << "progress before it says nothing";
}

TEST_F(GatewayStores, ReadAWatchHoweverItsLinesAreCut) {
  const std::string text = StrCat(Created(4), Put(5), "\n", Put(6));
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  const auto stream = script_->Stream(pieces);
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  EXPECT_EQ(NextRevision(**watcher), 5);
  EXPECT_EQ(NextRevision(**watcher), 6);
}

TEST_F(GatewayStores, EndAWatchWhoseHistoryIsGone) {
  const auto stream = script_->Stream(
      {Created(9), "{\"result\":{\"header\":{},\"canceled\":true,\"compact_revision\":\"8\"}}\n"});
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a"), .start_revision = 2});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  const absl::Status status = (*watcher)->Next(kPatience).status();
  EXPECT_TRUE(kv::IsCompacted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the oldest kept is 8"));
}

TEST_F(GatewayStores, EndAWatchThatIsNotAllowed) {
  const auto stream = script_->Stream({Created(9), Put(10)});
  const auto denied =
      script_->Stream({"{\"result\":{\"header\":{},\"canceled\":true,\"cancel_reason\":\"etcdserver: "
                       "permission denied\"}}\n"});
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  stream->Write("");
  EXPECT_EQ(NextRevision(**watcher), 10) << "what came before is shown first";
  EXPECT_TRUE(absl::IsPermissionDenied((*watcher)->Next(kPatience).status()));
}

TEST_F(GatewayStores, EndAWatchWhileItConnects) {
  GetAnswered();
  const auto stream = script_->Stream({Created(9)});
  const auto watcher = store_->Watch({.range = kv::KeyRange::Key("a")});
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  stream->Write(absl::UnavailableError("the connection broke"));  // and there is no other
  (*watcher)->Cancel();
  EXPECT_TRUE(absl::IsCancelled((*watcher)->Next(kPatience).status()));
}

TEST(OpenGatewayStore, RefusesATokenThatCannotBeSent) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      OpenGatewayStore({.server = {.server = "http://127.0.0.1:1"}, .token = "a\nb"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenGatewayStore({.server = {.server = "no url"}}).status()));
}

}  // namespace
}  // namespace trainyard::client
