// The server as clients of etcd's see it that are not ours; ours goes through the contract suite.
#include "kv/etcd/etcd_server.h"

#include <atomic>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/etcd/etcd.grpc.pb.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_store.h"
#include "kv/memory_store.h"

namespace trainyard::kv {
namespace {

namespace pb = etcdserverpb;
using ::testing::HasSubstr;
using WatchStream = grpc::ClientReaderWriter<pb::WatchRequest, pb::WatchResponse>;

class EtcdServerTest : public testing::Test {
 protected:
  void SetUp() override { Start({.patience = absl::Milliseconds(5)}); }

  void Start(EtcdServerOptions options) {
    server_ = nullptr;
    auto started = EtcdServer::Start(*store_, std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments);
    kv_ = pb::KV::NewStub(channel_);
    watch_ = pb::Watch::NewStub(channel_);
    lease_ = pb::Lease::NewStub(channel_);
  }

  static std::string Show(const grpc::Status& status) {
    return status.ok() ? "ok" : StrCat(static_cast<int>(status.error_code()), " ", status.error_message());
  }
  grpc::Status Range(const pb::RangeRequest& request, pb::RangeResponse& response) {
    grpc::ClientContext context;
    return kv_->Range(&context, request, &response);
  }
  grpc::Status Put(const pb::PutRequest& request, pb::PutResponse& response) {
    grpc::ClientContext context;
    return kv_->Put(&context, request, &response);
  }
  grpc::Status Put(const std::string& key, const std::string& value) {
    pb::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    pb::PutResponse response;
    return Put(request, response);
  }
  static void Create(WatchStream& stream, const std::string& key, bool prev_kv = false) {
    pb::WatchRequest request;
    request.mutable_create_request()->set_key(key);
    request.mutable_create_request()->set_prev_kv(prev_kv);
    ASSERT_TRUE(stream.Write(request));
    pb::WatchResponse response;
    ASSERT_TRUE(stream.Read(&response));
    ASSERT_TRUE(response.created());
  }

  const std::unique_ptr<LocalStore> store_ = NewMemoryStore(Clock::System());
  std::unique_ptr<EtcdServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::KV::Stub> kv_;
  std::unique_ptr<pb::Watch::Stub> watch_;
  std::unique_ptr<pb::Lease::Stub> lease_;
};

TEST_F(EtcdServerTest, CountsWhatALimitLeavesOut) {
  for (const char* key : {"a/1", "a/2", "a/3"}) ASSERT_TRUE(Put(key, "x").ok());
  pb::RangeRequest request;
  request.set_key("a/");
  request.set_range_end("a0");
  request.set_limit(2);
  pb::RangeResponse response;
  ASSERT_EQ(Show(Range(request, response)), "ok");
  EXPECT_EQ(response.kvs_size(), 2);
  EXPECT_TRUE(response.more());
  EXPECT_EQ(response.count(), 3);
  EXPECT_EQ(response.header().revision(), 4);
  EXPECT_NE(response.header().cluster_id(), 0u);
  request.set_revision(2);
  ASSERT_EQ(Show(Range(request, response)), "ok");
  EXPECT_EQ(response.count(), 1) << "as of the revision that was asked for";
}

TEST_F(EtcdServerTest, TellsWhatAPutAndADeleteReplace) {
  pb::PutRequest put;
  put.set_key("a");
  put.set_value("1");
  put.set_prev_kv(true);
  pb::PutResponse answer;
  ASSERT_EQ(Show(Put(put, answer)), "ok");
  EXPECT_FALSE(answer.has_prev_kv());
  ASSERT_EQ(Show(Put(put, answer)), "ok");
  EXPECT_EQ(answer.prev_kv().version(), 1);
  pb::DeleteRangeRequest del;
  del.set_key("a");
  del.set_prev_kv(true);
  pb::DeleteRangeResponse deleted;
  grpc::ClientContext context;
  ASSERT_TRUE(kv_->DeleteRange(&context, del, &deleted).ok());
  EXPECT_EQ(deleted.deleted(), 1);
  EXPECT_EQ(deleted.prev_kvs(0).version(), 2);
  EXPECT_EQ(deleted.header().revision(), 4);
}

TEST_F(EtcdServerTest, RefusesInEtcdsWords) {
  pb::RangeRequest range;
  pb::RangeResponse ranged;
  EXPECT_EQ(Show(Range(range, ranged)), "3 etcdserver: key is not provided");
  range.set_key("a");
  range.set_revision(99);
  EXPECT_EQ(Show(Range(range, ranged)), "11 etcdserver: mvcc: required revision is a future revision");
  pb::PutRequest put;
  put.set_key("a");
  put.set_lease(7);
  pb::PutResponse answer;
  EXPECT_EQ(Show(Put(put, answer)), "5 etcdserver: requested lease not found");
  pb::CompactionRequest compaction;
  compaction.set_revision(99);
  pb::CompactionResponse compacted;
  grpc::ClientContext first;
  EXPECT_EQ(Show(kv_->Compact(&first, compaction, &compacted)),
            "11 etcdserver: mvcc: required revision is a future revision");
  pb::LeaseGrantRequest grant;
  pb::LeaseGrantResponse granted;
  grant.set_ttl(9'000'000'001);
  grpc::ClientContext second;
  EXPECT_EQ(Show(lease_->LeaseGrant(&second, grant, &granted)), "11 etcdserver: too large lease TTL");
  grant.set_ttl(5);
  grant.set_id(5);
  grpc::ClientContext third;
  EXPECT_EQ(lease_->LeaseGrant(&third, grant, &granted).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Show(Put("a", std::string(kMaxRequestBytes, 'x'))), "3 etcdserver: request is too large");
  EXPECT_EQ(Put("a", std::string(4 * kMaxRequestBytes, 'x')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(EtcdServerTest, KeepsLeasesAliveOverOneStreamAndEndsItWithTheClient) {
  pb::LeaseGrantRequest grant;  // without a time: the shortest
  pb::LeaseGrantResponse granted;
  grpc::ClientContext grant_context;
  ASSERT_TRUE(lease_->LeaseGrant(&grant_context, grant, &granted).ok());
  EXPECT_EQ(granted.ttl(), 1);
  grpc::ClientContext context;
  const auto stream = lease_->LeaseKeepAlive(&context);
  pb::LeaseKeepAliveRequest request;
  pb::LeaseKeepAliveResponse response;
  for (const std::int64_t id : {granted.id(), std::int64_t{12345}}) {
    request.set_id(id);
    ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
    EXPECT_EQ(response.id(), id);
    EXPECT_EQ(response.ttl(), id == granted.id() ? 1 : 0) << "0: there is no such lease";
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EtcdServerTest, GoesOnWithWatchesWhenTheClientHasNoMoreRequests) {
  grpc::ClientContext context;
  const auto stream = watch_->Watch(&context);
  Create(*stream, "a");
  stream->WritesDone();
  ASSERT_TRUE(Put("a", "1").ok());
  pb::WatchResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.events(0).kv().value(), "1");
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(EtcdServerTest, LetsASlowWatchHoldUpNobodyAndLeavesNothingOutForIt) {
  constexpr int kPuts = 100;  // more than all buffers between us and a client that does not read
  grpc::ClientContext slow_context;
  grpc::ClientContext quick_context;
  const auto slow = watch_->Watch(&slow_context);
  const auto quick = watch_->Watch(&quick_context);
  Create(*slow, "a", /*prev_kv=*/true);
  Create(*quick, "a");
  std::thread writer([&] {
    const std::string padding(kMaxRequestBytes / 2, 'x');
    for (int i = 0; i < kPuts; ++i) EXPECT_TRUE(Put("a", StrCat(i, " ", padding)).ok());
  });
  const auto read_all = [&](WatchStream& stream) {
    pb::WatchResponse response;
    for (int next = 0; next < kPuts;) {
      ASSERT_TRUE(stream.Read(&response));
      for (const auto& event : response.events()) {
        ASSERT_TRUE(event.kv().value().starts_with(StrCat(next, " ")));
        ++next;
      }
    }
  };
  read_all(*quick);
  writer.join();
  read_all(*slow);
}

TEST_F(EtcdServerTest, LetsInOnlyWhoHasTheToken) {
  Start({.token = "secret"});
  const auto ask = [&](const char* name, const char* value) {
    grpc::ClientContext context;
    if (name != nullptr) context.AddMetadata(name, value);
    pb::RangeRequest request;
    request.set_key("a");
    pb::RangeResponse response;
    return Show(kv_->Range(&context, request, &response));
  };
  const std::string refusal = "16 etcdserver: invalid auth token";
  EXPECT_EQ(ask(nullptr, nullptr), refusal);
  EXPECT_EQ(ask("token", "wrong"), refusal);
  EXPECT_EQ(ask("token", "secre"), refusal);
  EXPECT_EQ(ask("authorization", "Basic secret"), refusal);
  EXPECT_EQ(ask("token", "secret"), "ok");
  EXPECT_EQ(ask("authorization", "secret"), "ok");
  EXPECT_EQ(ask("authorization", "Bearer secret"), "ok");
  grpc::ClientContext context;
  EXPECT_EQ(Show(watch_->Watch(&context)->Finish()), refusal);
}

TEST_F(EtcdServerTest, TellsOurClientToCheckItsToken) {
  Start({.token = "secret"});
  for (const char* token : {"", "wrong"}) {
    const auto store = OpenEtcdStore({.endpoints = {server_->address()}, .token = token});
    ASSERT_TRUE(store.ok()) << store.status();
    for (const absl::Status& status :
         {(*store)->Get("a").status(), (*store)->Put("a", "1").status(), (*store)->KeepAlive(1).status(),
          (*store)->Watch({.range = KeyRange::Key("a")}).status()}) {
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      EXPECT_THAT(Message(status), HasSubstr("wants a token, and this is not it: check ?token-file=FILE"));
    }
  }
}

TEST_F(EtcdServerTest, EndsPromptlyThoughClientsWatchAndDoNotRead) {
  grpc::ClientContext idle_context;
  grpc::ClientContext stuck_context;
  grpc::ClientContext keeping_context;
  const auto idle = watch_->Watch(&idle_context);
  const auto stuck = watch_->Watch(&stuck_context);
  const auto keeping = lease_->LeaseKeepAlive(&keeping_context);
  Create(*idle, "b");
  Create(*stuck, "a");
  const std::string padding(kMaxRequestBytes / 2, 'x');
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Put("a", padding).ok());
  server_ = nullptr;  // or this test never ends
  EXPECT_EQ(idle->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  pb::WatchResponse left;  // gRPC gives the status only behind all that had come
  while (stuck->Read(&left)) {
  }
  EXPECT_FALSE(stuck->Finish().ok());
  EXPECT_FALSE(keeping->Finish().ok());
  EXPECT_FALSE(Put("a", "1").ok());
}

TEST_F(EtcdServerTest, ServesManyAtOnceWhileStreamsComeAndGo) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 50;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        grpc::ClientContext context;
        const auto stream = watch_->Watch(&context);
        Create(*stream, StrCat("k", t));
        if (!Put(StrCat("k", t), std::to_string(i)).ok()) ++failures;
        pb::WatchResponse response;
        if (!stream->Read(&response) || response.events(0).kv().value() != std::to_string(i)) ++failures;
        context.TryCancel();
        stream->Finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(EtcdServerTest, SaysWhoItIs) {
  grpc::ClientContext status_context;
  pb::StatusResponse status;
  ASSERT_TRUE(pb::Maintenance::NewStub(channel_)->Status(&status_context, {}, &status).ok());
  EXPECT_EQ(status.version(), kServedEtcdVersion);
  EXPECT_EQ(status.leader(), status.header().member_id());
  grpc::ClientContext list_context;
  pb::MemberListResponse members;
  ASSERT_TRUE(pb::Cluster::NewStub(channel_)->MemberList(&list_context, {}, &members).ok());
  EXPECT_EQ(members.members(0).clienturls(0), StrCat("http://", server_->address()));
  grpc::ClientContext auth_context;
  pb::AuthenticateResponse token;
  EXPECT_EQ(pb::Auth::NewStub(channel_)->Authenticate(&auth_context, {}, &token).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(EtcdServerTest, SaysWhyItCannotListen) {
  const absl::Status taken = EtcdServer::Start(*store_, {.address = server_->address()}).status();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(Message(taken), HasSubstr(StrCat("cannot listen at ", server_->address())));
  EXPECT_TRUE(absl::IsInvalidArgument(EtcdServer::Start(*store_, {.address = "nowhere"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(EtcdServer::Start(*store_, {.token = "two words"}).status()));
}

}  // namespace
}  // namespace trainyard::kv
