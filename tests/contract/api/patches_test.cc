// The four kinds of patch.
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

class Patches : public ApiContract {
 protected:
  void MakePod() {
    const Answer made = Post(In("pods"),
                             R"({"metadata":{"name":"p","labels":{"a":"1"}},"spec":{"containers":[
                                 {"name":"one","image":"x:1"},{"name":"two","image":"y:1"}],
                                 "tolerations":[{"key":"k","operator":"Exists"}]}})");
    ASSERT_EQ(made.code, 201) << PrintJson(made.body);
  }
};

TEST_P(Patches, OfMergeReplaceListsAndRemoveNulls) {
  ASSERT_EQ(Post(In("configmaps"),
                 R"({"metadata":{"name":"c","finalizers":["a/b","a/c"]},"data":{"x":"1","y":"2"}})")
                .code,
            201);
  const Answer patched =
      Patch(In("configmaps/c"), "merge", R"({"metadata":{"finalizers":["a/d"]},"data":{"x":null,"z":"3"}})");
  ASSERT_EQ(patched.code, 200);
  EXPECT_EQ(*Find(patched.body, {"data"}), *ParseJson(R"({"y":"2","z":"3"})"));
  EXPECT_EQ(*Find(patched.body, {"metadata", "finalizers"}), *ParseJson(R"(["a/d"])"));
}

TEST_P(Patches, OfJsonTestBeforeTheyChange) {
  ASSERT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"c"},"data":{"x":"1"}})").code, 201);
  const Answer failed =
      Patch(In("configmaps/c"), "json",
            R"([{"op":"replace","path":"/data/x","value":"2"},{"op":"test","path":"/data/x","value":"1"}])");
  EXPECT_EQ(failed.code, 422);
  EXPECT_EQ(Get(In("configmaps/c")).Str({"data", "x"}), "1");
  const Answer done =
      Patch(In("configmaps/c"), "json",
            R"([{"op":"test","path":"/data/x","value":"1"},{"op":"add","path":"/data/y","value":"2"}])");
  EXPECT_EQ(done.code, 200);
  EXPECT_EQ(done.Str({"data", "y"}), "2");
}

TEST_P(Patches, OfStrategicKindMergeListsByTheirKeys) {
  MakePod();
  const Answer patched =
      Patch(In("pods/p"), "strategic", R"({"spec":{"containers":[{"name":"two","image":"y:2"}]}})");
  ASSERT_EQ(patched.code, 200) << PrintJson(patched.body);
  const Array* containers = ArrayAt(patched.body, {"spec", "containers"});
  ASSERT_NE(containers, nullptr);
  ASSERT_EQ(containers->size(), 2U);
  EXPECT_EQ(StringAt(containers->at(0), {"image"}), "x:1");
  EXPECT_EQ(StringAt(containers->at(1), {"image"}), "y:2");
}

TEST_P(Patches, WithAnOldVersionAreRefused) {
  const Answer made = Post(In("configmaps"), R"({"metadata":{"name":"c"},"data":{"x":"1"}})");
  ASSERT_EQ(Patch(In("configmaps/c"), "merge", R"({"data":{"x":"2"}})").code, 200);
  const Answer stale = Patch(In("configmaps/c"), "merge",
                             StrCat(R"({"metadata":{"resourceVersion":")",
                                    made.Str({"metadata", "resourceVersion"}), R"("},"data":{"x":"3"}})"));
  EXPECT_EQ(stale.code, 409);
}

TEST_P(Patches, ThatChangeNothingKeepTheVersion) {
  const Answer made = Post(In("configmaps"), R"({"metadata":{"name":"c"},"data":{"x":"1"}})");
  const Answer same = Patch(In("configmaps/c"), "merge", R"({"data":{"x":"1"}})");
  EXPECT_EQ(same.Str({"metadata", "resourceVersion"}), made.Str({"metadata", "resourceVersion"}));
}

TEST_P(Patches, OfAnUnknownTypeAreRefused) {
  ASSERT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"c"}})").code, 201);
  EXPECT_EQ(Send("PATCH", In("configmaps/c"), "{}", "application/json").code, 415);
  EXPECT_EQ(Patch(In("configmaps/c"), "merge", "{").code, 400);
}

TEST_P(Patches, ThatApplyMakeOwnAndRemoveFields) {
  const auto apply = [&](std::string_view manager, std::string_view data, bool force = false) {
    return Patch(
        StrCat(In("configmaps/c"), "?fieldManager=", manager, force ? "&force=true" : ""), "apply",
        StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":)", data, "}"));
  };
  ASSERT_EQ(apply("one", R"({"a":"1","b":"1"})").code, 201);
  const Answer conflict = apply("two", R"({"a":"2"})");
  EXPECT_EQ(conflict.code, 409);
  const Array* causes = ArrayAt(conflict.body, {"details", "causes"});
  ASSERT_NE(causes, nullptr);
  EXPECT_EQ(StringAt(causes->at(0), {"reason"}), "FieldManagerConflict");
  EXPECT_EQ(StringAt(causes->at(0), {"field"}), ".data.a");
  EXPECT_EQ(apply("two", R"({"a":"2"})", true).Str({"data", "a"}), "2");
  const Answer less = apply("one", "{}");
  ASSERT_EQ(less.code, 200) << PrintJson(less.body);
  EXPECT_EQ(less.Str({"data", "a"}), "2");
  EXPECT_EQ(Find(less.body, {"data", "b"}), nullptr);
}

TEST_P(Patches, ThatApplyTheSameAgainKeepTheVersion) {
  const auto apply = [&] {
    return Patch(StrCat(In("configmaps/c"), "?fieldManager=one"), "apply",
                 R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}})");
  };
  const Answer first = apply();
  ASSERT_EQ(first.code, 201);
  EXPECT_EQ(apply().Str({"metadata", "resourceVersion"}), first.Str({"metadata", "resourceVersion"}));
}

TEST_P(Patches, ThatApplyNeedAManager) {
  EXPECT_EQ(
      Patch(In("configmaps/c"), "apply", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})")
          .code,
      422);
}

INSTANTIATE_TEST_SUITE_P(Apis, Patches, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::testing
