// What is expected was seen on a kube-apiserver 1.26.
#include <gmock/gmock.h>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/patch_testing.h"
#include "apiserver/schema/kind_table.h"

namespace trainyard::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class TrackUpdateTest : public testing::Test {
 protected:
  void Write(const std::string& manager, std::string_view object, const std::string& subresource = "") {
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
  const Array& Managed() const { return live_.at("metadata").at("managedFields").get_array(); }
  std::vector<std::string> Owners() const {
    std::vector<std::string> owners;
    if (Find(live_, {"metadata", "managedFields"}) == nullptr) return owners;
    for (const Document& entry : Managed()) {
      owners.push_back(std::string(StringAt(entry, {"manager"})) + " " +
                       PrintJson(*Find(entry, {"fieldsV1"})));
    }
    return owners;
  }

  SchemaPtr schema_ = PodSchema();
  Document live_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
};

TEST_F(TrackUpdateTest, GivesTheCreatorAllThatItSet) {
  Write(
      "creator",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"d","uid":"7","creationTimestamp":"t","labels":{"app":"x"}},
            "spec":{"restartPolicy":"Never","securityContext":{},"containers":[{"name":"c","image":"i","args":["x"],
              "env":[{"name":"A","value":"1"}],"resources":{},
              "ports":[{"containerPort":443,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"}]}]},"status":{}})");
  EXPECT_THAT(
      Owners(),
      ElementsAre(
          R"(creator {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}},"f:restartPolicy":{},"f:securityContext":{}}})"));
}

TEST_F(TrackUpdateTest, OwnsTheFieldsOfABuiltInPodAsAnApiServerSays) {
  schema_ = BuiltInKinds().Find("", "v1", "Pod")->schema;
  const std::string spec = R"("spec":{"containers":[{"name":"c","image":"i","args":["x"],
      "ports":[{"containerPort":443,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"}],
      "env":[{"name":"A","value":"1"}],"resources":{},"terminationMessagePath":"/dev/termination-log",
      "terminationMessagePolicy":"File","imagePullPolicy":"Always"}],"restartPolicy":"Never",
      "terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},
      "schedulerName":"default-scheduler","enableServiceLinks":true})";
  Write("creator",
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"x"}},)" + spec + "}");
  Write(
      "node",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"x"}},)" + spec +
          R"(,"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null}]}})",
      "status");
  EXPECT_THAT(
      Owners(),
      ElementsAre(
          R"(creator {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}})",
          R"(node {"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}}},"f:phase":{}}})"));
}

TEST_F(TrackUpdateTest, OwnsAnAtomicObjectAtTheTopAsAWhole) {
  schema_ = BuiltInKinds().Find("", "v1", "Event")->schema;
  Write(
      "a",
      R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p"},
                 "reason":"Started","source":{"component":"x"}})");
  EXPECT_THAT(Owners(),
              ElementsAre(R"(a {"f:involvedObject":{},"f:reason":{},"f:source":{"f:component":{}}})"));
}

TEST_F(TrackUpdateTest, CountsTheSpecOfACustomResourceAsSetByItsCreator) {
  schema_ = ObjectOf({{"spec", ObjectOf({{"n", IntType()}})}});
  Write("creator", R"({"metadata":{"name":"p"},"spec":{"n":1}})");
  EXPECT_THAT(Owners(), ElementsAre(R"(creator {"f:spec":{".":{},"f:n":{}}})"));
}

TEST_F(TrackUpdateTest, MovesAFieldToWhoeverChangedItLast) {
  Write(
      "a",
      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","dnsPolicy":"d","containers":[{"name":"c","image":"i"}]}})");
  Write(
      "b",
      R"({"metadata":{"name":"p"},"spec":{"nodeName":"o","dnsPolicy":"d","containers":[{"name":"c","image":"j"}]}})");
  EXPECT_THAT(
      Owners(),
      ElementsAre(
          R"(a {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}},"f:dnsPolicy":{}}})",
          R"(b {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:image":{}}},"f:nodeName":{}}})"));
}

TEST_F(TrackUpdateTest, TakesWhatWasRemovedFromAll) {
  Write(
      "a",
      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"},{"name":"d"}]}})");
  Write("b", R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"d"}]}})");
  EXPECT_THAT(Owners(),
              ElementsAre(R"(a {"f:spec":{"f:containers":{"k:{\"name\":\"d\"}":{".":{},"f:name":{}}}}})"))
      << "and who only removes owns nothing";
  EXPECT_EQ(StringAt(Managed().at(0), {"time"}), "2001-09-09T01:46:41Z");
}

TEST_F(TrackUpdateTest, KeepsOneEntryForEachManagerAndSubresource) {
  Write("a", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})");
  Write("a", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","dnsPolicy":"d"}})");
  EXPECT_THAT(Owners(), ElementsAre(R"(a {"f:spec":{"f:dnsPolicy":{},"f:nodeName":{}}})"));
  EXPECT_EQ(StringAt(Managed().at(0), {"time"}), "2001-09-09T01:46:42Z");
  Write("a",
        R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","dnsPolicy":"d"},"status":{"phase":"Running"}})",
        "status");
  EXPECT_THAT(Owners(), SizeIs(2));
  EXPECT_EQ(StringAt(Managed().at(1), {"subresource"}), "status");
}

TEST_F(TrackUpdateTest, LeavesTheEntriesWhenNothingChanged) {
  Write("a", R"({"metadata":{"name":"p","resourceVersion":"1"},"spec":{"nodeName":"n"}})");
  const std::string before = PrintJson(Managed());
  Write("b", R"({"metadata":{"name":"p","resourceVersion":"2","generation":7},"spec":{"nodeName":"n"}})");
  EXPECT_EQ(PrintJson(Managed()), before) << "nor is one lost by a client that does not send them";
}

TEST_F(TrackUpdateTest, TakesEntriesThatAClientHasWritten) {
  Write("a", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})");
  Write("b", R"({"metadata":{"name":"p","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1",
                 "fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:nodeName":{}}}}]},"spec":{"nodeName":"n"}})");
  EXPECT_THAT(Owners(), ElementsAre(R"(x {"f:spec":{"f:nodeName":{}}})"));
}

TEST_F(TrackUpdateTest, IgnoresEntriesThatAreNoneOrComeThroughASubresource) {
  Write("a", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})");
  const auto before = Owners();
  Write(
      "b",
      R"({"metadata":{"name":"p","managedFields":[{"manager":"x","operation":"Steal"}]},"spec":{"nodeName":"n"}})");
  EXPECT_EQ(Owners(), before);
  Write("b", R"({"metadata":{"name":"p","managedFields":[{}]},"spec":{"nodeName":"n"}})", "status");
  EXPECT_EQ(Owners(), before);
}

TEST_F(TrackUpdateTest, ForgetsAllOwnersWhenAskedTo) {
  for (const char* reset : {"[]", "[{}]"}) {
    live_ = Document();
    Write("a", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n"}})");
    Write("b", std::string(R"({"metadata":{"name":"p","managedFields":)") + reset +
                   R"(},"spec":{"nodeName":"o"}})");
    EXPECT_EQ(Find(live_, {"metadata", "managedFields"}), nullptr) << reset;
    Write("c", R"({"metadata":{"name":"p"},"spec":{"nodeName":"q"}})");
    EXPECT_EQ(Find(live_, {"metadata", "managedFields"}), nullptr) << "until somebody applies";
  }
}

TEST_F(TrackUpdateTest, MakesOneOfTheOldestWhenThereAreMoreThanTenUpdaters) {
  std::string labels;
  for (int i = 0; i < 13; ++i) {
    labels += (labels.empty() ? "" : ",") + ("\"l" + std::to_string(i) + "\":\"x\"");
    Write("u" + std::to_string(i), R"({"metadata":{"name":"p","labels":{)" + labels + "}}}");
  }
  ASSERT_THAT(Managed(), SizeIs(10));
  EXPECT_EQ(
      Owners().at(0),
      R"(ancient-changes {"f:metadata":{"f:labels":{".":{},"f:l0":{},"f:l1":{},"f:l2":{},"f:l3":{}}}})");
  EXPECT_EQ(Owners().at(9), R"(u12 {"f:metadata":{"f:labels":{"f:l12":{}}}})");
}

TEST_F(TrackUpdateTest, TreatsAListWhoseItemsCannotBeToldApartAsOneField) {
  Write(
      "a",
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}})");
  Write(
      "b",
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"3"}]}]}})");
  EXPECT_THAT(Owners(),
              ElementsAre(R"(a {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}})",
                          R"(b {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:env":{}}}}})"));
}

TEST_F(TrackUpdateTest, ComparesWhatChangedItsKind) {
  schema_ = ObjectOf({{"spec", AnyType()}});
  Write("a", R"({"metadata":{"name":"p"},"spec":{"x":{"y":1},"z":null}})");
  Write("b", R"({"metadata":{"name":"p"},"spec":{"x":"text","z":{"q":1}}})");
  EXPECT_THAT(Owners(), ElementsAre(R"(a {"f:spec":{".":{},"f:z":{}}})",
                                    R"(b {"f:spec":{"f:x":{},"f:z":{"f:q":{}}}})"));
}

TEST(ManagedFields, StandAppliesFirstThenByTimeAndName) {
  Array entries;
  for (const char* entry : {R"({"manager":"b","operation":"Update","time":"2020-01-01T00:00:01Z"})",
                            R"({"manager":"a","operation":"Update","time":"2020-01-01T00:00:01Z"})",
                            R"({"manager":"z","operation":"Update","time":"2020-01-01T00:00:00Z"})",
                            R"({"manager":"y","operation":"Apply","time":"2020-01-01T00:00:09Z"})"}) {
    entries.push_back(J(entry));
  }
  SortManagedFields(entries);
  std::string order;
  for (const Document& entry : entries) order += StringAt(entry, {"manager"});
  EXPECT_EQ(order, "yzab");
}

}  // namespace
}  // namespace trainyard::apiserver
