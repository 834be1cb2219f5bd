// Objects listed and watched.
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

using kube::Resource;

class Lists : public ApiContract {
 protected:
  void Make(std::string_view name, std::string_view labels = "{}") {
    const Answer made =
        Post(In("configmaps"), StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, "}}"));
    ASSERT_EQ(made.code, 201) << PrintJson(made.body);
  }
  // Without those that a cluster puts into every namespace.
  Answer List(std::string_view query) { return Get(StrCat(In("configmaps"), query)); }
};
class Watches : public Lists {};

TEST_P(Lists, AreByNameAndSayAtWhichVersionTheyAre) {
  for (const char* name : {"b", "a", "c"}) Make(name, R"({"t":"1"})");
  const Answer list = List("?labelSelector=t");
  EXPECT_EQ(list.code, 200);
  EXPECT_EQ(list.Str({"kind"}), "ConfigMapList");
  EXPECT_FALSE(list.Str({"metadata", "resourceVersion"}).empty());
  EXPECT_EQ(Names(list), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(Lists, AreChosenByLabels) {
  Make("a", R"({"app":"x","tier":"front"})");
  Make("b", R"({"app":"x"})");
  Make("c", R"({"app":"y"})");
  using Names_ = std::vector<std::string>;
  EXPECT_EQ(Names(List("?labelSelector=app%3Dx")), (Names_{"a", "b"}));
  EXPECT_EQ(Names(List("?labelSelector=app%3Dx%2C!tier")), (Names_{"b"}));
  EXPECT_EQ(Names(List("?labelSelector=app+in+(x,y),tier!%3Dfront")), (Names_{"b", "c"}));
  EXPECT_EQ(List("?labelSelector=app+in").code, 400);
}

TEST_P(Lists, AreChosenByFields) {
  Make("a");
  Make("b");
  EXPECT_EQ(Names(List("?fieldSelector=metadata.name%3Db")), std::vector<std::string>{"b"});
  EXPECT_EQ(List("?fieldSelector=data.x%3Db").code, 400);
}

TEST_P(Lists, ArePagedAtOneVersion) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Make(name, R"({"t":"1"})");
  const Answer first = List("?limit=2&labelSelector=t");
  EXPECT_EQ(Names(first), (std::vector<std::string>{"a", "b"}));
  ASSERT_FALSE(first.Str({"metadata", "continue"}).empty());
  Make("bb", R"({"t":"1"})");
  const std::string token = kube::PercentEncoded(first.Str({"metadata", "continue"}));
  const Answer second = List(StrCat("?limit=2&labelSelector=t&continue=", token));
  EXPECT_EQ(Names(second), (std::vector<std::string>{"c", "d"}));
  const Answer third = List(StrCat("?limit=2&labelSelector=t&continue=",
                                   kube::PercentEncoded(second.Str({"metadata", "continue"}))));
  EXPECT_EQ(Names(third), std::vector<std::string>{"e"});
  EXPECT_TRUE(third.Str({"metadata", "continue"}).empty());
}

TEST_P(Lists, RefuseAContinueTokenThatIsNone) { EXPECT_EQ(List("?limit=1&continue=nonsense").code, 400); }

TEST_P(Lists, OfAllNamespacesHaveAll) {
  Make("a", StrCat(R"({"run":")", ns_, R"("})"));
  EXPECT_EQ(Names(Get(StrCat("/api/v1/configmaps?labelSelector=run%3D", ns_))),
            std::vector<std::string>{"a"});
}

TEST_P(Lists, OfAVersionThatHasNotHappenedAreRefused) {
  const Answer answer = List("?resourceVersion=9000000000000&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(answer.code, 504);
}

TEST_P(Lists, ArePrintedAsATable) {
  Make("a", R"({"t":"1"})");
  const Answer table = Send("GET", StrCat(In("configmaps"), "?labelSelector=t"), "", "",
                            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  EXPECT_EQ(table.Str({"kind"}), "Table");
  EXPECT_EQ(table.Str({"apiVersion"}), "meta.k8s.io/v1");
  const Array* columns = ArrayAt(table.body, {"columnDefinitions"});
  ASSERT_NE(columns, nullptr);
  ASSERT_EQ(columns->size(), 3U);
  EXPECT_EQ(StringAt(columns->at(0), {"name"}), "Name");
  EXPECT_EQ(StringAt(columns->at(1), {"name"}), "Data");
  EXPECT_EQ(StringAt(columns->at(2), {"name"}), "Age");
  const Array* rows = ArrayAt(table.body, {"rows"});
  ASSERT_NE(rows, nullptr);
  ASSERT_EQ(rows->size(), 1U);
  const Array* cells = ArrayAt(rows->at(0), {"cells"});
  ASSERT_NE(cells, nullptr);
  EXPECT_EQ(Text(cells->at(0)), "a");
  EXPECT_EQ(StringAt(rows->at(0), {"object", "kind"}), "PartialObjectMetadata");
}

TEST_P(Lists, OfMetadataAloneLeaveOutTheRest) {
  ASSERT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"a","labels":{"t":"1"}},"data":{"x":"y"}})").code,
            201);
  const Answer list =
      Send("GET", StrCat(In("configmaps"), "?labelSelector=t"), "", "",
           "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json");
  EXPECT_EQ(list.Str({"kind"}), "PartialObjectMetadataList");
  ASSERT_EQ(Names(list), std::vector<std::string>{"a"});
  EXPECT_EQ(Find(ArrayAt(list.body, {"items"})->at(0), {"data"}), nullptr);
}

TEST_P(Watches, TellWhatHappensFromAVersionOn) {
  Make("before");
  const std::string version(List("").Str({"metadata", "resourceVersion"}));
  const auto stream = Watch(Resource::ConfigMaps(), {.resource_version = version});
  ASSERT_NE(stream, nullptr);
  Make("a");
  ASSERT_EQ(Patch(In("configmaps/a"), "merge", R"({"data":{"x":"y"}})").code, 200);
  ASSERT_EQ(Delete(In("configmaps/a")).code, 200);
  EXPECT_EQ(NextEvent(*stream), "ADDED a");
  EXPECT_EQ(NextEvent(*stream), "MODIFIED a");
  EXPECT_EQ(NextEvent(*stream), "DELETED a");
}

TEST_P(Watches, TellWhatHappenedSinceTheVersion) {
  const std::string version(List("").Str({"metadata", "resourceVersion"}));
  Make("a");
  Make("b");
  const auto stream = Watch(Resource::ConfigMaps(), {.resource_version = version});
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(NextEvent(*stream), "ADDED a");
  EXPECT_EQ(NextEvent(*stream), "ADDED b");
}

TEST_P(Watches, WithoutAVersionBeginWithWhatIsThere) {
  Make("a", R"({"t":"1"})");
  const auto stream = Watch(Resource::ConfigMaps(), {.label_selector = "t"});
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(NextEvent(*stream), "ADDED a");
  Make("b", R"({"t":"1"})");
  EXPECT_EQ(NextEvent(*stream), "ADDED b");
}

TEST_P(Watches, OfASelectorSeeObjectsComeAndGoAsTheirLabelsDo) {
  const std::string version(List("").Str({"metadata", "resourceVersion"}));
  const auto stream = Watch(Resource::ConfigMaps(), {.label_selector = "t=1", .resource_version = version});
  ASSERT_NE(stream, nullptr);
  Make("other", R"({"t":"2"})");
  Make("a", R"({"t":"1"})");
  ASSERT_EQ(Patch(In("configmaps/a"), "merge", R"({"metadata":{"labels":{"t":"2"}}})").code, 200);
  ASSERT_EQ(Patch(In("configmaps/other"), "merge", R"({"metadata":{"labels":{"t":"1"}}})").code, 200);
  EXPECT_EQ(NextEvent(*stream), "ADDED a");
  EXPECT_EQ(NextEvent(*stream), "DELETED a");
  EXPECT_EQ(NextEvent(*stream), "ADDED other");
}

TEST_P(Watches, EndWhenTheClientAskedThemTo) {
  const auto stream =
      Watch(Resource::ConfigMaps(), {.label_selector = "none=1", .server_timeout = absl::Seconds(1)});
  ASSERT_NE(stream, nullptr);
  absl::StatusOr<kube::WatchEvent> event = stream->Next(absl::Seconds(30));
  while (event.ok()) event = stream->Next(absl::Seconds(30));
  EXPECT_EQ(event.status().code(), absl::StatusCode::kUnavailable) << event.status();
}

TEST_P(Watches, ShowADeletedObjectAtTheVersionOfItsDeletion) {
  Make("a");
  const Answer list = List("");
  const auto stream = Watch(Resource::ConfigMaps(),
                            {.resource_version = std::string(list.Str({"metadata", "resourceVersion"}))});
  ASSERT_NE(stream, nullptr);
  ASSERT_EQ(Delete(In("configmaps/a")).code, 200);
  const auto event = stream->Next(absl::Seconds(30));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->type, kube::WatchEventType::kDeleted);
  const auto before = ParseNumber<std::int64_t>(list.Str({"metadata", "resourceVersion"}));
  const auto after =
      ParseNumber<std::int64_t>(StringAt(*ParseJson(event->object), {"metadata", "resourceVersion"}));
  ASSERT_TRUE(before && after);
  EXPECT_GT(*after, *before);
}

INSTANTIATE_TEST_SUITE_P(Apis, Lists, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });
INSTANTIATE_TEST_SUITE_P(Apis, Watches, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::testing
