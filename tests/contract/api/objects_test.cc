// Objects made, read, changed and deleted.
#include "tests/contract/api/api_contract.h"

namespace trainyard::testing {
namespace {

using Objects = ApiContract;
using ::testing::TestWithParam;

constexpr std::string_view kConfig = R"({"metadata":{"name":"c"},"data":{"a":"1"}})";

std::string Pod(std::string_view name, std::string_view more = "") {
  return StrCat(R"({"metadata":{"name":")", name,
                R"("},"spec":{"containers":[{"name":"main","image":"busybox"}])", more, "}}");
}

TEST_P(Objects, GetAnIdentityWhenTheyAreMade) {
  const Answer made = Post(In("configmaps"), kConfig);
  ASSERT_EQ(made.code, 201);
  EXPECT_EQ(made.Str({"kind"}), "ConfigMap");
  EXPECT_EQ(made.Str({"apiVersion"}), "v1");
  EXPECT_EQ(made.Str({"metadata", "namespace"}), ns_);
  EXPECT_EQ(made.Str({"metadata", "uid"}).size(), 36U);
  EXPECT_FALSE(made.Str({"metadata", "creationTimestamp"}).empty());
  EXPECT_FALSE(made.Str({"metadata", "resourceVersion"}).empty());
  const Answer got = Get(In("configmaps/c"));
  EXPECT_EQ(got.code, 200);
  EXPECT_EQ(got.body, made.body);
}

TEST_P(Objects, OfANameThatIsTakenAreRefused) {
  ASSERT_EQ(Post(In("configmaps"), kConfig).code, 201);
  const Answer again = Post(In("configmaps"), kConfig);
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");
  EXPECT_EQ(again.Str({"details", "name"}), "c");
}

TEST_P(Objects, ThatAreNotThereAreNotFound) {
  for (const char* method : {"GET", "DELETE"}) {
    const Answer answer = Send(method, In("configmaps/none"));
    EXPECT_EQ(answer.code, 404) << method;
    EXPECT_EQ(answer.reason(), "NotFound") << method;
  }
  EXPECT_EQ(Patch(In("configmaps/none"), "merge", "{}").code, 404);
}

TEST_P(Objects, GetAGeneratedNameFromItsBeginning) {
  const Answer one = Post(In("configmaps"), R"({"metadata":{"generateName":"part-"}})");
  const Answer two = Post(In("configmaps"), R"({"metadata":{"generateName":"part-"}})");
  ASSERT_EQ(one.code, 201);
  ASSERT_EQ(two.code, 201);
  EXPECT_TRUE(one.Str({"metadata", "name"}).starts_with("part-"));
  EXPECT_EQ(one.Str({"metadata", "name"}).size(), 10U);
  EXPECT_NE(one.Str({"metadata", "name"}), two.Str({"metadata", "name"}));
}

TEST_P(Objects, WithoutANameOrWithABadOneAreInvalid) {
  EXPECT_EQ(Post(In("configmaps"), R"({"metadata":{}})").code, 422);
  const Answer bad = Post(In("configmaps"), R"({"metadata":{"name":"Not_A_Name"}})");
  EXPECT_EQ(bad.code, 422);
  EXPECT_EQ(bad.reason(), "Invalid");
  const Array* causes = ArrayAt(bad.body, {"details", "causes"});
  ASSERT_NE(causes, nullptr);
  EXPECT_EQ(StringAt(causes->at(0), {"field"}), "metadata.name");
}

TEST_P(Objects, InANamespaceThatIsNotThereAreRefused) {
  EXPECT_EQ(Post("/api/v1/namespaces/no-such-place/configmaps", kConfig).code, 404);
}

TEST_P(Objects, OfAnotherNamespaceThanTheRequestsAreRefused) {
  EXPECT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"c","namespace":"other"}})").code, 400);
}

TEST_P(Objects, ReadAtAnOldVersionCannotBeReplaced) {
  Answer made = Post(In("configmaps"), kConfig);
  ASSERT_EQ(Patch(In("configmaps/c"), "merge", R"({"data":{"b":"2"}})").code, 200);
  const Answer stale = Put(In("configmaps/c"), made.body);
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(stale.reason(), "Conflict");
  Remove(MakeObjectAt(made.body, {"metadata"}), "resourceVersion");
  EXPECT_EQ(Put(In("configmaps/c"), made.body).code, 200);
}

TEST_P(Objects, OfAnotherUidCannotBeReplaced) {
  Answer made = Post(In("configmaps"), kConfig);
  MakeObjectAt(made.body, {"metadata"})["uid"] = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(Put(In("configmaps/c"), made.body).code, 409);
}

TEST_P(Objects, ReplacedByTheSameKeepTheirVersion) {
  const Answer made = Post(In("configmaps"), kConfig);
  const Answer same = Put(In("configmaps/c"), made.body);
  EXPECT_EQ(same.code, 200);
  EXPECT_EQ(same.Str({"metadata", "resourceVersion"}), made.Str({"metadata", "resourceVersion"}));
}

TEST_P(Objects, KeepWhatIsNotTheClientsToChange) {
  Answer made = Post(In("configmaps"), kConfig);
  const std::string created(made.Str({"metadata", "creationTimestamp"}));
  MakeObjectAt(made.body, {"metadata"})["creationTimestamp"] = "2001-01-01T00:00:00Z";
  const Answer changed = Put(In("configmaps/c"), made.body);
  EXPECT_EQ(changed.code, 200);
  EXPECT_EQ(changed.Str({"metadata", "creationTimestamp"}), created);
}

TEST_P(Objects, WithAResourceVersionCannotBeMade) {
  // Ours says 400; a kube-apiserver says 500, though nothing is wrong with it.
  EXPECT_GE(Post(In("configmaps"), R"({"metadata":{"name":"c","resourceVersion":"5"}})").code, 400);
  EXPECT_EQ(Get(In("configmaps/c")).code, 404);
}

TEST_P(Objects, OfADryRunAreShownAndNotKept) {
  EXPECT_EQ(Post(StrCat(In("configmaps"), "?dryRun=All"), kConfig).code, 201);
  EXPECT_EQ(Get(In("configmaps/c")).code, 404);
  ASSERT_EQ(Post(In("configmaps"), kConfig).code, 201);
  EXPECT_EQ(Delete(StrCat(In("configmaps/c"), "?dryRun=All")).code, 200);
  EXPECT_EQ(Get(In("configmaps/c")).code, 200);
}

TEST_P(Objects, AreDeletedOnlyIfThePreconditionsHold) {
  const Answer made = Post(In("configmaps"), kConfig);
  EXPECT_EQ(Delete(In("configmaps/c"), R"({"preconditions":{"uid":"other"}})").code, 409);
  EXPECT_EQ(Get(In("configmaps/c")).code, 200);
  EXPECT_EQ(Delete(In("configmaps/c"),
                   StrCat(R"({"preconditions":{"uid":")", made.Str({"metadata", "uid"}), R"("}})"))
                .code,
            200);
  EXPECT_EQ(Get(In("configmaps/c")).code, 404);
}

TEST_P(Objects, WithFinalizersWaitForThemToGo) {
  ASSERT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"c","finalizers":["a.b/hold"]}})").code, 201);
  EXPECT_EQ(Delete(In("configmaps/c")).code, 200);
  const Answer held = Get(In("configmaps/c"));
  ASSERT_EQ(held.code, 200);
  EXPECT_FALSE(held.Str({"metadata", "deletionTimestamp"}).empty());
  const Answer freed = Patch(In("configmaps/c"), "merge", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(freed.code, 200);
  EXPECT_EQ(freed.Str({"metadata", "name"}), "c") << "it is shown for the last time";
  EXPECT_EQ(Get(In("configmaps/c")).code, 404);
}

TEST_P(Objects, StayWhenTheOptionsOfTheirDeletionCannotBeRead) {
  ASSERT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"c"}})").code, 201);
  for (const char* body :
       {R"({"dryRun":"All"})", R"({"preconditions":{"uid":5}})", R"({"gracePeriodSeconds":"x"})", "{"}) {
    const int code = Send("DELETE", In("configmaps/c"), body).code;
    if (GetParam().name == "Real" && code == 500) continue;  // as some versions of it say
    EXPECT_EQ(code, 400) << body;
  }
  EXPECT_EQ(Get(In("configmaps/c")).code, 200);
}

TEST_P(Objects, OfTheSystemCannotBeDeleted) {
  for (const char* name : {"default", "kube-system", "kube-public"}) {
    EXPECT_EQ(Delete(StrCat("/api/v1/namespaces/", name)).code, 403) << name;
  }
  EXPECT_EQ(Send("DELETE", "/api/v1/namespaces").code, 405);
  EXPECT_EQ(Get("/api/v1/namespaces/default").code, 200);
}

TEST_P(Objects, WithAValueOfAnotherTypeAreRefused) {
  const auto pod = [](std::string_view field) {
    return StrCat(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],)", field,
                  "}}");
  };
  EXPECT_EQ(Post(In("pods"), pod(R"("tolerations":"x")")).code, 400);
  EXPECT_EQ(Post(In("pods"), pod(R"("restartPolicy":5)")).code, 400);
  EXPECT_EQ(Post(In("configmaps"), R"({"metadata":{"name":"m","labels":[]}})").code, 400);
  EXPECT_EQ(Post(In("secrets"), R"({"metadata":{"name":"s"},"data":"x","stringData":{"a":"b"}})").code, 400);
}

TEST_P(Objects, AreDeletedTogetherByASelector) {
  for (const char* name : {"a", "b", "c"}) {
    const char* label = *name == 'c' ? "keep" : "drop";
    ASSERT_EQ(Post(In("configmaps"),
                   StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"do":")", label, R"("}}})"))
                  .code,
              201);
  }
  EXPECT_EQ(Delete(StrCat(In("configmaps"), "?labelSelector=do%3Ddrop")).code, 200);
  EXPECT_EQ(Names(Get(StrCat(In("configmaps"), "?labelSelector=do"))), std::vector<std::string>{"c"});
}

TEST_P(Objects, OfAPodBeginPendingWithDefaults) {
  const Answer pod = Post(In("pods"), Pod("p"));
  ASSERT_EQ(pod.code, 201) << PrintJson(pod.body);
  EXPECT_EQ(pod.Str({"status", "phase"}), "Pending");
  EXPECT_EQ(pod.Str({"status", "qosClass"}), "BestEffort");
  EXPECT_EQ(pod.Str({"spec", "restartPolicy"}), "Always");
  EXPECT_EQ(pod.Str({"spec", "dnsPolicy"}), "ClusterFirst");
  EXPECT_EQ(IntAt(pod.body, {"spec", "terminationGracePeriodSeconds"}), 30);
  const Array* containers = ArrayAt(pod.body, {"spec", "containers"});
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(StringAt(containers->at(0), {"imagePullPolicy"}), "Always");
  EXPECT_EQ(StringAt(containers->at(0), {"terminationMessagePath"}), "/dev/termination-log");
}

TEST_P(Objects, OfAPodKeepTheirSpecAndTheirStatusApart) {
  ASSERT_EQ(Post(In("pods"), Pod("p")).code, 201);
  const Answer status = Patch(In("pods/p/status"), "merge",
                              R"({"status":{"message":"hello"},"spec":{"activeDeadlineSeconds":5}})");
  ASSERT_EQ(status.code, 200);
  EXPECT_EQ(status.Str({"status", "message"}), "hello");
  EXPECT_EQ(Find(status.body, {"spec", "activeDeadlineSeconds"}), nullptr);
  const Answer spec =
      Patch(In("pods/p"), "merge", R"({"status":{"message":"bye"},"spec":{"activeDeadlineSeconds":5}})");
  ASSERT_EQ(spec.code, 200);
  EXPECT_EQ(spec.Str({"status", "message"}), "hello");
  EXPECT_EQ(IntAt(spec.body, {"spec", "activeDeadlineSeconds"}), 5);
}

TEST_P(Objects, OfAPodCannotChangeTheirCommand) {
  ASSERT_EQ(Post(In("pods"), Pod("p")).code, 201);
  const Answer changed =
      Patch(In("pods/p"), "json", R"([{"op":"add","path":"/spec/containers/0/command","value":["x"]}])");
  EXPECT_EQ(changed.code, 422);
}

TEST_P(Objects, OfAPodAreBoundOnce) {
  ASSERT_EQ(Post(In("pods"), Pod("p")).code, 201);
  const std::string_view binding =
      R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})";
  EXPECT_EQ(Post(In("pods/p/binding"), binding).code, 201);
  EXPECT_EQ(Get(In("pods/p")).Str({"spec", "nodeName"}), "n1");
  EXPECT_EQ(Post(In("pods/p/binding"), binding).code, 409);
}

TEST_P(Objects, OfABoundPodAreGivenTheirGrace) {
  ASSERT_EQ(Post(In("pods"), Pod("p", R"(,"nodeName":"n1","terminationGracePeriodSeconds":7)")).code, 201);
  EXPECT_EQ(Delete(In("pods/p")).code, 200);
  const Answer going = Get(In("pods/p"));
  ASSERT_EQ(going.code, 200);
  EXPECT_EQ(IntAt(going.body, {"metadata", "deletionGracePeriodSeconds"}), 7);
  EXPECT_EQ(Delete(StrCat(In("pods/p"), "?gracePeriodSeconds=0")).code, 200);
  EXPECT_EQ(Get(In("pods/p")).code, 404);
}

TEST_P(Objects, OfAPodThatRunsNowhereGoAtOnce) {
  ASSERT_EQ(Post(In("pods"), Pod("p")).code, 201);
  EXPECT_EQ(Delete(In("pods/p")).code, 200);
  EXPECT_EQ(Get(In("pods/p")).code, 404);
}

TEST_P(Objects, OfAnEvictedPodGo) {
  ASSERT_EQ(Post(In("pods"), Pod("p")).code, 201);
  EXPECT_EQ(
      Post(In("pods/p/eviction"), R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}})")
          .code,
      201);
  EXPECT_EQ(Get(In("pods/p")).code, 404);
}

TEST_P(Objects, OfAServiceGetAnAddressThatStays) {
  const Answer made = Post(In("services"), R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})");
  ASSERT_EQ(made.code, 201) << PrintJson(made.body);
  const std::string address(made.Str({"spec", "clusterIP"}));
  EXPECT_FALSE(address.empty());
  EXPECT_EQ(made.Str({"spec", "type"}), "ClusterIP");
  const Answer changed = Patch(In("services/s"), "merge", R"({"spec":{"selector":{"a":"b"}}})");
  EXPECT_EQ(changed.Str({"spec", "clusterIP"}), address);
  EXPECT_EQ(Patch(In("services/s"), "merge", R"({"spec":{"clusterIP":"10.0.0.77"}})").code, 422);
  const Answer headless =
      Post(In("services"), R"({"metadata":{"name":"h"},"spec":{"clusterIP":"None","ports":[{"port":80}]}})");
  EXPECT_EQ(headless.Str({"spec", "clusterIP"}), "None");
}

TEST_P(Objects, OfASecretFoldPlainTextsIn) {
  const Answer made = Post(In("secrets"), R"({"metadata":{"name":"s"},"stringData":{"k":"v"}})");
  ASSERT_EQ(made.code, 201);
  EXPECT_EQ(made.Str({"data", "k"}), "dg==");
  EXPECT_EQ(made.Str({"type"}), "Opaque");
  EXPECT_EQ(Find(made.body, {"stringData"}), nullptr);
}

TEST_P(Objects, ThatAreInvalidSayWhichFieldIsWrong) {
  const Answer none = Post(In("pods"), R"({"metadata":{"name":"p"},"spec":{"containers":[]}})");
  EXPECT_EQ(none.code, 422);
  const Array* causes = ArrayAt(none.body, {"details", "causes"});
  ASSERT_NE(causes, nullptr);
  EXPECT_EQ(StringAt(causes->at(0), {"field"}), "spec.containers");
  EXPECT_EQ(StringAt(causes->at(0), {"reason"}), "FieldValueRequired");
}

TEST_P(Objects, WithUnknownFieldsAreRefusedWhenTheClientIsStrict) {
  const std::string_view body = R"({"metadata":{"name":"c"},"dta":{"a":"1"}})";
  EXPECT_EQ(Post(StrCat(In("configmaps"), "?fieldValidation=Strict"), body).code, 400);
  const Answer warned = Post(StrCat(In("configmaps"), "?fieldValidation=Warn"), body);
  EXPECT_EQ(warned.code, 201);
  EXPECT_EQ(Find(warned.body, {"dta"}), nullptr);
  bool told = false;
  for (const auto& [name, value] : warned.headers) told = told || value.find("dta") != std::string::npos;
  EXPECT_TRUE(told);
}

INSTANTIATE_TEST_SUITE_P(Apis, Objects, ::testing::ValuesIn(AllApiKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::testing
