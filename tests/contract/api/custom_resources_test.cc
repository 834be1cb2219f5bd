// Kinds that a user defines.
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

class CustomResources : public ApiContract {
 protected:
  void SetUp() override {
    ApiContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    group_ = StrCat(ns_, ".example.com");
    const Answer made = Post(kDefinitions, Definition());
    ASSERT_EQ(made.code, 201) << PrintJson(made.body);
    AwaitServed();
  }
  void TearDown() override {
    if (!group_.empty()) Delete(StrCat(kDefinitions, "/widgets.", group_));
  }

  std::string Definition() const {
    return StrCat(R"({"metadata":{"name":"widgets.)", group_, R"("},"spec":{"group":")", group_,
                  R"(","scope":"Namespaced",
      "names":{"plural":"widgets","kind":"Widget","shortNames":["wd"],"categories":["all"]},
      "versions":[{"name":"v1","served":true,"storage":true,
        "subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
        "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}],
        "schema":{"openAPIV3Schema":{"type":"object","properties":{
          "spec":{"type":"object","required":["size"],"properties":{
            "size":{"type":"integer","minimum":0},"color":{"type":"string","default":"red","enum":["red","blue"]}}},
          "status":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}})");
  }
  // A definition is served a moment after it is made.
  void AwaitServed() {
    for (int attempt = 0; attempt < 3000; ++attempt) {
      if (Get(Widgets()).code == 200 && Get(StrCat("/apis/", group_, "/v1")).code == 200) return;
      absl::SleepFor(absl::Milliseconds(10));
    }
    FAIL() << "the definition is not served";
  }
  std::string Widgets(std::string_view rest = "") const {
    return StrCat("/apis/", group_, "/v1/namespaces/", ns_, "/widgets", rest);
  }
  static std::string Widget(std::string_view spec) {
    return StrCat(R"({"metadata":{"name":"w"},"spec":)", spec, "}");
  }
  Answer MakeWidget(std::string_view spec) {
    return Post(Widgets(), StrCat(R"({"apiVersion":")", group_,
                                  R"(/v1","kind":"Widget","metadata":{"name":"w"},"spec":)", spec, "}"));
  }

  static constexpr std::string_view kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  std::string group_;
};

TEST_P(CustomResources, AreEstablished) {
  const Answer definition = Get(StrCat(kDefinitions, "/widgets.", group_));
  bool established = false;
  for (const Document& condition : *ArrayAt(definition.body, {"status", "conditions"})) {
    if (StringAt(condition, {"type"}) == "Established")
      established = StringAt(condition, {"status"}) == "True";
  }
  EXPECT_TRUE(established);
  EXPECT_EQ(definition.Str({"spec", "names", "singular"}), "widget");
  EXPECT_EQ(definition.Str({"spec", "names", "listKind"}), "WidgetList");
}

TEST_P(CustomResources, AreInDiscovery) {
  const Answer list = Get(StrCat("/apis/", group_, "/v1"));
  ASSERT_EQ(list.code, 200);
  std::vector<std::string> names;
  for (const Document& resource : *ArrayAt(list.body, {"resources"}))
    names.emplace_back(StringAt(resource, {"name"}));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"widgets", "widgets/scale", "widgets/status"}));
}

TEST_P(CustomResources, GetDefaultsAndLoseUnknownFields) {
  const Answer made = MakeWidget(R"({"size":1,"shape":"round"})");
  ASSERT_EQ(made.code, 201) << PrintJson(made.body);
  EXPECT_EQ(made.Str({"spec", "color"}), "red");
  EXPECT_EQ(Find(made.body, {"spec", "shape"}), nullptr);
  EXPECT_EQ(IntAt(made.body, {"metadata", "generation"}), 1);
}

TEST_P(CustomResources, ThatDoNotFitTheirSchemaAreInvalid) {
  for (const char* spec : {"{}", R"({"size":"big"})", R"({"size":-1})", R"({"size":1,"color":"green"})"}) {
    const Answer answer = MakeWidget(spec);
    EXPECT_EQ(answer.code, 422) << spec;
    EXPECT_EQ(answer.reason(), "Invalid") << spec;
  }
}

TEST_P(CustomResources, CountChangesOfTheirSpecAlone) {
  ASSERT_EQ(MakeWidget(R"({"size":1})").code, 201);
  EXPECT_EQ(IntAt(Patch(Widgets("/w"), "merge", R"({"metadata":{"labels":{"a":"b"}}})").body,
                  {"metadata", "generation"}),
            1);
  EXPECT_EQ(IntAt(Patch(Widgets("/w/status"), "merge", R"({"status":{"size":1}})").body,
                  {"metadata", "generation"}),
            1);
  EXPECT_EQ(IntAt(Patch(Widgets("/w"), "merge", R"({"spec":{"size":2}})").body, {"metadata", "generation"}),
            2);
}

TEST_P(CustomResources, KeepTheirSpecAndTheirStatusApart) {
  ASSERT_EQ(MakeWidget(R"({"size":1})").code, 201);
  const Answer spec = Patch(Widgets("/w"), "merge", R"({"spec":{"size":2},"status":{"size":9}})");
  EXPECT_EQ(Find(spec.body, {"status", "size"}), nullptr);
  const Answer status = Patch(Widgets("/w/status"), "merge", R"({"spec":{"size":3},"status":{"size":9}})");
  EXPECT_EQ(IntAt(status.body, {"spec", "size"}), 2);
  EXPECT_EQ(IntAt(status.body, {"status", "size"}), 9);
}

TEST_P(CustomResources, AreScaled) {
  ASSERT_EQ(MakeWidget(R"({"size":1})").code, 201);
  const Answer scale = Get(Widgets("/w/scale"));
  ASSERT_EQ(scale.code, 200);
  EXPECT_EQ(scale.Str({"kind"}), "Scale");
  for (const char* wrong : {R"({"spec":{"replicas":"x"}})", R"({"spec":5})", R"({"spec":{"replicas":-1}})"}) {
    const int code = Patch(Widgets("/w/scale"), "merge", wrong).code;
    EXPECT_TRUE(code == 400 || code == 422) << wrong << ": " << code;
  }
  EXPECT_EQ(IntAt(scale.body, {"spec", "replicas"}), 1);
  EXPECT_EQ(Patch(Widgets("/w/scale"), "merge", R"({"spec":{"replicas":5}})").code, 200);
  EXPECT_EQ(IntAt(Get(Widgets("/w")).body, {"spec", "size"}), 5);
}

TEST_P(CustomResources, ArePrintedByTheirColumns) {
  ASSERT_EQ(MakeWidget(R"({"size":7})").code, 201);
  const Answer table = Send("GET", Widgets(), "", "", "application/json;as=Table;v=v1;g=meta.k8s.io");
  const Array* columns = ArrayAt(table.body, {"columnDefinitions"});
  ASSERT_NE(columns, nullptr);
  ASSERT_EQ(columns->size(), 2U);
  EXPECT_EQ(StringAt(columns->at(1), {"name"}), "Size");
  const Array* cells = ArrayAt(ArrayAt(table.body, {"rows"})->at(0), {"cells"});
  EXPECT_EQ(cells->at(1), Document(7));
}

TEST_P(CustomResources, TakeNoStrategicPatch) {
  ASSERT_EQ(MakeWidget(R"({"size":1})").code, 201);
  EXPECT_EQ(Patch(Widgets("/w"), "strategic", R"({"spec":{"size":2}})").code, 415);
}

TEST_P(CustomResources, ApplyByTheirSchema) {
  const auto apply = [&](std::string_view manager, std::string_view spec) {
    return Patch(StrCat(Widgets("/w"), "?fieldManager=", manager), "apply",
                 StrCat(R"({"apiVersion":")", group_,
                        R"(/v1","kind":"Widget","metadata":{"name":"w"},"spec":)", spec, "}"));
  };
  ASSERT_EQ(apply("one", R"({"size":1})").code, 201);
  EXPECT_EQ(apply("two", R"({"size":2})").code, 409);
  EXPECT_EQ(apply("two", R"({"size":1,"color":"blue"})").code, 200);
}

TEST_P(CustomResources, OfABadDefinitionAreRefused) {
  EXPECT_EQ(
      Post(kDefinitions, R"({"metadata":{"name":"wrong"},"spec":{"group":"a.example.com","scope":"Namespaced",
      "names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object"}}}]}})")
          .code,
      422);
  EXPECT_EQ(
      Post(
          kDefinitions,
          R"({"metadata":{"name":"things.a.example.com"},"spec":{"group":"a.example.com","scope":"Namespaced",
      "names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"properties":{"a":{"type":"string"}}}}}}}]}})")
          .code,
      422);
}

INSTANTIATE_TEST_SUITE_P(Apis, CustomResources, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::testing
