#include "controllers/actions.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_server.h"

namespace trainyard::controllers {
namespace {

using ::testing::HasSubstr;

class ActionsTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  kube::FakeServer server_;
  kube::Api api_{server_, clock_, IdSource(1), {.attempts = 1}};
  const kube::Resource maps_ = kube::Resource::ConfigMaps();
};

TEST_F(ActionsTest, WhatIsSoAlreadyIsDone) {
  const Document object = ParseJson(R"({"metadata":{"name":"x","namespace":"a"}})").value();
  EXPECT_TRUE(Perform(api_, Create{.resource = maps_, .ns = "a", .object = object}).ok());
  EXPECT_TRUE(Perform(api_, Create{.resource = maps_, .ns = "a", .object = object}).ok());
  EXPECT_TRUE(Perform(api_, Delete{.ref = {maps_, {"a", "x"}}}).ok());
  EXPECT_TRUE(Perform(api_, Delete{.ref = {maps_, {"a", "x"}}}).ok());
}

TEST_F(ActionsTest, APreconditionThatDoesNotHoldIsAConflict) {
  server_.Put(maps_, R"({"metadata":{"name":"x","namespace":"a","uid":"u1"}})");
  const absl::Status status = Perform(api_, Delete{.ref = {maps_, {"a", "x"}}, .uid = "u2"});
  EXPECT_TRUE(kube::IsConflict(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("delete configmaps a/x"));
  EXPECT_TRUE(server_.Find(maps_, {"a", "x"}));
}

TEST_F(ActionsTest, OnlyAnObjectThatTheServerLookedForIsMissing) {
  const ObjectRef ref{maps_, {"a", "x"}};
  const auto missing = ReadOne(api_, ref);
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_FALSE(*missing);
  server_.SetIntercept([](const kube::Request&) -> std::optional<absl::StatusOr<kube::Response>> {
    return kube::ToResponse({.code = 404, .reason = "NotFound", .message = "nothing is served here"});
  });
  EXPECT_FALSE(ReadOne(api_, ref).ok()) << "a kind that is not served says nothing of the object";
  server_.SetIntercept([](const kube::Request&) -> std::optional<absl::StatusOr<kube::Response>> {
    return absl::UnavailableError("down");
  });
  EXPECT_FALSE(ReadOne(api_, ref).ok());
}

TEST(SetCondition, KeepsTheTimeWhileTheStatusStays) {
  const absl::Time first = absl::FromUnixSeconds(1'714'557'600);
  Document object(Object{});
  EXPECT_TRUE(SetCondition(object, {"T", "True", "A", "m"}, first));
  EXPECT_FALSE(SetCondition(object, {"T", "True", "A", "m"}, first + absl::Hours(1)));
  EXPECT_TRUE(SetCondition(object, {"T", "True", "B", "m"}, first + absl::Hours(1)));
  const Array& conditions = *ArrayAt(object, {"status", "conditions"});
  EXPECT_EQ(StringAt(conditions[0], {"lastTransitionTime"}), "2024-05-01T10:00:00Z");
  EXPECT_TRUE(SetCondition(object, {"T", "False", "B", "m"}, first + absl::Hours(1)));
  EXPECT_EQ(StringAt(conditions[0], {"lastTransitionTime"}), "2024-05-01T11:00:00Z");
  EXPECT_TRUE(SetCondition(object, {"U", "True", "A", "m"}, first));
  EXPECT_EQ(conditions.size(), 2u);
}

TEST(RemoveFinalizer, RemovesOnlyThatOne) {
  Document object = ParseJson(R"({"metadata":{"finalizers":["a","b"]}})").value();
  EXPECT_TRUE(RemoveFinalizer(object, "a"));
  EXPECT_FALSE(RemoveFinalizer(object, "a"));
  EXPECT_EQ(PrintJson(object), R"({"metadata":{"finalizers":["b"]}})");
}

}  // namespace
}  // namespace trainyard::controllers
