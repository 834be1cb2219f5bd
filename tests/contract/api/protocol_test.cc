// What an API server says about itself, and how it refuses what makes no sense.
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

class Protocol : public ApiContract {};

TEST_P(Protocol, TellsItsVersionAndHealth) {
  EXPECT_FALSE(Get("/version").Str({"gitVersion"}).empty());
  EXPECT_EQ(Get("/readyz").code, 200);
  EXPECT_EQ(Get("/livez").code, 200);
}

TEST_P(Protocol, TellsWhatItServes) {
  EXPECT_EQ(*Find(Get("/api").body, {"versions"}), *ParseJson(R"(["v1"])"));
  const Answer groups = Get("/apis");
  EXPECT_EQ(groups.Str({"kind"}), "APIGroupList");
  std::vector<std::string> names;
  for (const Document& group : *ArrayAt(groups.body, {"groups"}))
    names.emplace_back(StringAt(group, {"name"}));
  for (const char* name : {"apiextensions.k8s.io", "coordination.k8s.io"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  const Answer core = Get("/api/v1");
  bool has_pods = false;
  for (const Document& resource : *ArrayAt(core.body, {"resources"})) {
    if (StringAt(resource, {"name"}) != "pods") continue;
    has_pods = true;
    EXPECT_EQ(StringAt(resource, {"kind"}), "Pod");
    EXPECT_TRUE(BoolAt(resource, {"namespaced"}));
    EXPECT_EQ(*Find(resource, {"shortNames"}), *ParseJson(R"(["po"])"));
  }
  EXPECT_TRUE(has_pods);
}

TEST_P(Protocol, AnswersUnknownPathsWithAStatus) {
  for (const char* path :
       {"/api/v1/nothings", "/apis/no.such.group/v1/things", "/apis/no.such.group", "/api/v2"}) {
    EXPECT_EQ(Get(path).code, 404) << path;
  }
}

TEST_P(Protocol, RefusesMethodsThatMeanNothing) {
  const Answer answer = Put(In("configmaps"), Object{});
  EXPECT_EQ(answer.code, 405);
  EXPECT_EQ(answer.reason(), "MethodNotAllowed");
}

TEST_P(Protocol, RefusesABodyThatIsNoDocument) {
  for (const char* body : {"{", "", "[]", "nonsense", "{\"metadata\":5}"}) {
    const Answer answer = Post(In("configmaps"), body);
    EXPECT_EQ(answer.code, 400) << body;
    EXPECT_EQ(answer.Str({"kind"}), "Status") << body;
  }
}

TEST_P(Protocol, RefusesABodyOfAnotherKind) {
  EXPECT_EQ(Post(In("configmaps"), R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}})").code,
            400);
}

TEST_P(Protocol, ReadsYaml) {
  const Answer made =
      Send("POST", In("configmaps"), "metadata:\n  name: c\ndata:\n  a: \"1\"\n", "application/yaml");
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(made.Str({"data", "a"}), "1");
  EXPECT_EQ(Send("POST", In("configmaps"), "a: [", "application/yaml").code, 400);
}

TEST_P(Protocol, RefusesTypesThatItCannotRead) {
  EXPECT_EQ(Send("POST", In("configmaps"), "{}", "text/html").code, 415);
  EXPECT_EQ(Send("GET", In("configmaps"), "", "", "text/html").code, 406);
}

TEST_P(Protocol, AllowsItsUserEverything) {
  const Answer review = Post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                             R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",
                                 "spec":{"resourceAttributes":{"verb":"create","resource":"pods"}}})");
  EXPECT_EQ(review.code, 201);
  EXPECT_TRUE(BoolAt(review.body, {"status", "allowed"}));
}

INSTANTIATE_TEST_SUITE_P(Apis, Protocol, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::testing
