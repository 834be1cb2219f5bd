#include "kv/etcd/etcd_server_codec.h"

#include <google/protobuf/text_format.h>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

using ::testing::HasSubstr;

template <typename Message>
Message Wire(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::string Shown(const absl::Status& status) {
  return StrCat(static_cast<int>(status.code()), " ", Message(status));
}

absl::Status Refusal(const std::string& txn) {
  return ServedTxn::Parse(Wire<etcdserverpb::TxnRequest>(txn)).status();
}

TEST(ToWireError, SpeaksAsEtcdDoesWhereClientsListen) {
  EXPECT_EQ(Shown(ToWireError(CompactedError(1, 5))),
            "11 etcdserver: mvcc: required revision has been compacted");
  EXPECT_EQ(Shown(ToWireError(FutureRevisionError(9, 5))),
            "11 etcdserver: mvcc: required revision is a future revision");
  EXPECT_EQ(Shown(ToWireError(LeaseNotFoundError(7))), "5 etcdserver: requested lease not found");
  EXPECT_EQ(Shown(ToWireError(absl::ResourceExhaustedError("full"))),
            "8 etcdserver: mvcc: database space exceeded");
  EXPECT_EQ(Shown(ToWireError(absl::UnavailableError("x"))), "14 etcdserver: no leader");
  EXPECT_EQ(Shown(ToWireError(absl::DataLossError("/f is damaged"))), "15 etcdserver: /f is damaged");
  const absl::Status own = NotServedWireError("that");
  EXPECT_EQ(ToWireError(own), own);
  EXPECT_TRUE(ToWireError(absl::OkStatus()).ok());
}

TEST(ToKeyRange, KnowsEtcdsTwoWaysOfNamingNoEnd) {
  const std::string zero(1, '\0');
  EXPECT_EQ(ToKeyRange("a", ""), KeyRange::Key("a"));
  EXPECT_EQ(ToKeyRange("a", "b"), KeyRange::Between("a", "b"));
  EXPECT_EQ(ToKeyRange("a", zero), KeyRange::From("a"));
  EXPECT_TRUE(ToKeyRange(zero, zero).Contains("anything"));
  EXPECT_TRUE(ToKeyRange("b", "a").Empty());
}

// Three keys: key, value, created, modified, version.
RangeResult Three() {
  return {.kvs = {{"a", "3", 5, 5, 1, 0}, {"b", "1", 2, 9, 4, 0}, {"c", "2", 3, 4, 2, 0}}, .revision = 9};
}

std::string Keys(const std::string& asked) {
  const auto response = ToProto(Three(), Wire<etcdserverpb::RangeRequest>(asked), std::nullopt);
  std::string keys;
  for (const auto& kv : response.kvs()) keys += kv.key();
  return StrCat(keys, response.more() ? "+" : "", " of ", response.count());
}

TEST(RangeAnswer, IsSortedFilteredAndCutAsAsked) {
  EXPECT_EQ(Keys(""), "abc of 3");
  EXPECT_EQ(Keys("sort_order: DESCEND"), "cba of 3");
  EXPECT_EQ(Keys("sort_target: CREATE"), "bca of 3") << "ascending unless told otherwise";
  EXPECT_EQ(Keys("sort_target: CREATE sort_order: DESCEND limit: 1"), "a+ of 3");
  EXPECT_EQ(Keys("sort_target: MOD sort_order: ASCEND limit: 2"), "ca+ of 3");
  EXPECT_EQ(Keys("sort_target: VERSION sort_order: DESCEND"), "bca of 3");
  EXPECT_EQ(Keys("sort_target: VALUE"), "bca of 3");
  EXPECT_EQ(Keys("min_mod_revision: 5 max_mod_revision: 8"), "a of 3");
  EXPECT_EQ(Keys("min_create_revision: 3"), "ac of 3");
  EXPECT_EQ(Keys("max_create_revision: 3 limit: 1"), "b+ of 3");
  EXPECT_EQ(Keys("count_only: true"), " of 3");
  EXPECT_EQ(Keys("limit: 3"), "abc of 3");
}

TEST(RangeAnswer, LeavesToTheStoreWhatTheStoreCanDo) {
  const auto store = [](const std::string& asked) {
    return ToStoreRange(Wire<etcdserverpb::RangeRequest>("key: 'a' range_end: 'z' " + asked));
  };
  EXPECT_EQ(store("limit: 2").limit, 2);
  EXPECT_EQ(store("limit: -2").limit, 0);
  EXPECT_EQ(store("limit: 2 sort_order: ASCEND").limit, 2);
  EXPECT_EQ(store("limit: 2 sort_order: DESCEND").limit, 0);
  EXPECT_EQ(store("limit: 2 min_mod_revision: 1").limit, 0);
  EXPECT_TRUE(store("count_only: true").keys_only);
  EXPECT_TRUE(store("keys_only: true").keys_only);
  EXPECT_FALSE(store("keys_only: true sort_target: VALUE").keys_only);
  EXPECT_EQ(store("revision: -1").revision, 0);
}

TEST(ServedTxn, AsksForWhatIsToBeReplacedAndCounted) {
  auto txn = ServedTxn::Parse(Wire<etcdserverpb::TxnRequest>(R"(
      compare { key: 'a' target: VALUE result: NOT_EQUAL value: 'x' }
      success { request_put { key: 'a' value: '1' prev_kv: true lease: 7 } }
      success { request_range { key: 'b' range_end: 'c' limit: 1 } }
      success { request_delete_range { key: 'd' prev_kv: true } }
      failure { request_range { key: 'a' count_only: true } })"));
  ASSERT_TRUE(txn.ok()) << txn.status();
  const TxnRequest request = txn->TakeRequest();
  EXPECT_EQ(request.compares.at(0).target, Compare::Target::kValue);
  EXPECT_EQ(request.compares.at(0).relation, Compare::Relation::kNotEqual);
  ASSERT_EQ(request.then.size(), 6u);
  EXPECT_EQ(std::get<PutOp>(request.then[1]).lease, 7);
  EXPECT_EQ(request.otherwise.size(), 1u);

  const auto answer =
      txn->Answer({.succeeded = true,
                   .revision = 8,
                   .results = {RangeResult{.kvs = {{.key = "a", .value = "0"}}}, PutResult{},
                               RangeResult{.kvs = {{.key = "b"}}, .more = true},
                               RangeResult{.kvs = {{.key = "b"}, {.key = "bb"}}},
                               RangeResult{.kvs = {{.key = "d", .value = "old"}}}, DeleteResult{1}}});
  EXPECT_EQ(answer.header().revision(), 8);
  ASSERT_EQ(answer.responses_size(), 3);
  EXPECT_EQ(answer.responses(0).response_put().prev_kv().value(), "0");
  EXPECT_EQ(answer.responses(1).response_range().count(), 2);
  EXPECT_TRUE(answer.responses(1).response_range().more());
  EXPECT_EQ(answer.responses(2).response_delete_range().deleted(), 1);
  EXPECT_EQ(answer.responses(2).response_delete_range().prev_kvs(0).value(), "old");
}

TEST(ServedTxn, KeepsToTheStoresLimitHoweverManyRangesHaveOne) {
  etcdserverpb::TxnRequest wire;
  for (std::size_t i = 0; i < kMaxTxnOps; ++i) {
    etcdserverpb::RangeRequest& range = *wire.add_success()->mutable_request_range();
    range.set_key("a");
    range.set_range_end("b");
    range.set_limit(1);
  }
  auto txn = ServedTxn::Parse(wire);
  ASSERT_TRUE(txn.ok()) << txn.status();
  EXPECT_EQ(txn->TakeRequest().then.size(), kMaxTxnOps);
}

TEST(ServedTxn, RefusesInEtcdsWords) {
  std::string many;
  for (std::size_t i = 0; i <= kMaxTxnOps; ++i)
    StrAppend(many, "success { request_put { key: 'k", i, "' } }");
  EXPECT_EQ(Shown(Refusal(many)), "3 etcdserver: too many operations in txn request");
  EXPECT_EQ(Shown(Refusal("success { request_put {} }")), "3 etcdserver: key is not provided");
  EXPECT_EQ(Shown(Refusal("success { request_range {} }")), "3 etcdserver: key is not provided");
  EXPECT_EQ(Shown(Refusal("failure { request_delete_range {} }")), "3 etcdserver: key is not provided");
  EXPECT_EQ(Shown(Refusal("compare {}")), "3 etcdserver: key is not provided");
  EXPECT_EQ(Shown(Refusal("success {}")), "3 etcdserver: key not found");
  EXPECT_EQ(Shown(Refusal("success { request_put { key: 'a' } } success { request_put { key: 'a' } }")),
            "3 etcdserver: duplicate key given in txn request");
  EXPECT_EQ(Shown(Refusal("failure { request_put { key: 'b' } } "
                          "failure { request_delete_range { key: 'a' range_end: 'c' } }")),
            "3 etcdserver: duplicate key given in txn request");
  EXPECT_EQ(Shown(Refusal(StrCat("success { request_put { key: 'a' value: '",
                                 std::string(kMaxRequestBytes, 'x'), "' } }"))),
            "3 etcdserver: request is too large");
}

TEST(ServedTxn, SaysWhatItDoesNotServe) {
  for (const char* txn :
       {"success { request_txn {} }", "compare { key: 'a' range_end: 'b' }",
        "compare { key: 'a' target: LEASE }", "success { request_put { key: 'a' ignore_value: true } }",
        "success { request_put { key: 'a' ignore_lease: true } }"}) {
    const absl::Status status = Refusal(txn);
    EXPECT_TRUE(absl::IsUnimplemented(status)) << txn;
    EXPECT_THAT(Message(status), HasSubstr("this store does not serve "));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal("compare { key: 'a' result: 9 }")));
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal("success { request_range { key: 'a' sort_order: 9 } }")));
}

}  // namespace
}  // namespace trainyard::kv
