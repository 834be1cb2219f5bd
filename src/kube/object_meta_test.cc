#include "kube/object_meta.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kJobMeta = R"({
  "apiVersion": "trainyard.dev/v1", "kind": "AITrainingJob",
  "spec": {"metadata": {"name": "not this one"}, "deep": [{"a": [1, 2, {"b": null}]}]},
  "metadata": {
    "name": "mnist", "namespace": "team-a", "uid": "8f6c3b1e-0000-4000-8000-1234567890ab",
    "resourceVersion": "4711", "generation": 3, "creationTimestamp": "2024-05-01T10:00:00Z",
    "deletionTimestamp": "2024-05-01T11:00:00Z", "deletionGracePeriodSeconds": 30,
    "labels": {"b": "2", "a": "1", "esc\"aped": "li\nne"},
    "annotations": {"keep": "this", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    "ownerReferences": [
      {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u1"},
      {"apiVersion": "batch/v1", "kind": "Job", "name": "y", "uid": "u2", "controller": true}],
    "finalizers": ["trainyard.dev/cleanup", "other"],
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}]}})";

TEST(ObjectMeta, HasWhatTheObjectSays) {
  const auto meta = ParseObjectMeta(std::string(kJobMeta), {.annotations = {"keep", "absent"}});
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->Key(), (ObjectKey{"team-a", "mnist"}));
  EXPECT_EQ(meta->uid, "8f6c3b1e-0000-4000-8000-1234567890ab");
  EXPECT_EQ(meta->resource_version, "4711");
  EXPECT_EQ(meta->generation, 3);
  EXPECT_EQ(meta->created, absl::FromUnixSeconds(1'714'557'600));
  EXPECT_EQ(meta->deletion_time, absl::FromUnixSeconds(1'714'561'200));
  EXPECT_EQ(meta->deletion_grace_seconds, 30);
  EXPECT_EQ(meta->labels.Find("a"), "1");
  EXPECT_EQ(meta->labels.Find("b"), "2");
  EXPECT_EQ(meta->labels.Find("esc\"aped"), "li\nne");
  EXPECT_EQ(meta->labels.Find("c"), std::nullopt);
  EXPECT_EQ(meta->annotations.entries().size(), 1u) << "only those asked for";
  EXPECT_EQ(meta->annotations.Get("keep"), "this");
  const auto less = ParseObjectMeta(std::string(kJobMeta), {.labels = {{"b", "absent"}}});
  ASSERT_TRUE(less.ok());
  EXPECT_EQ(less->labels.entries().size(), 1u) << "only those asked for";
  ASSERT_TRUE(meta->controller.has_value());
  EXPECT_EQ(meta->controller->kind, "Job");
  EXPECT_EQ(meta->controller->uid, "u2");
  EXPECT_THAT(meta->finalizers, ElementsAre(SharedText("trainyard.dev/cleanup"), SharedText("other")));
}

TEST(ObjectMeta, KeepsEveryOwnerIfAskedTo) {
  EXPECT_TRUE(ParseObjectMeta(std::string(kJobMeta))->owners.empty());
  const auto meta = ParseObjectMeta(
      R"({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1", "blockOwnerDeletion": true},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "y", "uid": "u2", "controller": true}]}})",
      {.owners = true});
  ASSERT_TRUE(meta.ok()) << meta.status();
  ASSERT_EQ(meta->owners.size(), 2u);
  EXPECT_EQ(meta->owners[0].uid, "u1");
  EXPECT_TRUE(meta->owners[0].blocks);
  EXPECT_FALSE(meta->owners[0].controls);
  EXPECT_EQ(meta->owners[1], *meta->controller);
  EXPECT_FALSE(meta->owners[1].blocks);
}

TEST(ObjectMeta, TakesWhatIsNullForAbsent) {
  const auto meta = ParseObjectMeta(
      R"({"metadata": {"name": "x", "creationTimestamp": null, "labels": null, "ownerReferences": null}})");
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->created, absl::InfinitePast());
  EXPECT_FALSE(meta->controller.has_value());
  EXPECT_TRUE(meta->labels.entries().empty());
  EXPECT_EQ(meta->Key(), (ObjectKey{"", "x"}));
}

TEST(ObjectMeta, NamesTheMemberThatIsWrong) {
  const auto error = [](const char* json) {
    const auto meta = ParseObjectMeta(json);
    EXPECT_TRUE(absl::IsInvalidArgument(meta.status())) << json;
    return std::string(Message(meta.status()));
  };
  EXPECT_THAT(error(R"({"metadata": {"name": 5}})"), HasSubstr("at \"name\""));
  EXPECT_THAT(error(R"({"metadata": {"labels": {"a": 1}}})"), HasSubstr("at \"a\""));
  EXPECT_THAT(error(R"({"metadata": {"creationTimestamp": "soon"}})"), HasSubstr("at \"creationTimestamp\""));
  EXPECT_THAT(error(R"({"metadata": []})"), HasSubstr("at \"metadata\""));
  EXPECT_THAT(error(R"({"metadata": {"name": "x")"), HasSubstr("cannot read an object"));
  EXPECT_THAT(error(""), HasSubstr("cannot read"));
  EXPECT_THAT(error("17"), HasSubstr("cannot read"));
  EXPECT_THAT(error("[]"), HasSubstr("cannot read"));
}

TEST(TextMap, KeepsTheLastOfAKeyGivenTwice) {
  const TextMap map({{SharedText("a"), SharedText("1")},
                     {SharedText("b"), SharedText("2")},
                     {SharedText("a"), SharedText("3")}});
  EXPECT_EQ(map.Get("a"), "3");
  EXPECT_EQ(map.entries().size(), 2u);
  EXPECT_EQ(map, TextMap({{SharedText("b"), SharedText("2")}, {SharedText("a"), SharedText("3")}}))
      << "whatever the order";
}

}  // namespace
}  // namespace trainyard::kube
