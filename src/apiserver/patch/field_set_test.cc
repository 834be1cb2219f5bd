#include "apiserver/patch/field_set.h"

#include <random>

#include <gmock/gmock.h>

#include "apiserver/patch/field_path.h"
#include "apiserver/patch/patch_testing.h"

namespace trainyard::apiserver {
namespace {

using ::testing::ElementsAre;

FieldSet Set(std::string_view json) { return ParseFieldSet(J(json).get_object()); }
std::string Show(const FieldSet& set) { return PrintJson(PrintFieldSet(set)); }

std::vector<std::string> Paths(const FieldSet& set) {
  std::vector<std::string> paths;
  ForEachField(set, [&](const std::string& path) { paths.push_back(path); });
  return paths;
}

TEST(FieldSteps, ComeInTheOrderOfFieldsKeysValuesPlaces) {
  std::vector<std::string> steps = {R"(i:10)",
                                    R"(v:"b")",
                                    R"(k:{"port":443,"protocol":"TCP"})",
                                    R"(f:b)",
                                    R"(v:2)",
                                    R"(i:9)",
                                    R"(k:{"port":80,"protocol":"UDP"})",
                                    R"(v:"a b")",
                                    R"(v:"a")",
                                    R"(k:{"port":80,"protocol":"TCP"})",
                                    R"(f:a)",
                                    R"(v:10)"};
  std::ranges::sort(steps, StepLess);
  EXPECT_THAT(steps,
              ElementsAre(R"(f:a)", R"(f:b)", R"(k:{"port":80,"protocol":"TCP"})",
                          R"(k:{"port":80,"protocol":"UDP"})", R"(k:{"port":443,"protocol":"TCP"})",
                          R"(v:"a")", R"(v:"a b")", R"(v:"b")", R"(v:2)", R"(v:10)", R"(i:9)", R"(i:10)"));
}

TEST(FieldSteps, HaveOneFormHoweverTheyAreSpelt) {
  EXPECT_EQ(CanonicalStep(R"(k:{"b": 1, "a":"x"})"), R"(k:{"a":"x","b":1})");
  EXPECT_EQ(CanonicalStep(R"(v: "x")"), R"(v:"x")");
  EXPECT_EQ(CanonicalStep("i:07"), "i:7");
  EXPECT_EQ(CanonicalStep("f:a.b/c"), "f:a.b/c");
  for (const char* none : {"", "f", "x:1", "k:{}", "k:[", "v:", "i:x"})
    EXPECT_FALSE(CanonicalStep(none)) << none;
}

TEST(FieldSteps, OfItemsTakeTheDefaultOfAKeyThatIsMissing) {
  const SchemaPtr ports =
      PodSchema()->properties.at("spec")->properties.at("containers")->items->properties.at("ports");
  EXPECT_EQ(ItemStep(*ports, J(R"({"containerPort":80})")), R"(k:{"containerPort":80,"protocol":"TCP"})");
  EXPECT_EQ(ItemStep(*ports, J(R"({"protocol":"UDP"})")), std::nullopt);
  EXPECT_EQ(ItemStep(*ports, J("7")), std::nullopt);
  EXPECT_EQ(ItemStep(*SetOf(StringType()), J(R"("a\"b")")), R"(v:"a\"b")");
  EXPECT_EQ(ItemStep(*SetOf(StringType()), J("null")), std::nullopt);
}

TEST(FieldSets, ReadAndPrintFieldsV1) {
  const char* json =
      R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}},"f:finalizers":{"v:\"x\"":{}},"f:replicas":{}}})";
  EXPECT_EQ(Show(Set(json)), json);
  EXPECT_THAT(Paths(Set(json)),
              ElementsAre(".metadata.labels", ".metadata.labels.app", ".spec.replicas",
                          ".spec.containers[name=\"c\"]", ".spec.containers[name=\"c\"].image",
                          ".spec.finalizers[=\"x\"]"));
}

TEST(FieldSets, LeaveOutStepsThatTheyDoNotKnow) {
  EXPECT_EQ(Show(Set(R"({"f:b":{},"q:x":{},"f:a":{"f:c":{}},"f:d":7})")), R"({"f:a":{"f:c":{}},"f:b":{}})");
}

TEST(FieldSets, TellAFieldFromWhatLiesBelowIt) {
  const FieldSet parent = Set(R"({"f:a":{}})");
  const FieldSet child = Set(R"({"f:a":{"f:b":{}}})");
  EXPECT_EQ(Show(Union(parent, child)), R"({"f:a":{".":{},"f:b":{}}})");
  EXPECT_EQ(Difference(Union(parent, child), parent), child);
  EXPECT_EQ(Difference(Union(parent, child), child), parent);
  EXPECT_EQ(Difference(parent, child), parent);
  EXPECT_TRUE(Intersection(parent, child).empty());
}

// ---- the algebra, over sets made at random

FieldSet MakeSet(std::mt19937& random, int depth) {
  FieldSet set;
  for (const char* step : {"f:a", "f:b", "k:{\"n\":1}", "v:\"x\""}) {
    FieldNode node{.step = step, .member = random() % 3 == 0};
    if (depth > 0 && random() % 2 == 0) node.below = MakeSet(random, depth - 1);
    if (node.member || !node.below.empty()) set.nodes.push_back(std::move(node));
  }
  return set;
}

TEST(FieldSetProperty, TheAlgebraOfSetsHolds) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const FieldSet a = MakeSet(random, 3);
    const FieldSet b = MakeSet(random, 3);
    ASSERT_EQ(Union(a, b), Union(b, a));
    ASSERT_EQ(Intersection(a, b), Intersection(b, a));
    ASSERT_EQ(Union(Difference(a, b), Intersection(a, b)), a) << Show(a) << Show(b);
    ASSERT_TRUE(Intersection(Difference(a, b), b).empty());
    ASSERT_EQ(Union(a, a), a);
    ASSERT_EQ(ParseFieldSet(PrintFieldSet(a)), a);

    Object fields = PrintFieldSet(a);
    ASSERT_EQ(HasFields(fields, b), Difference(b, a).empty());
    const bool taken = TakeFields(fields, b);
    ASSERT_EQ(PrintJson(fields), Show(Difference(a, b))) << Show(a) << Show(b);
    ASSERT_EQ(taken, !Intersection(a, b).empty());
  }
}

}  // namespace
}  // namespace trainyard::apiserver
