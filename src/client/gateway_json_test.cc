#include "client/gateway_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::client {
namespace {

using kv::KeyRange;

Document Json(std::string_view text) { return ParseJson(text).value(); }

TEST(GatewayJson, AsksForRangesAsEtcdUnderstandsThem) {
  EXPECT_EQ(PrintRange({.range = KeyRange::Key("a")}), R"({"key":"YQ=="})");
  EXPECT_EQ(PrintRange({.range = KeyRange::Prefix("a/")}), R"({"key":"YS8=","range_end":"YTA="})");
  EXPECT_EQ(PrintRange({.range = KeyRange::From("a"), .limit = 5, .revision = 7, .keys_only = true}),
            R"({"key":"YQ==","range_end":"AA==","limit":"5","revision":"7","keys_only":true})");
  EXPECT_EQ(PrintRange({.range = KeyRange::Prefix("")}), R"({"key":"AA==","range_end":"AA=="})");
  EXPECT_EQ(PrintRange({.range = KeyRange::Between("b", "a")}), R"({"key":"Yg==","range_end":"YQ=="})")
      << "an empty range stays one";
}

TEST(GatewayJson, AsksForTransactions) {
  const kv::TxnRequest request{.compares = {kv::ValueIs("k", ""), kv::Absent("k"), kv::VersionIs("k", 3)},
                               .then = {kv::PutOp{"k", "v", 9}, kv::DeleteOp{KeyRange::Key("d")}},
                               .otherwise = {kv::GetOp{{.range = KeyRange::Key("g")}}}};
  EXPECT_EQ(Json(PrintTxn(request)), Json(R"({"compare":[
      {"key":"aw==","result":"EQUAL","target":"VALUE","value":""},
      {"key":"aw==","result":"EQUAL","target":"CREATE","create_revision":"0"},
      {"key":"aw==","result":"EQUAL","target":"VERSION","version":"3"}],
    "success":[{"request_put":{"key":"aw==","value":"dg==","lease":"9"}},
               {"request_delete_range":{"key":"ZA=="}}],
    "failure":[{"request_range":{"key":"Zw=="}}]})"));
}

TEST(GatewayJson, AsksForWatchesAndAlwaysForTheirProgress) {
  EXPECT_EQ(PrintWatch({.range = KeyRange::Key("a")}, 0),
            R"({"create_request":{"key":"YQ==","progress_notify":true}})");
  EXPECT_EQ(
      PrintWatch({.range = KeyRange::Key("a"), .with_previous = true}, 12),
      R"({"create_request":{"key":"YQ==","start_revision":"12","progress_notify":true,"prev_kv":true}})");
}

TEST(GatewayJson, ReadsNumbersAsTextsAndAsNumbers) {
  const Document document = Json(R"({"a":"9223372036854775807","b":5,"c":"x"})");
  EXPECT_EQ(NumberAt(document, {"a"}), INT64_MAX);
  EXPECT_EQ(NumberAt(document, {"b"}), 5);
  EXPECT_EQ(NumberAt(document, {"c"}), 0);
  EXPECT_EQ(NumberAt(document, {"d"}), 0);
}

TEST(GatewayJson, ReadsARange) {
  const auto range = ReadRange(Json(R"({"header":{"revision":"8"},"more":true,"count":"2","kvs":[
      {"key":"YQ==","create_revision":"2","mod_revision":"3","version":"2","value":"/w==","lease":"7"},
      {"key":"Yg==","create_revision":"4","mod_revision":"4","version":"1"}]})"));
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(*range,
            (kv::RangeResult{
                .kvs = {{"a", "\xff", 2, 3, 2, 7}, {"b", "", 4, 4, 1, 0}}, .more = true, .revision = 8}));
}

TEST(GatewayJson, ReadsATransaction) {
  const auto txn = ReadTxn(Json(R"({"header":{"revision":"9"},"succeeded":true,"responses":[
      {"response_put":{"header":{"revision":"9"}}},
      {"response_delete_range":{"deleted":"3"}},
      {"response_delete_range":{}},
      {"response_range":{"kvs":[{"key":"YQ==","mod_revision":"9","create_revision":"9","version":"1"}]}}]})"));
  ASSERT_TRUE(txn.ok()) << txn.status();
  EXPECT_TRUE(txn->succeeded);
  EXPECT_EQ(txn->revision, 9);
  ASSERT_EQ(txn->results.size(), 4U);
  EXPECT_EQ(std::get<kv::DeleteResult>(txn->results[1]).deleted, 3);
  EXPECT_EQ(std::get<kv::DeleteResult>(txn->results[2]).deleted, 0);
  EXPECT_EQ(std::get<kv::RangeResult>(txn->results[3]).revision, 9);
  EXPECT_EQ(std::get<kv::RangeResult>(txn->results[3]).kvs.at(0).key, "a");
  EXPECT_FALSE(ReadTxn(Json(R"({"header":{"revision":"9"}})"))->succeeded) << "what is false is left out";
}

TEST(GatewayJson, ReadsWhatAWatchIsTold) {
  const auto events = ReadWatchAnswer(Json(R"({"header":{"revision":"9"},"events":[
      {"kv":{"key":"YQ==","mod_revision":"8","create_revision":"8","version":"1","value":"MQ=="}},
      {"type":"DELETE","kv":{"key":"YQ==","mod_revision":"9"},"prev_kv":{"key":"YQ==","value":"MQ=="}}]})"));
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->events.size(), 2U);
  EXPECT_EQ(events->events[0].type, kv::WatchEvent::Type::kPut);
  EXPECT_EQ(events->events[0].kv.value, "1");
  EXPECT_EQ(events->events[0].previous, std::nullopt);
  EXPECT_EQ(events->events[1].type, kv::WatchEvent::Type::kDelete);
  EXPECT_EQ(events->events[1].previous->value, "1");

  const auto ended = ReadWatchAnswer(Json(R"({"header":{},"canceled":true,"compact_revision":"5"})"));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->canceled);
  EXPECT_EQ(ended->compacted, 5);
  EXPECT_TRUE(ReadWatchAnswer(Json(R"({"header":{"revision":"3"},"created":true})"))->created);
}

TEST(GatewayJson, RefusesWhatNoEtcdSays) {
  for (const char* text : {"{}", "[]", R"({"header":{"revision":"x"}})",
                           R"({"header":{"revision":"8"},"kvs":[{"key":"***"}]})"}) {
    EXPECT_EQ(ReadRange(Json(text)).status().code(), absl::StatusCode::kInternal) << text;
  }
  EXPECT_FALSE(ReadTxn(Json("{}")).ok());
  EXPECT_FALSE(ReadWatchAnswer(Json("{}")).ok());
  EXPECT_FALSE(ReadWatchAnswer(Json(R"({"header":{"revision":"8"},"events":[{}]})")).ok());
}

}  // namespace
}  // namespace trainyard::client
