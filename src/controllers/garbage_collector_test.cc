#include "controllers/garbage_collector.h"

#include "controllers/control_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const kube::Resource kOwnedMaps = kube::Resource::ConfigMaps();
const kube::Resource kJobs{"ml.example.com", "v1", "jobs", "Job", true};
const kube::Resource kTeams{"ml.example.com", "v1", "teams", "Team", false};

std::string Definition(std::string_view kind, std::string_view plural, std::string_view scope) {
  return StrCat(R"({"metadata":{"name":")", plural, R"(.ml.example.com"},"spec":{"group":"ml.example.com",
      "scope":")",
                scope, R"(","names":{"kind":")", kind, R"(","plural":")", plural, R"("},"versions":[
      {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
       "x-kubernetes-preserve-unknown-fields":true}}}]}})");
}

class GarbageCollectorTest : public ::testing::Test {
 protected:
  GarbageCollectorTest() {
    world_.Create(kube::Resource::CustomResourceDefinitions(), "", Definition("Job", "jobs", "Namespaced"));
    world_.Create(kube::Resource::CustomResourceDefinitions(), "", Definition("Team", "teams", "Cluster"));
    world_.Create(kube::Resource::Namespaces(), "", R"({"metadata":{"name":"other"}})");
    world_.Settle();
  }

  static std::string Reference(const kube::Resource& resource, const Document& owner, bool blocks = true) {
    return StrCat(R"({"apiVersion":")", resource.ApiVersion(), R"(","kind":")", resource.kind,
                  R"(","name":")", StringAt(owner, {"metadata", "name"}), R"(","uid":")", UidOf(owner),
                  R"(","blockOwnerDeletion":)", blocks ? "true" : "false", "}");
  }
  Document Make(const kube::Resource& resource, std::string_view name, std::string_view references = "",
                std::string_view finalizers = "", std::string_view ns = "default") {
    return world_.Create(resource, resource.namespaced ? ns : "",
                         StrCat(R"({"metadata":{"name":")", name, R"(","ownerReferences":[)", references,
                                R"(],"finalizers":[)", finalizers, "]}}"));
  }
  std::vector<std::string> Maps(std::string_view ns = "default") {
    std::vector<std::string> names = world_.Names(kOwnedMaps, ns);
    std::erase(names, "kube-root-ca.crt");
    return names;
  }
  void RemoveFinalizers(const kube::Resource& resource, const kube::ObjectKey& key) {
    Document object = *world_.Find(resource, key);
    Remove(*ObjectAt(object, {"metadata"}), "finalizers");
    world_.Update(resource, key, object);
  }

  ControlledServer world_;
};

TEST_F(GarbageCollectorTest, DeletesWhatBelongedToWhatIsGone) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "first", Reference(kJobs, job));
  const Document second = Make(kOwnedMaps, "second", Reference(kJobs, job));
  Make(kube::Resource::Secrets(), "third", Reference(kOwnedMaps, second));
  Make(kOwnedMaps, "free");
  world_.Settle();
  EXPECT_THAT(Maps(), ElementsAre("first", "free", "second"));
  world_.Delete(kJobs, {"default", "job"});
  world_.Settle();
  EXPECT_THAT(Maps(), ElementsAre("free"));
  EXPECT_THAT(world_.Names(kube::Resource::Secrets(), "default"), IsEmpty()) << "and what belonged to that";
}

TEST_F(GarbageCollectorTest, KeepsWhatAnotherOwnerHas) {
  const Document first = Make(kJobs, "first");
  const Document second = Make(kJobs, "second");
  Make(kOwnedMaps, "shared", Reference(kJobs, first) + "," + Reference(kJobs, second));
  world_.Delete(kJobs, {"default", "first"});
  world_.Settle();
  const Document shared = *world_.Find(kOwnedMaps, {"default", "shared"});
  const Array& owners = *ArrayAt(shared, {"metadata", "ownerReferences"});
  ASSERT_EQ(owners.size(), 1u) << "the one that is gone is forgotten";
  EXPECT_EQ(StringAt(owners[0], {"uid"}), UidOf(second));
}

TEST_F(GarbageCollectorTest, TakesANamesakeOfTheOwnerForAnother) {
  const Document job = Make(kJobs, "job");
  world_.Delete(kJobs, {"default", "job"});
  Make(kJobs, "job");
  Make(kOwnedMaps, "left", Reference(kJobs, job));
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, DeletesWhatWasMadeAfterItsOwnerWasGone) {
  Make(kOwnedMaps, "late", R"({"apiVersion":"v1","kind":"Pod","name":"gone","uid":"u"})");
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, FindsGarbageThatAppearedWhileItWasAway) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "owned", Reference(kJobs, job));
  world_.StopControllers();
  world_.Delete(kJobs, {"default", "job"});
  world_.StartControllers();
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, NeverTakesWhatItCannotLookUpForGone) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "owned", Reference(kJobs, job));
  world_.StopControllers();
  // The watch of jobs fails, and so does every look at one.
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.target.find("/jobs") == std::string::npos) return std::nullopt;
        return kube::ToResponse({.code = 500, .reason = "InternalError", .message = "broken"});
      });
  world_.StartControllers();
  world_.Wait(absl::Minutes(5));
  EXPECT_THAT(Maps(), ElementsAre("owned"));
  world_.transport().SetIntercept(nullptr);
  world_.Wait(absl::Minutes(1));
  EXPECT_THAT(Maps(), ElementsAre("owned"));
  world_.Delete(kJobs, {"default", "job"});
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, KeepsWhatBelongsToAKindThatIsNotServed) {
  Make(kOwnedMaps, "owned", R"({"apiVersion":"unknown.example.com/v1","kind":"Thing","name":"x","uid":"u"})");
  world_.Wait(absl::Hours(1));
  EXPECT_THAT(Maps(), ElementsAre("owned"));
  Document definition = ParseJson(Definition("Thing", "things", "Namespaced")).value();
  definition.at("metadata").get_object()["name"] = "things.unknown.example.com";
  definition.at("spec").get_object()["group"] = "unknown.example.com";
  world_.Create(kube::Resource::CustomResourceDefinitions(), "", PrintJson(definition));
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty()) << "once the kind is served it is clear that the owner is gone";
}

TEST_F(GarbageCollectorTest, LetsObjectsOfTheClusterOwnWhatIsInNamespaces) {
  const Document team = Make(kTeams, "team");
  Make(kOwnedMaps, "owned", Reference(kTeams, team));
  world_.Settle();
  EXPECT_THAT(Maps(), ElementsAre("owned"));
  world_.Delete(kTeams, {"", "team"});
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, TakesAnOwnerInAnotherNamespaceForAbsentAndSaysSo) {
  const Document job = Make(kJobs, "job", "", "", "other");
  Make(kOwnedMaps, "owned", Reference(kJobs, job));
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
  EXPECT_THAT(world_.Events("default"), ElementsAre("OwnerRefInvalidNamespace ConfigMap/owned"));
}

TEST_F(GarbageCollectorTest, LeavesAnObjectOfTheClusterWhoseOwnerIsInANamespace) {
  const Document job = Make(kJobs, "job");
  Make(kTeams, "owned", Reference(kJobs, job));
  world_.Wait(absl::Minutes(10));
  EXPECT_TRUE(world_.Exists(kTeams, {"", "owned"}));
  EXPECT_THAT(world_.Events("default"), ElementsAre("OwnerRefInvalidNamespace Team/owned"));
}

TEST_F(GarbageCollectorTest, KeepsAnOwnerInTheForegroundUntilItsDependentsAreGone) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "held", Reference(kJobs, job), R"("example.com/hold")");
  Make(kOwnedMaps, "quick", Reference(kJobs, job));
  world_.Settle();
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kForeground});
  world_.Settle();
  EXPECT_THAT(Maps(), ElementsAre("held"));
  EXPECT_TRUE(IsBeingDeleted(*world_.Find(kOwnedMaps, {"default", "held"})));
  EXPECT_TRUE(world_.Exists(kJobs, {"default", "job"}));
  RemoveFinalizers(kOwnedMaps, {"default", "held"});
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
}

TEST_F(GarbageCollectorTest, DoesNotWaitInTheForegroundForDependentsThatDoNotBlock) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "held", Reference(kJobs, job, /*blocks=*/false), R"("example.com/hold")");
  world_.Settle();
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kForeground});
  world_.Settle();
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
  EXPECT_TRUE(IsBeingDeleted(*world_.Find(kOwnedMaps, {"default", "held"}))) << "it is deleted all the same";
}

TEST_F(GarbageCollectorTest, DeletesWholeTreesFromTheLeavesInTheForeground) {
  const Document job = Make(kJobs, "job");
  const Document middle = Make(kOwnedMaps, "middle", Reference(kJobs, job));
  Make(kOwnedMaps, "leaf", Reference(kOwnedMaps, middle), R"("example.com/hold")");
  world_.Settle();
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kForeground});
  world_.Settle();
  EXPECT_THAT(Maps(), UnorderedElementsAre("leaf", "middle"));
  RemoveFinalizers(kOwnedMaps, {"default", "leaf"});
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
}

TEST_F(GarbageCollectorTest, EndsObjectsThatOwnEachOtherInTheForeground) {
  const Document first = Make(kOwnedMaps, "first");
  const Document second = Make(kOwnedMaps, "second", Reference(kOwnedMaps, first));
  Document owned = *world_.Find(kOwnedMaps, {"default", "first"});
  owned.at("metadata").get_object()["ownerReferences"] =
      Array{ParseJson(Reference(kOwnedMaps, second)).value()};
  world_.Update(kOwnedMaps, {"default", "first"}, owned);
  world_.Settle();
  world_.Delete(kOwnedMaps, {"default", "first"}, {.propagation = kube::Propagation::kForeground});
  world_.Wait(absl::Minutes(1));
  EXPECT_THAT(Maps(), IsEmpty());
}

TEST_F(GarbageCollectorTest, OrphansDependentsIfThatIsWanted) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "kept", Reference(kJobs, job));
  world_.Settle();
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kOrphan});
  world_.Settle();
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
  const auto kept = world_.Find(kOwnedMaps, {"default", "kept"});
  ASSERT_TRUE(kept);
  EXPECT_EQ(Find(*kept, {"metadata", "ownerReferences"}), nullptr);
}

TEST_F(GarbageCollectorTest, OrphansADependentThatWasMadeJustBeforeTheDeletion) {
  const Document job = Make(kJobs, "job");
  world_.Settle();
  Make(kOwnedMaps, "kept", Reference(kJobs, job));
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kOrphan});
  world_.Settle();
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
  EXPECT_THAT(Maps(), ElementsAre("kept"));
}

TEST_F(GarbageCollectorTest, DoesNotOrphanWhileItCannotSeeAllDependents) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "kept", Reference(kJobs, job));
  world_.StopControllers();
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.method != "GET" || !request.target.starts_with("/api/v1/configmaps?"))
          return std::nullopt;
        return absl::UnavailableError("down");
      });
  world_.StartControllers();
  world_.Delete(kJobs, {"default", "job"}, {.propagation = kube::Propagation::kOrphan});
  world_.Wait(absl::Minutes(2));
  EXPECT_TRUE(world_.Exists(kJobs, {"default", "job"}));
  world_.transport().SetIntercept(nullptr);
  world_.Wait(absl::Minutes(2));
  EXPECT_FALSE(world_.Exists(kJobs, {"default", "job"}));
  EXPECT_THAT(Maps(), ElementsAre("kept"));
}

TEST_F(GarbageCollectorTest, FollowsAPrecedenceOfWritesByOthers) {
  const Document job = Make(kJobs, "job");
  Make(kOwnedMaps, "adopted", Reference(kJobs, job));
  const Document second = Make(kJobs, "second");
  world_.Settle();
  // Between the look and the deletion somebody gives the object another owner.
  bool done = false;
  world_.transport().SetIntercept(
      [&](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.method != "DELETE" || std::exchange(done, true)) return std::nullopt;
        Document object = *world_.Find(kOwnedMaps, {"default", "adopted"});
        object.at("metadata").get_object()["ownerReferences"] =
            Array{ParseJson(Reference(kJobs, second)).value()};
        world_.Update(kOwnedMaps, {"default", "adopted"}, object);
        return std::nullopt;
      });
  world_.Delete(kJobs, {"default", "job"});
  world_.Wait(absl::Minutes(1));
  EXPECT_TRUE(done);
  EXPECT_THAT(Maps(), ElementsAre("adopted"));
}

TEST_F(GarbageCollectorTest, DeletesThousandsInBatches) {
  const Document job = Make(kJobs, "job");
  for (int i = 0; i < 1000; ++i) Make(kOwnedMaps, StrCat("m", i), Reference(kJobs, job));
  world_.Settle();
  world_.transport().requests().clear();
  world_.Delete(kJobs, {"default", "job"});
  world_.Settle();
  EXPECT_THAT(Maps(), IsEmpty());
  EXPECT_LT(world_.transport().requests().size(), 2100u) << "one look and one deletion each";
}

}  // namespace
}  // namespace trainyard::controllers
