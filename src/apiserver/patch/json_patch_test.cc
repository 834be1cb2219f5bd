#include <gmock/gmock.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/patch_testing.h"

namespace trainyard::apiserver {
namespace {

using ::testing::HasSubstr;

struct PatchCase {
  const char* what;
  const char* document;
  const char* patch;
  const char* result;  // null: refused with 422
};

class JsonPatch : public testing::TestWithParam<PatchCase> {};

TEST_P(JsonPatch, GivesWhatTheRfcSays) {
  const PatchCase& test = GetParam();
  SCOPED_TRACE(test.what);
  const auto patched = ApplyJsonPatch(J(test.document), J(test.patch));
  if (test.result == nullptr) {
    EXPECT_EQ(CodeOf(patched.status()), 422) << Message(patched.status());
    return;
  }
  ASSERT_TRUE(patched.ok()) << Message(patched.status());
  EXPECT_EQ(PrintJson(*patched), PrintJson(J(test.result)));
}

INSTANTIATE_TEST_SUITE_P(
    Appendix, JsonPatch,
    testing::ValuesIn(std::vector<PatchCase>{
        {"A.1", R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])",
         R"({"foo":"bar","baz":"qux"})"},
        {"A.2", R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])",
         R"({"foo":["bar","qux","baz"]})"},
        {"A.3", R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])", R"({"foo":"bar"})"},
        {"A.4", R"({"foo":["bar","qux","baz"]})", R"([{"op":"remove","path":"/foo/1"}])",
         R"({"foo":["bar","baz"]})"},
        {"A.5", R"({"baz":"qux","foo":"bar"})", R"([{"op":"replace","path":"/baz","value":"boo"}])",
         R"({"baz":"boo","foo":"bar"})"},
        {"A.6", R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
         R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])",
         R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})"},
        {"A.7", R"({"foo":["all","grass","cows","eat"]})",
         R"([{"op":"move","from":"/foo/1","path":"/foo/3"}])", R"({"foo":["all","cows","eat","grass"]})"},
        {"A.8", R"({"baz":"qux","foo":["a",2,"c"]})",
         R"([{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}])",
         R"({"baz":"qux","foo":["a",2,"c"]})"},
        {"A.9", R"({"baz":"qux"})", R"([{"op":"test","path":"/baz","value":"bar"}])", nullptr},
        {"A.10", R"({"foo":"bar"})", R"([{"op":"add","path":"/child","value":{"grandchild":{}}}])",
         R"({"foo":"bar","child":{"grandchild":{}}})"},
        {"A.11", R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux","xyz":123}])",
         R"({"foo":"bar","baz":"qux"})"},
        {"A.12", R"({"foo":"bar"})", R"([{"op":"add","path":"/baz/bat","value":"qux"}])", nullptr},
        // A.13 gives a key twice; what the parser does with that is the parser's.
        {"A.14", R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":10}])", R"({"/":9,"~1":10})"},
        {"A.15", R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":"10"}])", nullptr},
        {"A.16", R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc","def"]}])",
         R"({"foo":["bar",["abc","def"]]})"}}));

INSTANTIATE_TEST_SUITE_P(
    Corners, JsonPatch,
    testing::ValuesIn(std::vector<PatchCase>{
        {"no operations", R"({"a":1})", "[]", R"({"a":1})"},
        {"a list as the document", "[]", R"([{"op":"add","path":"/0","value":"x"}])", R"(["x"])"},
        {"add takes the place of what is there", R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])",
         R"({"a":2})"},
        {"add of null", R"({"a":1})", R"([{"op":"add","path":"/b","value":null}])", R"({"a":1,"b":null})"},
        {"add as the whole document", R"({"a":1})", R"([{"op":"add","path":"","value":{"b":2}}])",
         R"({"b":2})"},
        {"replace of the whole document", R"({"a":1})", R"([{"op":"replace","path":"","value":[1]}])", "[1]"},
        {"an empty key", R"({"a":1})", R"([{"op":"add","path":"/","value":2}])", R"({"a":1,"":2})"},
        {"a key of digits in an object", R"({"a":1})", R"([{"op":"add","path":"/0","value":2}])",
         R"({"a":1,"0":2})"},
        {"a key that is a dash in an object", R"({"a":1})", R"([{"op":"add","path":"/-","value":2}])",
         R"({"a":1,"-":2})"},
        {"both escapes, in their order", R"({"a/b":1,"m~n":2,"~1":3})",
         R"([{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"}])", R"({"~1":3})"},
        {"an add at the end by its index", R"([1,2])", R"([{"op":"add","path":"/2","value":3}])", "[1,2,3]"},
        {"an add one past the end", R"([1,2])", R"([{"op":"add","path":"/3","value":3}])", nullptr},
        {"a negative index", R"([1,2])", R"([{"op":"add","path":"/-1","value":3}])", nullptr},
        {"an index with a leading zero", R"([1,2])", R"([{"op":"test","path":"/01","value":2}])", nullptr},
        {"an index with an exponent", R"([1,2])", R"([{"op":"test","path":"/1e0","value":2}])", nullptr},
        {"a word as an index", R"([1,2])", R"([{"op":"add","path":"/bar","value":2}])", nullptr},
        {"a key of what is no container", R"({"a":"x"})", R"([{"op":"add","path":"/a/b","value":2}])",
         nullptr},
        {"a dash where there must be something", R"([1])", R"([{"op":"remove","path":"/-"}])", nullptr},
        {"remove of what is not there", R"({"a":1})", R"([{"op":"remove","path":"/b"}])", nullptr},
        {"remove past the end", R"([1])", R"([{"op":"remove","path":"/1"}])", nullptr},
        {"remove of everything", R"({"a":1})", R"([{"op":"remove","path":""}])", nullptr},
        {"replace of what is not there", R"({"a":1})", R"([{"op":"replace","path":"/b","value":1}])",
         nullptr},
        {"replace in a list", R"([1,2])", R"([{"op":"replace","path":"/0","value":{"x":1}}])",
         R"([{"x":1},2])"},
        {"replace of null", R"({"a":null})", R"([{"op":"replace","path":"/a","value":"x"}])", R"({"a":"x"})"},
        {"test with keys in another order", R"({"a":{"x":1,"y":[1,2]}})",
         R"([{"op":"test","path":"/a","value":{"y":[1,2],"x":1}}])", R"({"a":{"x":1,"y":[1,2]}})"},
        {"test of a number in another form", R"({"a":1})", R"([{"op":"test","path":"/a","value":1.0}])",
         R"({"a":1})"},
        {"test of null", R"({"a":null})", R"([{"op":"test","path":"/a","value":null}])", R"({"a":null})"},
        {"test of null where there is nothing", R"({})", R"([{"op":"test","path":"/a","value":null}])",
         nullptr},
        {"test with one item more", R"({"a":[1]})", R"([{"op":"test","path":"/a","value":[1,2]}])", nullptr},
        {"test of false is not null", R"({"a":false})", R"([{"op":"test","path":"/a","value":null}])",
         nullptr},
        {"test of the whole", R"({"a":1})", R"([{"op":"test","path":"","value":{"a":1}}])", R"({"a":1})"},
        {"move to where it is", R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])", R"({"a":1})"},
        {"move into itself", R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", nullptr},
        {"move of what only begins alike", R"({"a":1,"ab":{}})",
         R"([{"op":"move","from":"/a","path":"/ab/c"}])", R"({"ab":{"c":1}})"},
        {"move of nothing", R"({})", R"([{"op":"move","from":"/a","path":"/b"}])", nullptr},
        {"move out of a list", R"({"a":[1,{"b":2}]})", R"([{"op":"move","from":"/a/1/b","path":"/c"}])",
         R"({"a":[1,{}],"c":2})"},
        {"copy leaves the first", R"({"a":{"x":1}})",
         R"([{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/x","value":2}])",
         R"({"a":{"x":1},"b":{"x":2}})"},
        {"copy into itself", R"({"a":1})", R"([{"op":"copy","from":"","path":"/b"}])",
         R"({"a":1,"b":{"a":1}})"},
        {"copy of nothing", R"({})", R"([{"op":"copy","from":"/a","path":"/b"}])", nullptr},
        {"no op", R"({})", R"([{"path":"/a","value":1}])", nullptr},
        {"no path", R"({})", R"([{"op":"add","value":1}])", nullptr},
        {"no value", R"({})", R"([{"op":"add","path":"/a"}])", nullptr},
        {"no from", R"({"a":1})", R"([{"op":"copy","path":"/a"}])", nullptr},
        {"an operation that there is not", R"({})", R"([{"op":"spam","path":"/a","value":1}])", nullptr},
        {"operations are written in small letters", R"({})", R"([{"op":"ADD","path":"/a","value":1}])",
         nullptr},
        {"a path without its slash", R"({"a":1})", R"([{"op":"remove","path":"a"}])", nullptr},
        {"a tilde on its own", R"({"~":1})", R"([{"op":"remove","path":"/~"}])", nullptr},
        {"a tilde before another digit", R"({"~2":1})", R"([{"op":"remove","path":"/~2"}])", nullptr},
        {"an unknown tail after good work", R"({"a":1})",
         R"([{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}])", nullptr}}));

TEST(JsonPatchErrors, SayBadRequestOfWhatIsNoPatch) {
  for (const char* patch :
       {R"({"op":"add"})", R"("x")", "[1]", R"([{"op":1,"path":"/a"}])",
        R"([{"op":"add","path":{},"value":1}])", R"([{"op":"move","path":"/a","from":7}])"}) {
    EXPECT_EQ(CodeOf(ApplyJsonPatch(J("{}"), J(patch)).status()), 400) << patch;
  }
}

TEST(JsonPatchErrors, NameTheOperationAndThePath) {
  const auto patched = ApplyJsonPatch(J("{}"), J(R"([{"op":"remove","path":"/spec/replicas"}])"));
  EXPECT_THAT(std::string(Message(patched.status())), HasSubstr("/spec/replicas"));
  EXPECT_EQ(kube::ToApiError(patched.status())->reason, "Invalid");
}

TEST(JsonPatchBounds, RefuseMoreThanTenThousandOperations) {
  Array operations(10'000, J(R"({"op":"test","path":"/a","value":1})"));
  EXPECT_TRUE(ApplyJsonPatch(J(R"({"a":1})"), operations).ok());
  operations.push_back(operations.front());
  EXPECT_EQ(CodeOf(ApplyJsonPatch(J(R"({"a":1})"), operations).status()), 413);
}

TEST(JsonPatchBounds, RefuseCopiesThatDoubleTheDocumentOverAndOver) {
  const Array operations(100, J(R"({"op":"copy","from":"/a","path":"/a/-"})"));
  EXPECT_EQ(CodeOf(ApplyJsonPatch(J(R"({"a":["x"]})"), operations).status()), 413);
}

TEST(JsonPatchBounds, RefuseADocumentDeeperThanItCouldBeReadAgain) {
  Array chain;
  for (int i = 0; i < 200; ++i) {
    chain.push_back(J(R"({"op":"add","path":"/b","value":{}})"));
    chain.push_back(J(R"({"op":"move","from":"/a","path":"/b/a"})"));
    chain.push_back(J(R"({"op":"move","from":"/b","path":"/a"})"));
  }
  EXPECT_EQ(CodeOf(ApplyJsonPatch(J(R"({"a":{}})"), chain).status()), 422);
  const Array copies(200, J(R"({"op":"copy","from":"","path":"/a"})"));
  EXPECT_EQ(CodeOf(ApplyJsonPatch(J(R"({"a":{}})"), copies).status()), 422);
}

TEST(JsonPatchBounds, RefuseToShiftALongListOverAndOver) {
  const Document before = Object{{"a", Array(100'000, Document(1))}};
  for (const char* operation : {R"({"op":"remove","path":"/a/0"})", R"({"op":"add","path":"/a/0","value":1})",
                                R"({"op":"move","from":"/a/0","path":"/a/9"})"}) {
    EXPECT_EQ(CodeOf(ApplyJsonPatch(before, Array(10'000, J(operation))).status()), 413) << operation;
    EXPECT_TRUE(ApplyJsonPatch(before, Array(400, J(operation))).ok()) << operation;
  }
  EXPECT_TRUE(ApplyJsonPatch(before, Array(10'000, J(R"({"op":"add","path":"/a/-","value":1})"))).ok());
}

TEST(JsonPatchProperty, AddThenRemoveAtTheSamePathLeavesTheDocument) {
  const Document before = J(R"({"a":{"b":[1,2,{"c":3}]},"d/e":"x","f~g":[[]]})");
  for (const char* path :
       {"/new", "/a/new", "/a/b/0", "/a/b/1", "/a/b/3", "/a/b/2/new", "/f~0g/0/0", "/d~1x"}) {
    Array operations{Object{{"op", "add"}, {"path", path}, {"value", J(R"({"deep":[null]})")}},
                     Object{{"op", "remove"}, {"path", path}}};
    const auto after = ApplyJsonPatch(before, operations);
    ASSERT_TRUE(after.ok()) << path << Message(after.status());
    EXPECT_EQ(PrintJson(*after), PrintJson(before)) << path;
  }
}

}  // namespace
}  // namespace trainyard::apiserver
