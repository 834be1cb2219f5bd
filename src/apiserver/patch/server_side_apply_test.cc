// What is expected was seen on a kube-apiserver 1.26, except that an entry always has a time.
#include <random>

#include <gmock/gmock.h>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/patch_testing.h"
#include "apiserver/patch/same_value.h"

namespace trainyard::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000'000);

// An object and what managers do to it, one second apart.
class Applied : public testing::Test {
 protected:
  static std::string Config(std::string_view rest) {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"})" + std::string(rest) + "}";
  }

  absl::Status Try(const std::string& manager, std::string_view config, bool force = false,
                   const std::string& subresource = "") {
    now_ += absl::Seconds(1);
    auto next = ServerSideApply(live_, J(config), *schema_,
                                {.name = manager,
                                 .operation = "Apply",
                                 .api_version = "v1",
                                 .subresource = subresource,
                                 .time = now_},
                                force);
    if (!next.ok()) return next.status();
    live_ = *std::move(next);
    return absl::OkStatus();
  }
  void Apply(const std::string& manager, std::string_view config, bool force = false) {
    const absl::Status status = Try(manager, config, force);
    ASSERT_TRUE(status.ok()) << Message(status);
  }
  void Update(const std::string& manager, std::string_view object, const std::string& subresource = "") {
    now_ += absl::Seconds(1);
    Document after = J(object);
    TrackUpdate(live_, after, *schema_,
                {.name = manager,
                 .operation = "Update",
                 .api_version = "v1",
                 .subresource = subresource,
                 .time = now_});
    live_ = std::move(after);
  }

  // Without managedFields.
  std::string Object() const {
    Document object = live_;
    Remove(object.get_object()["metadata"].get_object(), "managedFields");
    return PrintJson(object);
  }
  // "manager/operation fields", in their order.
  std::vector<std::string> Owners() const {
    std::vector<std::string> owners;
    const Array* managed = ArrayAt(live_, {"metadata", "managedFields"});
    if (managed == nullptr) return owners;
    for (const Document& entry : *managed) {
      owners.push_back(std::string(StringAt(entry, {"manager"})) + "/" +
                       std::string(StringAt(entry, {"operation"})) + " " +
                       PrintJson(*Find(entry, {"fieldsV1"})));
    }
    return owners;
  }

  SchemaPtr schema_ = PodSchema();
  Document live_;
  absl::Time now_ = kStart;
};

class ServerSideApplyTest : public Applied {};

TEST_F(ServerSideApplyTest, CreatesAndOwnsWhatItNames) {
  Apply("m1",
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"1"},"finalizers":["x/y"]},
                  "spec":{"nodeName":"n","nodeSelector":{"q":"r"},
                          "containers":[{"name":"c","image":"i","args":["x"],"ports":[{"containerPort":80}]}]}})");
  EXPECT_THAT(
      Owners(),
      ElementsAre(
          R"(m1/Apply {"f:metadata":{"f:finalizers":{"v:\"x/y\"":{}},"f:labels":{"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}},"f:nodeName":{},"f:nodeSelector":{}}})"));
  EXPECT_EQ(
      PrintJson(*Find(live_, {"metadata", "managedFields"})),
      R"([{"manager":"m1","operation":"Apply","apiVersion":"v1","time":"2001-09-09T01:46:41Z","fieldsType":"FieldsV1","fieldsV1":)" +
          PrintJson(*Find(live_.at("metadata").at("managedFields").at(0), {"fieldsV1"})) + "}]");
}

TEST_F(ServerSideApplyTest, SharesAFieldThatTwoWantAlike) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n","dnsPolicy":"d"})"));
  const std::string before = Object();
  Apply("m2", Config(R"(,"spec":{"nodeName":"n"})"));
  EXPECT_EQ(Object(), before);
  EXPECT_THAT(Owners(), ElementsAre(R"(m1/Apply {"f:spec":{"f:dnsPolicy":{},"f:nodeName":{}}})",
                                    R"(m2/Apply {"f:spec":{"f:nodeName":{}}})"));
  Apply("m1", Config(R"(,"spec":{"dnsPolicy":"d"})"));
  EXPECT_EQ(Object(), before) << "m2 still wants nodeName";
  Apply("m2", Config(""));
  EXPECT_EQ(StringAt(live_, {"spec", "nodeName"}, "gone"), "gone");
  EXPECT_EQ(StringAt(live_, {"spec", "dnsPolicy"}), "d");
}

TEST_F(ServerSideApplyTest, LeavesTheObjectByteForByteWhenItChangesNothing) {
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]})"));
  Update("u", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"7"},
                  "spec":{"nodeName":"n","containers":[{"image":"i","name":"b"},{"name":"a","image":"i"}]}})");
  const std::string before = PrintJson(live_);
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]})"));
  EXPECT_EQ(PrintJson(live_), before) << "not even the order of the items";
}

TEST_F(ServerSideApplyTest, ReportsOneConflictAsKubectlKnowsIt) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n"})"));
  const absl::Status status = Try("m2", Config(R"(,"spec":{"nodeName":"other"})"));
  const auto error = kube::ToApiError(status);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, 409);
  EXPECT_EQ(error->reason, "Conflict");
  EXPECT_EQ(error->message, R"(Apply failed with 1 conflict: conflict with "m1": .spec.nodeName)");
  EXPECT_THAT(error->causes, ElementsAre(kube::Cause{.reason = "FieldManagerConflict",
                                                     .field = ".spec.nodeName",
                                                     .message = R"(conflict with "m1")"}));
}

TEST_F(ServerSideApplyTest, ReportsManyConflictsByManager) {
  Update("creator", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"x"}},
                        "spec":{"containers":[{"name":"c","image":"i"}]}})");
  Update("node", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"x"}},
                     "spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}})",
         "status");
  const auto error = kube::ToApiError(Try(
      "m1", R"({"metadata":{"name":"p","labels":{"app":"y"}},"spec":{"containers":[{"name":"c","image":"j"}]},
                    "status":{"phase":"Failed"}})"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "Apply failed with 3 conflicts: conflicts with \"creator\" using v1:\n"
            "- .metadata.labels.app\n"
            "- .spec.containers[name=\"c\"].image\n"
            "conflicts with \"node\" with subresource \"status\" using v1:\n"
            "- .status.phase");
  EXPECT_EQ(error->causes.size(), 3u);
  EXPECT_EQ(error->causes[2].message, R"(conflict with "node" with subresource "status" using v1)");
}

TEST_F(ServerSideApplyTest, TakesByForceWhatIsInConflict) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n","dnsPolicy":"d"})"));
  Apply("m2", Config(R"(,"spec":{"nodeName":"other"})"), true);
  EXPECT_EQ(StringAt(live_, {"spec", "nodeName"}), "other");
  EXPECT_THAT(Owners(), ElementsAre(R"(m1/Apply {"f:spec":{"f:dnsPolicy":{}}})",
                                    R"(m2/Apply {"f:spec":{"f:nodeName":{}}})"));
}

TEST_F(ServerSideApplyTest, RemovesWhatItNoLongerNamesAndWhatThatEmpties) {
  Apply(
      "m1",
      R"({"metadata":{"name":"p","labels":{"a":"1"}},"spec":{"nodeName":"n","containers":[{"name":"c"},{"name":"d"}]}})");
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"d"}]})"));
  EXPECT_EQ(PrintJson(*Find(live_, {"spec"})), R"({"containers":[{"name":"d"}]})");
  EXPECT_EQ(Find(live_, {"metadata", "labels"}), nullptr);
  EXPECT_EQ(StringAt(live_, {"metadata", "name"}), "p") << "nobody owns the name";
}

TEST_F(ServerSideApplyTest, ForgetsAManagerThatWantsNothing) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n"})"));
  Apply("m1", Config(""));
  EXPECT_THAT(Owners(), IsEmpty());
  EXPECT_EQ(Find(live_, {"metadata", "managedFields"}), nullptr);
}

TEST_F(ServerSideApplyTest, KeepsInAnItemWhatOthersSet) {
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"c","image":"i"}]})"));
  Update("u", Config(R"(,"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Never"}]})"));
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"c","image":"j"}]})"));
  EXPECT_EQ(PrintJson(*Find(live_, {"spec", "containers"})),
            R"([{"name":"c","image":"j","imagePullPolicy":"Never"}])");
  Apply("m1", Config(""));
  EXPECT_EQ(Find(live_, {"spec"}), nullptr) << "nobody else owned the item itself";
}

TEST_F(ServerSideApplyTest, OrdersAListLikeTheConfigurationAndKeepsOthersInPlace) {
  Update("u", Config(R"(,"spec":{"containers":[{"name":"a"},{"name":"s"},{"name":"b"}]})"));
  Apply("m1", Config(R"(,"spec":{"containers":[{"name":"n"},{"name":"b","image":"x"},{"name":"a"}]})"));
  EXPECT_EQ(PrintJson(*Find(live_, {"spec", "containers"})),
            R"([{"name":"s"},{"name":"n"},{"name":"b","image":"x"},{"name":"a"}])");
}

TEST_F(ServerSideApplyTest, ReplacesAtomicMapsAndListsWhole) {
  Apply("m1",
        Config(R"(,"spec":{"nodeSelector":{"a":"1","b":"2"},"containers":[{"name":"c","args":["1","2"]}]})"));
  Apply("m1", Config(R"(,"spec":{"nodeSelector":{"c":"3"},"containers":[{"name":"c","args":["3"]}]})"));
  EXPECT_EQ(PrintJson(*Find(live_, {"spec"})),
            R"({"nodeSelector":{"c":"3"},"containers":[{"name":"c","args":["3"]}]})");
  EXPECT_EQ(CodeOf(Try("m2", Config(R"(,"spec":{"nodeSelector":{"c":"3","d":"4"}})"))), 409);
}

TEST_F(ServerSideApplyTest, OfAStatusTakesOnlyTheStatus) {
  Update("creator", Config(R"(,"spec":{"nodeName":"n"})"));
  const absl::Status status = Try(
      "m1",
      R"({"metadata":{"name":"p","labels":{"x":"y"}},"spec":{"nodeName":"other"},"status":{"phase":"Running"}})",
      false, "status");
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_EQ(Object(), Config(R"(,"spec":{"nodeName":"n"},"status":{"phase":"Running"})"));
  EXPECT_EQ(StringAt(live_.at("metadata").at("managedFields").at(0), {"subresource"}), "status");
  Apply("m1", Config(R"(,"spec":{"dnsPolicy":"d"})"));
  EXPECT_EQ(Owners().size(), 3u) << "the same manager of the object and of its status are two";
}

TEST_F(ServerSideApplyTest, ChangesATimeOnlyWithWhatTheManagerDid) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n"})"));
  Apply("m2", Config(R"(,"spec":{"dnsPolicy":"d"})"));
  Apply("m1", Config(R"(,"spec":{"nodeName":"n"})"));
  const auto time = [&](std::size_t i) {
    return std::string(StringAt(live_.at("metadata").at("managedFields").at(i), {"time"}));
  };
  EXPECT_EQ(time(0), "2001-09-09T01:46:41Z");
  EXPECT_EQ(time(1), "2001-09-09T01:46:42Z");
  Apply("m1", Config(R"(,"spec":{"nodeName":"o"})"));
  EXPECT_EQ(time(0), "2001-09-09T01:46:42Z");
  EXPECT_EQ(time(1), "2001-09-09T01:46:44Z") << "m1, with a new value, comes last";
}

TEST_F(ServerSideApplyTest, KnowsNothingOfOwnersBeforeTheFirstApply) {
  live_ = J(Config(R"(,"spec":{"nodeName":"n"})"));
  EXPECT_EQ(CodeOf(Try("m1", Config(R"(,"spec":{"nodeName":"o"})"))), 409);
  Apply("m1", Config(R"(,"spec":{"nodeName":"n"})"));
  EXPECT_THAT(Owners(), ElementsAre(R"(m1/Apply {"f:spec":{"f:nodeName":{}}})",
                                    R"(before-first-apply/Update {"f:spec":{"f:nodeName":{}}})"));
}

TEST_F(ServerSideApplyTest, StaysTheSameManagerInAnotherVersion) {
  Apply("m1", Config(R"(,"spec":{"nodeName":"n","dnsPolicy":"d"})"));
  auto next = ServerSideApply(
      live_, J(R"({"apiVersion":"v2","metadata":{"name":"p"},"spec":{"dnsPolicy":"d"}})"), *schema_,
      {.name = "m1", .operation = "Apply", .api_version = "v2", .time = now_}, false);
  ASSERT_TRUE(next.ok()) << Message(next.status());
  live_ = *next;
  EXPECT_THAT(Owners(), ElementsAre(R"(m1/Apply {"f:spec":{"f:dnsPolicy":{}}})"));
  EXPECT_EQ(StringAt(live_, {"spec", "nodeName"}, "gone"), "gone");
}

TEST_F(ServerSideApplyTest, KeepsThePreconditionsThatTheClientStates) {
  Update("u", R"({"metadata":{"name":"p","uid":"1","resourceVersion":"5"},"spec":{"nodeName":"n"}})");
  Apply("m1", R"({"metadata":{"name":"p","resourceVersion":"4"},"spec":{"nodeName":"n"}})");
  EXPECT_EQ(StringAt(live_, {"metadata", "resourceVersion"}), "4") << "for the server to compare";
  const absl::Status status =
      Try("m1", R"({"metadata":{"name":"p","uid":"2"},"status":{"phase":"Running"}})", false, "status");
  ASSERT_TRUE(status.ok()) << Message(status);
  EXPECT_EQ(StringAt(live_, {"metadata", "uid"}), "2") << "likewise of a status";
}

TEST_F(ServerSideApplyTest, RefusesWhatDoesNotFitTheSchema) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(,"spek":{})", ".spek: field not declared"},
      {R"(,"spec":{"nodeName":1})", ".spec.nodeName: expected a string"},
      {R"(,"spec":{"containers":{}})", ".spec.containers: expected a list"},
      {R"(,"spec":{"containers":[{"image":"x"}]})", ".spec.containers: item 0"},
      {R"(,"spec":{"containers":[{"name":"c","env":[{"name":"B"},{"name":"B"}]}]})",
       R"(.spec.containers[name="c"].env: duplicate entries for key [name="B"])"},
      {R"(,"spec":{"containers":[{"name":"c","imago":"x"}]})", R"(.spec.containers[name="c"].imago)"},
  };
  for (const auto& [rest, what] : cases) {
    const absl::Status status = Try("m1", Config(rest));
    EXPECT_EQ(CodeOf(status), 400) << rest;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(what));
  }
  EXPECT_EQ(CodeOf(Try("m1", R"({"metadata":{"name":"p","managedFields":[]}})")), 400);
  EXPECT_EQ(CodeOf(Try("m1", R"({"apiVersion":"v7","metadata":{"name":"p"}})")), 400);
  EXPECT_EQ(CodeOf(Try("m1", "[]")), 400);
}

TEST_F(ServerSideApplyTest, OwnsTheMetadataOfKindsWhoseSchemaLeavesItOut) {
  schema_ = ObjectOf(
      {{"apiVersion", StringType()}, {"kind", StringType()}, {"spec", ObjectOf({{"n", IntType()}})}});
  Apply("m1", R"({"apiVersion":"v1","kind":"K","metadata":{"name":"p","labels":{"a":"1"},"finalizers":["x/y"],
                  "ownerReferences":[{"uid":"7","name":"o"}]},"spec":{"n":1}})");
  EXPECT_THAT(
      Owners(),
      ElementsAre(
          R"(m1/Apply {"f:metadata":{"f:finalizers":{"v:\"x/y\"":{}},"f:labels":{"f:a":{}},"f:ownerReferences":{"k:{\"uid\":\"7\"}":{}}},"f:spec":{"f:n":{}}})"));
}

TEST_F(ServerSideApplyTest, SeesFieldsInWhatTheSchemaDoesNotDescribe) {
  auto any = std::make_shared<Schema>();
  any->type = SchemaType::kObject;
  any->preserve_unknown = true;
  schema_ = ObjectOf({{"spec", any}});
  Apply("m1", R"({"metadata":{"name":"p"},"spec":{"a":{"b":1},"l":[{"x":1}]}})");
  Apply("m2", R"({"metadata":{"name":"p"},"spec":{"a":{"c":2}}})");
  EXPECT_EQ(PrintJson(*Find(live_, {"spec"})), R"({"a":{"b":1,"c":2},"l":[{"x":1}]})");
  EXPECT_EQ(CodeOf(Try("m2", R"({"metadata":{"name":"p"},"spec":{"l":[]}})")), 409);
}

// ---- properties, over configurations made at random

std::string RandomConfig(std::mt19937& random) {
  const auto coin = [&] { return random() % 2 == 0; };
  const auto value = [&] { return std::string(random() % 2 == 0 ? "\"1\"" : "\"2\""); };
  std::string labels;
  for (const char* key : {"a", "b", "c"}) {
    if (coin()) labels += (labels.empty() ? "" : ",") + ("\"" + std::string(key) + "\":" + value());
  }
  std::vector<std::string> names = {"a", "b", "c", "d"};
  std::shuffle(names.begin(), names.end(), random);
  names.resize(random() % 5);
  std::string containers;
  for (const std::string& name : names) {
    containers += (containers.empty() ? "" : ",") + (R"({"name":")" + name + "\"");
    if (coin()) containers += R"(,"image":)" + value();
    if (coin()) containers += R"(,"env":[{"name":"E","value":)" + value() + "}]";
    containers += "}";
  }
  std::string spec = R"("containers":[)" + containers + "]";
  if (coin()) spec += R"(,"nodeName":)" + value();
  if (coin()) spec += R"(,"nodeSelector":{"k":)" + value() + "}";
  return R"({"metadata":{"name":"p","labels":{)" + labels + R"(}},"spec":{)" + spec + "}}";
}

TEST_F(ServerSideApplyTest, GivesEachApplierWhatItWantsWhateverCameBefore) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    live_ = Document();
    for (int step = 0; step < 8; ++step) {
      const std::string manager = "m" + std::to_string(random() % 3);
      const std::string config = RandomConfig(random);
      if (random() % 4 == 0) {
        Update(manager, config);
        continue;
      }
      Apply(manager, config, true);
      const std::string once = PrintJson(live_);
      // What is wanted is there: to apply it again, even without force, changes nothing.
      Apply(manager, config);
      ASSERT_EQ(PrintJson(live_), once) << "seed " << seed << ", step " << step << ": " << config;
    }
    // When all have let go, what appliers brought is gone.
    for (const char* manager : {"m0", "m1", "m2"}) Apply(manager, R"({"metadata":{"name":"p"}})");
    const auto entries = ReadManagedFields(live_);
    ASSERT_TRUE(entries.ok());
    for (const ManagedEntry& entry : *entries) ASSERT_EQ(entry.operation, "Update") << PrintJson(live_);
  }
}

TEST_F(Applied, NamesNoMoreFieldsInConflictThanTheBudgetPaysFor) {
  schema_ = ObjectOf({{"apiVersion", StringType()},
                      {"kind", StringType()},
                      {"metadata", ObjectOf({{"name", StringType()}, {"managedFields", AnyType()}})},
                      {"spec", MapOf(MapOf(IntType()))}});
  const auto config = [](int value) {
    std::string fields;
    for (int i = 0; i < 2'000; ++i)
      fields += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":" + std::to_string(value);
    return Config(R"(,"spec":{")" + std::string(50'000, 'x') + R"(":{)" + fields + "}}");
  };
  for (int manager = 0; manager < 20; ++manager) Apply("m" + std::to_string(manager), config(1));
  const absl::Status refused = Try("other", config(2));
  EXPECT_EQ(CodeOf(refused), 413) << "40,000 paths of 50 kB are two gigabytes";
  EXPECT_LT(refused.message().size(), 10'000U);
  Apply("other", config(2), true);
}

}  // namespace
}  // namespace trainyard::apiserver
