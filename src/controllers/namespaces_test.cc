// How namespaces and definitions begin and end.
#include "controllers/control_testing.h"
#include "controllers/namespace_basics.h"
#include "controllers/namespace_ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::controllers {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const kube::Resource kConfigMaps = kube::Resource::ConfigMaps();
const kube::Resource kNamespaces = kube::Resource::Namespaces();
const kube::Resource kDefinitions = kube::Resource::CustomResourceDefinitions();
const kube::Resource kThings{"example.com", "v1", "things", "Thing", true};
constexpr std::string_view kThingDefinition = R"({"metadata":{"name":"things.example.com"},"spec":{
    "group":"example.com","scope":"Namespaced","names":{"kind":"Thing","plural":"things"},"versions":[
    {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})";

// "status reason: message" of a condition; empty if there is none.
std::string Condition(const Document& object, std::string_view type) {
  if (const Array* conditions = ArrayAt(object, {"status", "conditions"})) {
    for (const Document& condition : *conditions) {
      if (StringAt(condition, {"type"}) != type) continue;
      return StrCat(StringAt(condition, {"status"}), " ", StringAt(condition, {"reason"}), ": ",
                    StringAt(condition, {"message"}));
    }
  }
  return "";
}

TEST(SetNamespaceConditions, SaysWhatIsLeft) {
  Document ns(Object{});
  Remains remains{.objects = {{"pods", 2}, {"things.example.com", 1}}, .finalizers = {{"hold", 1}}};
  EXPECT_TRUE(SetNamespaceConditions(ns, remains, "", absl::UnixEpoch()));
  EXPECT_EQ(Condition(ns, "NamespaceContentRemaining"),
            "True SomeResourcesRemain: still in it: pods: 2, things.example.com: 1");
  EXPECT_EQ(Condition(ns, "NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: objects held by finalizers: hold: 1");
  EXPECT_THAT(Condition(ns, "NamespaceDeletionContentFailure"), HasSubstr("False ContentDeleted"));
  EXPECT_FALSE(SetNamespaceConditions(ns, remains, "", absl::UnixEpoch() + absl::Hours(1)));
  EXPECT_TRUE(SetNamespaceConditions(ns, {}, "the disk is full", absl::UnixEpoch()));
  EXPECT_EQ(Condition(ns, "NamespaceDeletionContentFailure"), "True ContentDeletionFailed: the disk is full");
  EXPECT_THAT(Condition(ns, "NamespaceContentRemaining"), HasSubstr("False ContentRemoved"));
}

class NamespacesTest : public ::testing::Test {
 protected:
  NamespacesTest() {
    world_.Create(kNamespaces, "", R"({"metadata":{"name":"team"}})");
    world_.Settle();
  }
  void Release(const kube::Resource& resource, const kube::ObjectKey& key) {
    Document object = *world_.Find(resource, key);
    Remove(*ObjectAt(object, {"metadata"}), "finalizers");
    world_.Update(resource, key, object);
  }

  ControlledServer world_{{.authority_pem = "THE CA"}};
};

TEST_F(NamespacesTest, HaveAnAccountAndTheAuthoritysCertificate) {
  for (const char* ns : {"default", "kube-system", "team"}) {
    EXPECT_THAT(world_.Names(kube::Resource::ServiceAccounts(), ns), ElementsAre("default"));
    const auto map = world_.Find(kConfigMaps, {ns, "kube-root-ca.crt"});
    ASSERT_TRUE(map) << ns;
    EXPECT_EQ(StringAt(*map, {"data", "ca.crt"}), "THE CA");
  }
}

TEST_F(NamespacesTest, GetThemBackWhenTheyAreDeletedOrChanged) {
  world_.Delete(kube::Resource::ServiceAccounts(), {"team", "default"});
  Document map = *world_.Find(kConfigMaps, {"team", "kube-root-ca.crt"});
  map.at("data").get_object()["ca.crt"] = "FORGED";
  map.at("data").get_object()["more"] = "x";
  world_.Update(kConfigMaps, {"team", "kube-root-ca.crt"}, map);
  world_.Settle();
  EXPECT_TRUE(world_.Exists(kube::Resource::ServiceAccounts(), {"team", "default"}));
  map = *world_.Find(kConfigMaps, {"team", "kube-root-ca.crt"});
  EXPECT_EQ(StringAt(map, {"data", "ca.crt"}), "THE CA");
  EXPECT_EQ(StringAt(map, {"data", "more"}), "x") << "what is not ours is left";
  world_.Delete(kConfigMaps, {"team", "kube-root-ca.crt"});
  world_.Settle();
  EXPECT_TRUE(world_.Exists(kConfigMaps, {"team", "kube-root-ca.crt"}));
}

TEST_F(NamespacesTest, GetANewCertificateWhenTheAuthorityChanges) {
  ControlledServer world({.authority_pem = "OLD"});
  world.Settle();
  world.StopControllers();
  world.StartControllersWith({.authority_pem = "NEW"});
  world.Settle();
  EXPECT_EQ(StringAt(*world.Find(kConfigMaps, {"default", "kube-root-ca.crt"}), {"data", "ca.crt"}), "NEW");
}

TEST_F(NamespacesTest, EndWithAllThatIsInThem) {
  world_.Create(kDefinitions, "", kThingDefinition);
  world_.Settle();
  world_.Create(kThings, "team", R"({"metadata":{"name":"thing"}})");
  world_.Create(kConfigMaps, "team", R"({"metadata":{"name":"map"}})");
  world_.Create(kube::Resource::Events(), "team",
                R"({"metadata":{"name":"event"},"involvedObject":{"namespace":"team","name":"x"}})");
  world_.Create(kConfigMaps, "default", R"({"metadata":{"name":"map"}})");
  world_.Delete(kNamespaces, {"", "team"});
  world_.Wait(absl::Seconds(1));
  EXPECT_FALSE(world_.Exists(kNamespaces, {"", "team"}));
  for (const kube::Resource& resource :
       {kThings, kConfigMaps, kube::Resource::Events(), kube::Resource::ServiceAccounts()}) {
    EXPECT_THAT(world_.Names(resource, "team"), IsEmpty()) << resource.plural;
  }
  EXPECT_TRUE(world_.Exists(kConfigMaps, {"default", "map"}));
}

TEST_F(NamespacesTest, WaitForWhatIsHeldAndSaySo) {
  world_.Create(kConfigMaps, "team", R"({"metadata":{"name":"held","finalizers":["example.com/hold"]}})");
  world_.Delete(kNamespaces, {"", "team"});
  world_.Wait(absl::Minutes(1));
  const auto ns = world_.Find(kNamespaces, {"", "team"});
  ASSERT_TRUE(ns);
  EXPECT_EQ(Condition(*ns, "NamespaceContentRemaining"),
            "True SomeResourcesRemain: still in it: configmaps: 1");
  EXPECT_EQ(Condition(*ns, "NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: objects held by finalizers: example.com/hold: 1");
  EXPECT_TRUE(IsBeingDeleted(*world_.Find(kConfigMaps, {"team", "held"})));
  Release(kConfigMaps, {"team", "held"});
  world_.Wait(absl::Seconds(1));
  EXPECT_FALSE(world_.Exists(kNamespaces, {"", "team"}));
}

TEST_F(NamespacesTest, StayWhileAnythingCannotBeListed) {
  world_.Delete(kNamespaces, {"", "team"});
  world_.transport().SetIntercept(
      [](const kube::Request& request) -> std::optional<absl::StatusOr<kube::Response>> {
        if (request.target.find("/team/secrets?") == std::string::npos) return std::nullopt;
        return kube::ToResponse({.code = 500, .reason = "InternalError", .message = "broken"});
      });
  world_.Wait(absl::Minutes(2));
  EXPECT_TRUE(world_.Exists(kNamespaces, {"", "team"}));
  world_.transport().SetIntercept(nullptr);
  world_.Wait(absl::Minutes(1));
  EXPECT_FALSE(world_.Exists(kNamespaces, {"", "team"}));
}

TEST_F(NamespacesTest, AreLeftToWhoeverElseFinalizesThem) {
  Document ns = *world_.Find(kNamespaces, {"", "team"});
  ns.at("metadata").get_object()["finalizers"] = Array{"example.com/mine"};
  world_.Update(kNamespaces, {"", "team"}, ns);
  world_.Delete(kNamespaces, {"", "team"});
  world_.Wait(absl::Minutes(1));
  ASSERT_TRUE(world_.Exists(kNamespaces, {"", "team"}));
  EXPECT_THAT(world_.Names(kConfigMaps, "team"), IsEmpty());
  Release(kNamespaces, {"", "team"});
  EXPECT_FALSE(world_.Exists(kNamespaces, {"", "team"}));
}

TEST_F(NamespacesTest, DefinitionsEndAfterTheirObjects) {
  world_.Create(kDefinitions, "", kThingDefinition);
  world_.Settle();
  world_.Create(kThings, "team", R"({"metadata":{"name":"held","finalizers":["example.com/hold"]}})");
  world_.Create(kThings, "default", R"({"metadata":{"name":"quick"}})");
  world_.Delete(kDefinitions, {"", "things.example.com"});
  world_.Wait(absl::Minutes(1));
  EXPECT_THAT(world_.Names(kThings, ""), ElementsAre("held"));
  const auto definition = world_.Find(kDefinitions, {"", "things.example.com"});
  ASSERT_TRUE(definition);
  EXPECT_EQ(Condition(*definition, "Terminating"),
            "True InstanceDeletionInProgress: its objects are being deleted: things.example.com: 1; held by "
            "finalizers: example.com/hold: 1");
  Release(kThings, {"team", "held"});
  world_.Wait(absl::Seconds(1));
  EXPECT_FALSE(world_.Exists(kDefinitions, {"", "things.example.com"}));
  EXPECT_EQ(world_.server().resources()->Find("example.com", "things"), nullptr);
}

TEST_F(NamespacesTest, WhatBelongedToADefinitionsObjectsEndsToo) {
  world_.Create(kDefinitions, "", kThingDefinition);
  world_.Settle();
  const Document thing = world_.Create(kThings, "team", R"({"metadata":{"name":"thing"}})");
  world_.Create(kConfigMaps, "team",
                StrCat(R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"example.com/v1",
                          "kind":"Thing","name":"thing","uid":")",
                       UidOf(thing), R"("}]}})"));
  world_.Settle();
  world_.Delete(kDefinitions, {"", "things.example.com"});
  world_.Wait(absl::Minutes(1));
  EXPECT_FALSE(world_.Exists(kDefinitions, {"", "things.example.com"}));
  EXPECT_THAT(world_.Names(kConfigMaps, "team"), Not(Contains("owned")));
}

TEST_F(NamespacesTest, DefinitionsCanComeBack) {
  for (int i = 0; i < 2; ++i) {
    world_.Create(kDefinitions, "", kThingDefinition);
    world_.Settle();
    world_.Create(kThings, "team", R"({"metadata":{"name":"thing"}})");
    world_.Delete(kDefinitions, {"", "things.example.com"});
    world_.Wait(absl::Seconds(1));
    ASSERT_FALSE(world_.Exists(kDefinitions, {"", "things.example.com"}));
  }
}

}  // namespace
}  // namespace trainyard::controllers
