#include "apiserver/object_write.h"

#include <gtest/gtest.h>

#include "apiserver/crd.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Document ParsedObject(std::string_view text) { return *ParseJson(text); }

const ResourceInfo& Built(std::string_view plural) {
  static const auto table = ResourceTable::BuiltIn();
  for (const auto& resource : table->all()) {
    if (resource->plural == plural) return *resource;
  }
  ADD_FAILURE() << "no resource " << plural;
  return *table->all().front();
}

WriteContext Context(const ResourceInfo& resource) {
  static Budget budget;
  budget = Budget();
  return {.resource = resource,
          .version = resource.versions.front(),
          .now = kNow,
          .manager = "test",
          .budget = budget};
}

int WriteCodeOf(const absl::Status& status) {
  return kube::ToApiError(status).value_or(kube::ApiError{.code = 0}).code;
}

Document NewConfig(std::string_view body = R"({"metadata":{"name":"c"},"data":{"a":"1"}})") {
  auto made = PrepareCreate(Context(Built("configmaps")), ParsedObject(body),
                            {.ns = "ns", .uid = "u-1", .name_suffix = "abcde"});
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? std::move(made->object) : Document(Object());
}

TEST(PrepareCreate, GivesWhatTheServerDecides) {
  const Document made = NewConfig(
      R"({"metadata":{"name":"c","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","generation":9}})");
  EXPECT_EQ(StringAt(made, {"metadata", "uid"}), "u-1");
  EXPECT_EQ(StringAt(made, {"metadata", "namespace"}), "ns");
  EXPECT_EQ(StringAt(made, {"metadata", "creationTimestamp"}), "2023-11-14T22:13:20Z");
  EXPECT_EQ(Find(made, {"metadata", "generation"}), nullptr);
}

TEST(PrepareCreate, PutsASuffixBehindALongGeneratedName) {
  const std::string prefix(100, 'x');
  const Document made = NewConfig(StrCat(R"({"metadata":{"generateName":")", prefix, R"("}})"));
  EXPECT_EQ(StringAt(made, {"metadata", "name"}), std::string(58, 'x') + "abcde");
}

TEST(PrepareCreate, RefusesMetadataOfTheWrongType) {
  for (const char* body : {R"({"metadata":[]})", R"({"metadata":{"name":5}})", R"([])",
                           R"({"kind":"Secret","metadata":{"name":"c"}})"}) {
    const auto made = PrepareCreate(Context(Built("configmaps")), ParsedObject(body), {.ns = "ns"});
    EXPECT_EQ(WriteCodeOf(made.status()), 400) << body;
  }
}

TEST(PrepareUpdate, PutsBackWhatIsNotTheClients) {
  const Document live = NewConfig();
  const auto changed = PrepareUpdate(
      Context(Built("configmaps")), live,
      ParsedObject(R"({"metadata":{"creationTimestamp":null,"labels":{"a":"b"}},"data":{"a":"2"}})"), "");
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(StringAt(changed->object, {"metadata", "name"}), "c");
  EXPECT_EQ(StringAt(changed->object, {"metadata", "uid"}), "u-1");
  EXPECT_EQ(StringAt(changed->object, {"metadata", "labels", "a"}), "b");
  EXPECT_EQ(StringAt(changed->object, {"data", "a"}), "2");
}

TEST(PrepareUpdate, LeavesOutWhatIsEmptyInTheMetadata) {
  const auto changed = PrepareUpdate(
      Context(Built("configmaps")), NewConfig(R"({"metadata":{"name":"c","labels":{"a":"b"}}})"),
      ParsedObject(R"({"metadata":{"name":"c","labels":{},"finalizers":[],"annotations":null}})"), "");
  ASSERT_TRUE(changed.ok()) << changed.status();
  for (const char* field : {"labels", "finalizers", "annotations"}) {
    EXPECT_EQ(Find(changed->object, {"metadata", field}), nullptr) << field;
  }
}

struct DeleteCase {
  const char* name;
  const char* plural;
  const char* live;
  DeleteTerms terms;
  DeleteVerdict verdict;
  std::int64_t grace;
  const char* finalizers;
};

TEST(DecideDelete, GivesGraceToWhatRunsAndWaitsForFinalizers) {
  const DeleteCase cases[] = {
      {"a plain object goes",
       "configmaps",
       R"({"metadata":{"name":"x"}})",
       {},
       DeleteVerdict::kRemove,
       0,
       ""},
      {"finalizers hold it",
       "configmaps",
       R"({"metadata":{"name":"x","finalizers":["a/b"]}})",
       {},
       DeleteVerdict::kMark,
       0,
       R"(["a/b"])"},
      {"held already",
       "configmaps",
       R"({"metadata":{"name":"x","deletionTimestamp":"2023-11-14T22:13:20Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"]}})",
       {},
       DeleteVerdict::kNothing,
       0,
       R"(["a/b"])"},
      {"foreground waits for dependents",
       "configmaps",
       R"({"metadata":{"name":"x"}})",
       {.propagation = "Foreground"},
       DeleteVerdict::kMark,
       0,
       R"(["foregroundDeletion"])"},
      {"orphan waits until dependents are let go",
       "configmaps",
       R"({"metadata":{"name":"x"}})",
       {.propagation = "Orphan"},
       DeleteVerdict::kMark,
       0,
       R"(["orphan"])"},
      {"background takes a foreground back",
       "configmaps",
       R"({"metadata":{"name":"x","deletionTimestamp":"2023-11-14T22:13:20Z","finalizers":["foregroundDeletion"]}})",
       {.propagation = "Background"},
       DeleteVerdict::kRemove,
       0,
       ""},
      {"a running pod has its own grace",
       "pods",
       R"({"metadata":{"name":"x"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":7}})",
       {},
       DeleteVerdict::kMark,
       7,
       ""},
      {"or the one that is asked for",
       "pods",
       R"({"metadata":{"name":"x"},"spec":{"nodeName":"n"}})",
       {.grace_seconds = 3},
       DeleteVerdict::kMark,
       3,
       ""},
      {"none at all",
       "pods",
       R"({"metadata":{"name":"x"},"spec":{"nodeName":"n"}})",
       {.grace_seconds = 0},
       DeleteVerdict::kRemove,
       0,
       ""},
      {"a grace is only ever made shorter",
       "pods",
       R"({"metadata":{"name":"x","deletionTimestamp":"2023-11-14T22:13:20Z","deletionGracePeriodSeconds":5},"spec":{"nodeName":"n"}})",
       {.grace_seconds = 9},
       DeleteVerdict::kNothing,
       5,
       ""},
      {"a pod without a node has nothing to end",
       "pods",
       R"({"metadata":{"name":"x"},"spec":{}})",
       {},
       DeleteVerdict::kRemove,
       0,
       ""},
      {"nor one that has ended",
       "pods",
       R"({"metadata":{"name":"x"},"spec":{"nodeName":"n"},"status":{"phase":"Failed"}})",
       {},
       DeleteVerdict::kRemove,
       0,
       ""},
      {"a namespace waits for what is in it",
       "namespaces",
       R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"},"spec":{"finalizers":["kubernetes"]}})",
       {},
       DeleteVerdict::kMark,
       0,
       ""},
  };
  for (const DeleteCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto decision = DecideDelete(Built(c.plural), ParsedObject(c.live), c.terms, kNow);
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->verdict, c.verdict);
    if (c.verdict == DeleteVerdict::kRemove) continue;
    EXPECT_EQ(IntAt(decision->object, {"metadata", "deletionGracePeriodSeconds"}), c.grace);
    const Document* finalizers = Find(decision->object, {"metadata", "finalizers"});
    EXPECT_EQ(finalizers != nullptr ? PrintJson(*finalizers) : "", c.finalizers);
  }
}

TEST(Normalize, DefaultsDrawFromWhatAPatchHasLeftOfTheBudget) {
  const WriteContext context = Context(Built("pods"));
  Document pod = ParsedObject(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  std::vector<std::string> warnings;
  Document filled = pod;
  ASSERT_TRUE(Normalize(context, filled, warnings).ok());
  ASSERT_LT(context.budget.left(), Budget::kBytes) << "defaults cost nothing";
  ASSERT_TRUE(context.budget.Take(context.budget.left()));
  EXPECT_EQ(WriteCodeOf(Normalize(context, pod, warnings)), 413);
}

TEST(DecideDelete, HoldsPreconditions) {
  const Document live = ParsedObject(R"({"metadata":{"name":"x","uid":"u","resourceVersion":"5"}})");
  EXPECT_EQ(WriteCodeOf(DecideDelete(Built("configmaps"), live, {.uid = "other"}, kNow).status()), 409);
  EXPECT_EQ(WriteCodeOf(DecideDelete(Built("configmaps"), live, {.resource_version = "4"}, kNow).status()),
            409);
  EXPECT_TRUE(DecideDelete(Built("configmaps"), live, {.uid = "u", .resource_version = "5"}, kNow).ok());
}

TEST(ParseDeleteTerms, TakesTheBodyAndTheQuery) {
  const Document body =
      ParsedObject(R"({"gracePeriodSeconds":4,"propagationPolicy":"Orphan","preconditions":{"uid":"u"}})");
  auto terms = ParseDeleteTerms(&body, "", "", "");
  ASSERT_TRUE(terms.ok());
  EXPECT_EQ(terms->grace_seconds, 4);
  EXPECT_EQ(terms->propagation, "Orphan");
  EXPECT_EQ(terms->uid, "u");
  EXPECT_EQ(ParseDeleteTerms(&body, "9", "Foreground", "")->propagation, "Foreground");
  EXPECT_EQ(ParseDeleteTerms(nullptr, "", "", "true")->propagation, "Orphan");
  EXPECT_EQ(WriteCodeOf(ParseDeleteTerms(nullptr, "x", "", "").status()), 400);
  EXPECT_EQ(WriteCodeOf(ParseDeleteTerms(nullptr, "-1", "", "").status()), 400);
  EXPECT_EQ(WriteCodeOf(ParseDeleteTerms(nullptr, "", "Sideways", "").status()), 422);
}

TEST(PrepareUpdate, FillsInNoDefaultsBesideAStatus) {
  const auto resource = ResourceOf(ParsedObject(R"({"spec":{"group":"g.io","scope":"Namespaced",
    "names":{"plural":"jobs","kind":"Job"},"versions":[{"name":"v1","served":true,"storage":true,
    "subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "spec":{"type":"object","properties":{"dialect":{"type":"string","default":"v1"}}},
      "status":{"type":"object","properties":{"state":{"type":"string"},"ready":{"type":"string","default":"0/0"}}}}}}}]}})"));
  ASSERT_TRUE(resource.ok()) << resource.status();
  const Document live = ParsedObject(R"({"metadata":{"name":"j","namespace":"ns","uid":"u"},"spec":{}})");
  const auto status = PrepareUpdate(
      Context(**resource), live,
      ParsedObject(R"({"metadata":{"name":"j"},"spec":{"x":1},"status":{"state":"Running","other":1}})"),
      "status");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(PrintJson(*Find(status->object, {"spec"})), "{}");
  EXPECT_EQ(PrintJson(*Find(status->object, {"status"})), R"({"state":"Running","ready":"0/0"})");
  const auto whole =
      PrepareUpdate(Context(**resource), live, ParsedObject(R"({"metadata":{"name":"j"},"spec":{}})"), "");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(StringAt(whole->object, {"spec", "dialect"}), "v1");
}

}  // namespace
}  // namespace trainyard::apiserver
