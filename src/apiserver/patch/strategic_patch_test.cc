// The results are those that a kube-apiserver 1.26 gave for the same objects and patches. Two things are
// ours: a patch that makes no sense is 400 where Kubernetes at times answers 500, and "$patch": "merge" is
// taken.
#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/patch_testing.h"
#include "apiserver/patch/same_value.h"

namespace trainyard::apiserver {
namespace {

struct StrategicCase {
  const char* what;
  const char* object;
  const char* patch;
  const char* result;  // null: refused with 400
};

// "a b:x" stands for containers a, with the image a, and b, with the image x.
std::string Containers(std::string_view words) {
  std::string json;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string_view name = word.substr(0, colon);
    const std::string_view image = colon < word.size() ? word.substr(colon + 1) : name;
    json += json.empty() ? "[" : ",";
    json += R"({"name":")" + std::string(name) + R"(","image":")" + std::string(image) + R"("})";
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return R"({"spec":{"containers":)" + json + "]}}";
}

void Check(const std::string& what, const Document& object, const Document& patch, const char* result) {
  SCOPED_TRACE(what);
  const auto patched = ApplyStrategicPatch(object, patch, *PodSchema());
  if (result == nullptr) {
    EXPECT_EQ(CodeOf(patched.status()), 400) << Message(patched.status());
    return;
  }
  ASSERT_TRUE(patched.ok()) << Message(patched.status());
  EXPECT_TRUE(SameValue(*patched, J(result))) << PrintJson(*patched) << "\n  but should be " << result;
}

class OfContainers : public testing::TestWithParam<StrategicCase> {};

TEST_P(OfContainers, GivesWhatAnApiServerGives) {
  const StrategicCase& test = GetParam();
  const std::string result = test.result != nullptr ? Containers(test.result) : "";
  Check(test.what, J(Containers(test.object)), J(std::string(R"({"spec":)") + test.patch + "}"),
        test.result != nullptr ? result.c_str() : nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    StrategicPatch, OfContainers,
    testing::ValuesIn(std::vector<StrategicCase>{
        {"an item that is there keeps its place", "a b c", R"({"containers":[{"name":"b","image":"x"}]})",
         "a b:x c"},
        {"an item that is new comes first", "a b c", R"({"containers":[{"name":"n","image":"x"}]})",
         "n:x a b c"},
        {"a new one before one that is there", "a b c",
         R"({"containers":[{"name":"n","image":"x"},{"name":"b","image":"y"}]})", "n:x a b:y c"},
        {"a new one after one that is there", "a b c",
         R"({"containers":[{"name":"b","image":"y"},{"name":"n","image":"x"}]})", "a b:y n:x c"},
        {"the patch's order wins over the server's", "a b c",
         R"({"containers":[{"name":"c","image":"y"},{"name":"a","image":"x"}]})", "b c:y a:x"},
        {"delete", "a b c", R"({"containers":[{"name":"b","$patch":"delete"}]})", "a c"},
        {"delete of what is not there", "a b", R"({"containers":[{"name":"z","$patch":"delete"}]})", "a b"},
        {"delete without a key", "a b", R"({"containers":[{"$patch":"delete"}]})", nullptr},
        {"delete one, add one", "a b c",
         R"({"containers":[{"name":"a","$patch":"delete"},{"name":"z","image":"z"}]})", "z b c"},
        {"replace the list", "a b c", R"({"containers":[{"name":"z","image":"z"},{"$patch":"replace"}]})",
         "z"},
        {"replace goes before delete", "a b c",
         R"({"containers":[{"$patch":"replace"},{"name":"a","$patch":"delete"},{"name":"z","image":"z"}]})",
         "z"},
        {"merge said aloud", "a b", R"({"containers":[{"name":"a","image":"x","$patch":"merge"}]})", "a:x b"},
        {"a directive that there is not", "a b", R"({"containers":[{"name":"a","$patch":"frob"}]})", nullptr},
        {"an item without its key", "a", R"({"containers":[{"image":"x"}]})", nullptr},
        {"an item of another kind", "a", R"({"containers":["x"]})", nullptr},
        {"an order of all", "a b c",
         R"({"$setElementOrder/containers":[{"name":"c"},{"name":"a"},{"name":"b"}]})", "c a b"},
        {"an order of some", "a b c d", R"({"$setElementOrder/containers":[{"name":"d"},{"name":"a"}]})",
         "b c d a"},
        {"an order with one that is new and one that only the server has", "a b c s",
         R"({"$setElementOrder/containers":[{"name":"n"},{"name":"c"},{"name":"a"}],
             "containers":[{"name":"n","image":"n"},{"name":"a","image":"x"}]})",
         "n b c a:x s"},
        {"an order with a delete", "a b c",
         R"({"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],
             "containers":[{"name":"b","$patch":"delete"}]})",
         "c a"},
        {"one renamed, with an order", "a b c",
         R"({"$setElementOrder/containers":[{"name":"n"}],
             "containers":[{"name":"b","$patch":"delete"},{"name":"n","image":"n"}]})",
         "a c n"},
        {"an order that the patch's items contradict", "a b c",
         R"({"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],
             "containers":[{"name":"a","image":"x"},{"name":"c","image":"y"}]})",
         nullptr},
        {"an order that lacks one of the patch's items", "a b c",
         R"({"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"a","image":"x"}]})",
         nullptr},
        {"an order that is no list", "a", R"({"$setElementOrder/containers":"x"})", nullptr},
        {"an order of no field", "a", R"({"$setElementOrder":[{"name":"a"}]})", nullptr},
        {"an order with an item without its key", "a b", R"({"$setElementOrder/containers":[{"nome":"a"}]})",
         nullptr},
        {"an order of a list that is not there", "a", R"({"$setElementOrder/initContainers":[{"name":"a"}]})",
         "a"},
        {"no items for a list that is merged", "a b", R"({"containers":[]})", "a b"}}));

class OfObjects : public testing::TestWithParam<StrategicCase> {};

TEST_P(OfObjects, GivesWhatAnApiServerGives) {
  const StrategicCase& test = GetParam();
  Check(test.what, J(test.object), J(test.patch), test.result);
}

INSTANTIATE_TEST_SUITE_P(
    StrategicPatch, OfObjects,
    testing::ValuesIn(std::vector<StrategicCase>{
        {"replace an object", R"({"spec":{"securityContext":{"runAsUser":1,"x":1}}})",
         R"({"spec":{"securityContext":{"$patch":"replace","runAsUser":2}}})",
         R"({"spec":{"securityContext":{"runAsUser":2}}})"},
        {"delete an object", R"({"spec":{"nodeSelector":{"a":"b"}}})",
         R"({"spec":{"nodeSelector":{"$patch":"delete"}}})", R"({"spec":{"nodeSelector":{}}})"},
        {"merge said aloud", R"({"spec":{"nodeSelector":{"a":"b"}}})",
         R"({"spec":{"nodeSelector":{"$patch":"merge","c":"d"}}})",
         R"({"spec":{"nodeSelector":{"a":"b","c":"d"}}})"},
        {"a directive that there is not", R"({"spec":{"nodeSelector":{"a":"b"}}})",
         R"({"spec":{"nodeSelector":{"$patch":"frob"}}})", nullptr},
        {"null deletes, also what is not there",
         R"({"metadata":{"annotations":{"x":"1","y":"2"}},"spec":{"nodeName":"n"}})",
         R"({"metadata":{"annotations":{"x":null,"z":null}},"spec":{"nodeName":null}})",
         R"({"metadata":{"annotations":{"y":"2"}},"spec":{}})"},
        {"nulls do not get into what is new", R"({"spec":{"containers":[]}})",
         R"({"spec":{"containers":[{"name":"n","command":null,"env":[{"name":"E","value":null}]}]}})",
         R"({"spec":{"containers":[{"name":"n","env":[{"name":"E"}]}]}})"},
        {"lists within items",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"B","value":"3"},{"name":"C","value":"4"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"},{"name":"B","value":"3"},{"name":"C","value":"4"}]}]}})"},
        {"null within an item", R"({"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"A","value":null}]}]}})",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"A"}]}]}})"},
        {"a list without a merge key is replaced",
         R"({"spec":{"containers":[{"name":"a","args":["1","2"]}]}})",
         R"({"spec":{"containers":[{"name":"a","args":["3"]}]}})",
         R"({"spec":{"containers":[{"name":"a","args":["3"]}]}})"},
        {"a key that is a number",
         R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80},{"containerPort":81}]}]}})",
         R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"web"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"name":"web"},{"containerPort":81}]}]}})"},
        {"an order within an item",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","$setElementOrder/env":[{"name":"B"},{"name":"A"}]}]}})",
         R"({"spec":{"containers":[{"name":"a","env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]}]}})"},
        {"directives do not get into what is new", R"({"spec":{"containers":[{"name":"a"}]}})",
         R"({"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"n"}],"containers":[{"name":"n","$setElementOrder/env":[{"name":"B"}],"env":[{"name":"B"},{"name":"C","$patch":"delete"}]}]}})",
         R"({"spec":{"containers":[{"name":"a"},{"name":"n","env":[{"name":"B"}]}]}})"},
        {"an order of a list that is new", R"({"spec":{}})",
         R"({"spec":{"$setElementOrder/initContainers":[{"name":"x"},{"name":"y"}],"initContainers":[{"name":"x"},{"name":"y"}]}})",
         R"({"spec":{"initContainers":[{"name":"x"},{"name":"y"}]}})"},
        {"a list of texts is a set", R"({"metadata":{"finalizers":["a/1","a/2"]}})",
         R"({"metadata":{"finalizers":["a/3","a/1"]}})",
         R"({"metadata":{"finalizers":["a/3","a/1","a/2"]}})"},
        {"texts deleted from a set", R"({"metadata":{"finalizers":["a/1","a/2"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a/1","a/9"]}})",
         R"({"metadata":{"finalizers":["a/2"]}})"},
        {"the last text deleted", R"({"metadata":{"finalizers":["a/1"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a/1"]}})", R"({"metadata":{}})"},
        {"delete, add and order of texts", R"({"metadata":{"finalizers":["a/1","a/2","a/3"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a/1"],"$setElementOrder/finalizers":["a/4","a/3","a/2"],"finalizers":["a/4"]}})",
         R"({"metadata":{"finalizers":["a/4","a/3","a/2"]}})"},
        {"an order of texts", R"({"metadata":{"finalizers":["a/1","a/2","a/3"]}})",
         R"({"metadata":{"$setElementOrder/finalizers":["a/3","a/1"]}})",
         R"({"metadata":{"finalizers":["a/2","a/3","a/1"]}})"},
        {"a deletion from no field", R"({"metadata":{"finalizers":["a/1"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList":["a/1"]}})", nullptr},
        {"a deletion that is no list", R"({"metadata":{"finalizers":["a/1"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":"a/1"}})",
         R"({"metadata":{"finalizers":["a/1"]}})"},
        {"a deletion from nothing", R"({"metadata":{}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a/1"]}})", R"({"metadata":{}})"},
        {"retained keys", R"({"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","emptyDir":{}}]}})",
         R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","configMap"],"configMap":{"name":"cm"}}]}})",
         R"({"spec":{"volumes":[{"name":"v","configMap":{"name":"cm"}},{"name":"w","emptyDir":{}}]}})"},
        {"a key that is not retained", R"({"spec":{"volumes":[{"name":"v"}]}})",
         R"({"spec":{"volumes":[{"name":"v","$retainKeys":["configMap"],"configMap":{"name":"cm"}}]}})",
         nullptr},
        {"a null need not be retained", R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
         R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","configMap"],"configMap":{"name":"cm"},"emptyDir":null}]}})",
         R"({"spec":{"volumes":[{"name":"v","configMap":{"name":"cm"}}]}})"},
        {"retained keys that are no list", R"({"spec":{"volumes":[{"name":"v"}]}})",
         R"({"spec":{"volumes":[{"name":"v","$retainKeys":"name"}]}})", nullptr},
        {"maps of texts are merged", R"({"metadata":{"annotations":{"x":"1"}}})",
         R"({"metadata":{"annotations":{"y":"2"},"labels":{"q":"r"}}})",
         R"({"metadata":{"annotations":{"x":"1","y":"2"},"labels":{"q":"r"}}})"},
        {"null deletes a list", R"({"spec":{"volumes":[{"name":"v"}]}})", R"({"spec":{"volumes":null}})",
         R"({"spec":{}})"},
        {"another kind of value takes the place", R"({"spec":{"nodeSelector":{"a":"b"}}})",
         R"({"spec":{"nodeSelector":["x"]}})", R"({"spec":{"nodeSelector":["x"]}})"},
        {"what no schema knows is merged as JSON is", R"({"x":{"a":1,"l":[{"name":"a"}]}})",
         R"({"x":{"b":2,"l":[{"name":"b"}]}})", R"({"x":{"a":1,"b":2,"l":[{"name":"b"}]}})"}}));

TEST(StrategicPatchErrors, RefuseListsOfLists) {
  const auto patched = ApplyStrategicPatch(J(R"({"spec":{"containers":[]}})"),
                                           J(R"({"spec":{"containers":[["x"]]}})"), *PodSchema());
  EXPECT_EQ(CodeOf(patched.status()), 422);
}

TEST(StrategicPatchErrors, RefuseWhatIsNoObject) {
  EXPECT_EQ(CodeOf(ApplyStrategicPatch(J("{}"), J("[]"), *PodSchema()).status()), 400);
}

TEST(StrategicPatchProperty, ASecondTimeChangesNothing) {
  const Document object = J(Containers("a b c d"));
  for (const char* patch :
       {R"({"spec":{"containers":[{"name":"c","image":"x"},{"name":"n","image":"n"},{"name":"a"}]}})",
        R"({"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"a"}]}})",
        R"({"spec":{"containers":[{"name":"b","$patch":"delete"},{"name":"e","image":"e"}]}})"}) {
    const auto once = ApplyStrategicPatch(object, J(patch), *PodSchema());
    ASSERT_TRUE(once.ok()) << patch;
    const auto twice = ApplyStrategicPatch(*once, J(patch), *PodSchema());
    ASSERT_TRUE(twice.ok()) << patch;
    EXPECT_EQ(PrintJson(*once), PrintJson(*twice)) << patch;
  }
}

}  // namespace
}  // namespace trainyard::apiserver
