#include "apiserver/stored_object.h"

#include <gtest/gtest.h>

namespace trainyard::apiserver {
namespace {

TEST(StoredObject, LeavesOutWhatDependsOnHowItIsAskedFor) {
  const Document object = *ParseJson(
      R"({"kind":"Pod","apiVersion":"v1","spec":{"a":1},"metadata":{"name":"x","resourceVersion":"7","uid":"u"}})");
  EXPECT_EQ(EncodeStored(object), R"({"metadata":{"name":"x","uid":"u"},"spec":{"a":1}})");
}

TEST(StoredObject, IsShownWithTheVersionThatItWasAskedForIn) {
  const std::string stored = R"({"metadata":{"name":"x"},"spec":{"a":1}})";
  EXPECT_EQ(
      ShowStored("g/v2", "Thing", stored, 42),
      R"({"kind":"Thing","apiVersion":"g/v2","metadata":{"resourceVersion":"42","name":"x"},"spec":{"a":1}})");
}

TEST(StoredObject, IsValidJsonWhateverItLacks) {
  for (const char* text :
       {"{}", R"({"metadata":{}})", R"({"spec":1})", R"({"metadata":{"resourceVersion":"3"},"a":[]})"}) {
    const std::string stored = EncodeStored(*ParseJson(text));
    EXPECT_TRUE(ParseJson(stored).ok()) << stored;
    EXPECT_TRUE(DecodeStored("v1", "Pod", stored, 5).ok()) << stored;
    EXPECT_EQ(StringAt(*DecodeStored("v1", "Pod", stored, 5), {"metadata", "resourceVersion"}), "5");
  }
}

TEST(StoredObject, ThatIsNoneOfOursIsDataLoss) {
  for (const char* stored : {"", "x", R"({"spec":{}})", R"({"metadata":{"name":)"}) {
    EXPECT_EQ(DecodeStored("v1", "Pod", stored, 5).status().code(), absl::StatusCode::kDataLoss) << stored;
  }
}

TEST(StoreKey, TellsNamespacedFromClusterObjects) {
  EXPECT_EQ(StoreKey("", "pods", "default", "x"), "registry/core/pods/default/x");
  EXPECT_EQ(StoreKey("a.b", "things", "", ""), "registry/a.b/things/");
  const auto pod = ParseStoreKey("registry/core/pods/default/x");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->group, "");
  EXPECT_EQ(pod->ns, "default");
  EXPECT_EQ(pod->name, "x");
  const auto node = ParseStoreKey("registry/core/nodes/n1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->ns, "");
  EXPECT_EQ(node->name, "n1");
  EXPECT_FALSE(ParseStoreKey("addresses/127.96.0.1"));
}

}  // namespace
}  // namespace trainyard::apiserver
