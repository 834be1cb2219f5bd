#include "controllers/garbage.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using enum OwnerState;
using Propagation = kube::Propagation;
using Verdict = GarbageVerdict;

struct GarbageCase {
  const char* that;
  GarbageView view;
  GarbageDecision decision;
};

TEST(DecideGarbage, FollowsFromOwnersAndDependents) {
  const GarbageCase cases[] = {
      {"without owners it stays", {}, {}},
      {"with a living owner it stays", {.owners = {kAlive}}, {}},
      {"with all owners gone it is deleted", {.owners = {kAbsent, kAbsent}}, {Verdict::kDelete}},
      {"one living owner keeps it, the others are forgotten",
       {.owners = {kAbsent, kAlive}},
       {Verdict::kDropReferences}},
      {"a living owner keeps it from one that waits",
       {.owners = {kWaiting, kAlive}},
       {Verdict::kDropReferences}},
      {"what is not known of an owner saves it", {.owners = {kAbsent, kUnknown}}, {Verdict::kLookAgain}},
      {"what is not known keeps it from being changed too",
       {.owners = {kAlive, kAbsent, kUnknown}},
       {Verdict::kLookAgain}},
      {"an owner that waits has it deleted", {.owners = {kWaiting}}, {Verdict::kDelete}},
      {"with dependents of its own it is deleted in the foreground",
       {.owners = {kWaiting}, .dependents = 1},
       {Verdict::kDelete, Propagation::kForeground}},
      {"in a circle the owners are told not to wait for it",
       {.owners = {kWaiting}, .dependents = 1, .dependent_waits = true},
       {Verdict::kDelete, Propagation::kForeground, /*unblock=*/true}},
      {"whether it has dependents must be known for that",
       {.owners = {kWaiting}, .dependents_known = false},
       {Verdict::kLookAgain}},
      {"dependents do not matter when its owners are gone",
       {.owners = {kAbsent}, .dependents_known = false, .dependents = 5},
       {Verdict::kDelete}},
      {"its finalizer says how it is deleted: orphan",
       {.orphan = true, .owners = {kAbsent}},
       {Verdict::kDelete, Propagation::kOrphan}},
      {"its finalizer says how it is deleted: foreground",
       {.foreground = true, .owners = {kAbsent}},
       {Verdict::kDelete, Propagation::kForeground}},
      {"what is being deleted is left alone", {.being_deleted = true, .owners = {kAbsent}}, {}},
      {"in the foreground it waits for dependents that block",
       {.being_deleted = true, .foreground = true, .dependents = 2, .blocking = 1},
       {Verdict::kAwaitDependents}},
      {"and not for those that do not",
       {.being_deleted = true, .foreground = true, .dependents = 2},
       {Verdict::kEndForeground}},
      {"and not before all of them are known",
       {.being_deleted = true, .foreground = true, .dependents_known = false},
       {Verdict::kLookAgain}},
      {"its dependents are orphaned if that is wanted",
       {.being_deleted = true, .orphan = true, .dependents = 2, .blocking = 2},
       {Verdict::kOrphanDependents}},
      {"but not before all of them are known",
       {.being_deleted = true, .orphan = true, .dependents_known = false},
       {Verdict::kLookAgain}},
  };
  for (const GarbageCase& c : cases) EXPECT_EQ(DecideGarbage(c.view), c.decision) << c.that;
}

Document Owned(std::string_view references) {
  return ParseJson(std::string(R"({"metadata":{"name":"x","ownerReferences":)") + std::string(references) +
                   "}}")
      .value();
}

TEST(DropReferences, RemovesThoseThatAreAbsentOrWait) {
  Document object = Owned(R"([{"uid":"a"},{"uid":"b"},{"uid":"c"},{"uid":"d"}])");
  EXPECT_TRUE(DropReferences(object, {kAbsent, kAlive, kWaiting, kUnknown}));
  EXPECT_EQ(object, Owned(R"([{"uid":"b"},{"uid":"d"}])"));
  EXPECT_FALSE(DropReferences(object, {kAlive, kAlive}));
}

TEST(DropReferences, LeavesNoEmptyList) {
  Document object = Owned(R"([{"uid":"a"}])");
  EXPECT_TRUE(DropReferences(object, {kAbsent}));
  EXPECT_EQ(object, ParseJson(R"({"metadata":{"name":"x"}})").value());
}

TEST(DropReference, RemovesOneOwnerOnly) {
  Document object = Owned(R"([{"uid":"a"},{"uid":"b"}])");
  EXPECT_TRUE(DropReference(object, "a"));
  EXPECT_EQ(object, Owned(R"([{"uid":"b"}])"));
  EXPECT_FALSE(DropReference(object, "a"));
}

TEST(UnblockOwners, LeavesNothingToWaitFor) {
  Document object = Owned(R"([{"uid":"a","blockOwnerDeletion":true},{"uid":"b"}])");
  EXPECT_TRUE(UnblockOwners(object));
  EXPECT_EQ(object, Owned(R"([{"uid":"a","blockOwnerDeletion":false},{"uid":"b"}])"));
  EXPECT_FALSE(UnblockOwners(object));
}

}  // namespace
}  // namespace trainyard::controllers
