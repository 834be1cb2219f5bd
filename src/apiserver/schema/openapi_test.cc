#include "apiserver/schema/openapi.h"

#include <functional>
#include <set>

#include "apiserver/schema/kind_table.h"
#include "apiserver/schema/schema_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

std::vector<ServedKind> SampleKinds() {
  std::vector<ServedKind> kinds;
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    if (kind.plural.empty()) continue;
    ServedKind served{.group = kind.group,
                      .version = kind.version,
                      .kind = kind.kind,
                      .plural = kind.plural,
                      .namespaced = kind.namespaced,
                      .schema = kind.schema};
    if (kind.kind == "Pod") served.subresources = {"status", "log", "binding", "eviction"};
    if (kind.kind.ends_with("Review")) served.verbs = {"create"};
    kinds.push_back(std::move(served));
  }
  kinds.push_back({.group = "stable.example.com",
                   .version = "v1",
                   .kind = "CronTab",
                   .plural = "crontabs",
                   .schema = SchemaOf(R"({"type":"object","properties":{"spec":{"type":"object","properties":{
                       "n":{"type":"integer","nullable":true},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}})"),
                   .subresources = {"status", "scale"}});
  kinds.push_back({.group = "stable.example.com",
                   .version = "v1",
                   .kind = "Blob",
                   .plural = "blobs",
                   .namespaced = false,
                   .schema = SchemaOf(R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})")});
  return kinds;
}

void VisitReferences(const Document& document, const std::function<void(std::string_view)>& visit) {
  if (const Array* array = document.if_array()) {
    for (const Document& item : *array) VisitReferences(item, visit);
  } else if (const Object* object = document.if_object()) {
    for (const auto& member : *object) {
      if (Key(member) == "$ref" && member.value().is_string()) visit(Text(member.value()));
      VisitReferences(member.value(), visit);
    }
  }
}

Document V3Of(std::string_view path) {
  for (const OpenApiV3Document& document : BuildOpenApiV3(SampleKinds())) {
    if (document.path == path) return Json(document.json);
  }
  return nullptr;
}

TEST(BuildOpenApiV2, DefinesAllThatItRefersTo) {
  const Document document = BuildOpenApiV2(SampleKinds());
  const Object& definitions = *ObjectAt(document, {"definitions"});
  std::size_t references = 0;
  VisitReferences(document, [&](std::string_view reference) {
    ++references;
    ASSERT_TRUE(reference.starts_with("#/definitions/"));
    EXPECT_TRUE(definitions.contains(reference.substr(14))) << reference;
  });
  EXPECT_GT(references, 500U);
}

TEST(BuildOpenApiV2, MarksEachKindSoThatKubectlFindsIt) {
  const Document document = BuildOpenApiV2(SampleKinds());
  EXPECT_EQ(PrintJson(*Find(document,
                            {"definitions", "io.k8s.api.core.v1.Pod", "x-kubernetes-group-version-kind"})),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  EXPECT_EQ(PrintJson(*Find(document, {"definitions", "com.example.stable.v1.CronTabList",
                                       "x-kubernetes-group-version-kind"})),
            R"([{"group":"stable.example.com","kind":"CronTabList","version":"v1"}])");
}

TEST(BuildOpenApiV2, SaysHowListsAreMerged) {
  const Document document = BuildOpenApiV2(SampleKinds());
  const Document& ports =
      *Find(document, {"definitions", "io.k8s.api.core.v1.Container", "properties", "ports"});
  EXPECT_EQ(StringAt(ports, {"x-kubernetes-patch-merge-key"}), "containerPort");
  EXPECT_EQ(StringAt(ports, {"x-kubernetes-patch-strategy"}), "merge");
  EXPECT_EQ(PrintJson(*Find(ports, {"x-kubernetes-list-map-keys"})), R"(["containerPort","protocol"])");
  const Document& volumes =
      *Find(document, {"definitions", "io.k8s.api.core.v1.PodSpec", "properties", "volumes"});
  EXPECT_EQ(StringAt(volumes, {"x-kubernetes-patch-strategy"}), "merge,retainKeys");
}

TEST(BuildOpenApiV2, LeavesAnOpenKindOpen) {
  const Document document = BuildOpenApiV2(SampleKinds());
  EXPECT_EQ(
      PrintJson(*Find(document, {"definitions", "com.example.stable.v1.Blob"})),
      R"({"type":"object","x-kubernetes-group-version-kind":[{"group":"stable.example.com","kind":"Blob","version":"v1"}]})");
}

TEST(BuildOpenApiV3, DefinesAllThatItRefersTo) {
  for (const OpenApiV3Document& each : BuildOpenApiV3(SampleKinds())) {
    const Document document = Json(each.json);
    const Object& schemas = *ObjectAt(document, {"components", "schemas"});
    VisitReferences(document, [&](std::string_view reference) {
      ASSERT_TRUE(reference.starts_with("#/components/schemas/"));
      EXPECT_TRUE(schemas.contains(reference.substr(21))) << reference;
    });
  }
}

TEST(BuildOpenApiV3, OffersWhatKubectlAsksForBeforeItPatches) {
  const Document document = V3Of("apis/stable.example.com/v1");
  const Document* patch = Find(
      document, {"paths", "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}", "patch"});
  ASSERT_NE(patch, nullptr);
  EXPECT_EQ(PrintJson(*Find(*patch, {"x-kubernetes-group-version-kind"})),
            R"({"group":"stable.example.com","kind":"CronTab","version":"v1"})");
  std::set<std::string> names;
  for (const Document& parameter : *ArrayAt(*patch, {"parameters"}))
    names.emplace(StringAt(parameter, {"name"}));
  for (const auto* name : {"dryRun", "fieldValidation", "fieldManager", "force"})
    EXPECT_THAT(names, Contains(name));
  EXPECT_NE(Find(document, {"paths", "/apis/stable.example.com/v1/crontabs", "get"}), nullptr);
  EXPECT_NE(
      Find(document,
           {"paths", "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale", "put"}),
      nullptr);
  EXPECT_NE(Find(document, {"paths", "/apis/stable.example.com/v1/blobs/{name}", "get"}), nullptr);
}

TEST(BuildOpenApiV3, OffersOnlyTheVerbsThatThereAre) {
  const Document document = V3Of("apis/authorization.k8s.io/v1");
  const Object& path =
      *ObjectAt(document, {"paths", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"});
  EXPECT_TRUE(path.contains("post"));
  EXPECT_FALSE(path.contains("get"));
  EXPECT_EQ(Find(document, {"paths", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/{name}"}),
            nullptr);
}

TEST(BuildOpenApiV3, GivesEachOperationAnIdOfItsOwn) {
  for (const OpenApiV3Document& each : BuildOpenApiV3(SampleKinds())) {
    std::set<std::string> ids;
    const Document document = Json(each.json);
    for (const auto& path : *ObjectAt(document, {"paths"})) {
      for (const auto& method : path.value().get_object()) {
        if (!method.value().is_object()) continue;
        const std::string id(StringAt(method.value(), {"operationId"}));
        EXPECT_TRUE(ids.insert(id).second) << id;
      }
    }
  }
}

TEST(PrintOpenApiV3Index, PointsToEachDocumentByItsHash) {
  const std::vector<OpenApiV3Document> documents = BuildOpenApiV3(SampleKinds());
  const Document index = Json(PrintOpenApiV3Index(documents));
  const std::string_view url = StringAt(index, {"paths", "api/v1", "serverRelativeURL"});
  EXPECT_TRUE(url.starts_with("/openapi/v3/api/v1?hash="));
  std::vector<ServedKind> fewer = SampleKinds();
  std::erase_if(fewer, [](const ServedKind& kind) { return kind.kind == "Pod"; });
  EXPECT_NE(
      StringAt(Json(PrintOpenApiV3Index(BuildOpenApiV3(fewer))), {"paths", "api/v1", "serverRelativeURL"}),
      url);
  EXPECT_EQ(PrintOpenApiV3Index(BuildOpenApiV3(SampleKinds())), PrintOpenApiV3Index(documents));
}

// ---- protobuf, read back by hand

using Fields = std::multimap<int, std::string>;

std::uint64_t TakeVarint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80U) break;
  }
  return value;
}

Fields FieldsOf(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = TakeVarint(bytes);
    const int field = static_cast<int>(tag >> 3U);
    if ((tag & 7U) == 0) {
      fields.emplace(field, std::to_string(TakeVarint(bytes)));
    } else {
      const std::uint64_t size = (tag & 7U) == 1 ? 8 : TakeVarint(bytes);
      EXPECT_LE(size, bytes.size());
      fields.emplace(field, std::string(bytes.substr(0, size)));
      bytes.remove_prefix(std::min<std::size_t>(size, bytes.size()));
    }
  }
  return fields;
}

std::string At(const Fields& fields, int field) {
  const auto found = fields.find(field);
  return found == fields.end() ? "" : found->second;
}

// Messages with a name and a value.
std::map<std::string, std::string> NamedOf(const Fields& fields, int field) {
  std::map<std::string, std::string> named;
  for (auto [at, end] = fields.equal_range(field); at != end; ++at) {
    const Fields each = FieldsOf(at->second);
    named[At(each, 1)] = At(each, 2);
  }
  return named;
}

TEST(EncodeOpenApiV2, HoldsTheSameDefinitions) {
  const Document document = BuildOpenApiV2(SampleKinds());
  const Fields top = FieldsOf(EncodeOpenApiV2(document));
  EXPECT_EQ(At(top, 1), "2.0");
  EXPECT_EQ(At(FieldsOf(At(top, 2)), 1), "Kubernetes");
  const auto definitions = NamedOf(FieldsOf(At(top, 9)), 1);
  EXPECT_EQ(definitions.size(), ObjectAt(document, {"definitions"})->size());
  const Fields pod = FieldsOf(definitions.at("io.k8s.api.core.v1.Pod"));
  EXPECT_EQ(At(FieldsOf(At(pod, 22)), 1), "object");
  const auto properties = NamedOf(FieldsOf(At(pod, 25)), 1);
  EXPECT_EQ(At(FieldsOf(properties.at("spec")), 1), "#/definitions/io.k8s.api.core.v1.PodSpec");
  const auto extensions = NamedOf(pod, 31);
  EXPECT_EQ(At(FieldsOf(extensions.at("x-kubernetes-group-version-kind")), 2),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  const auto container =
      NamedOf(FieldsOf(At(FieldsOf(definitions.at("io.k8s.api.core.v1.Container")), 25)), 1);
  const Fields args = FieldsOf(container.at("args"));
  EXPECT_EQ(At(FieldsOf(At(args, 22)), 1), "array");
  EXPECT_EQ(At(FieldsOf(At(FieldsOf(At(FieldsOf(At(args, 23)), 1)), 22)), 1), "string");
}

TEST(EncodeOpenApiV2, HoldsTheSameOperations) {
  const Document document = BuildOpenApiV2(SampleKinds());
  const auto paths = NamedOf(FieldsOf(At(FieldsOf(EncodeOpenApiV2(document)), 8)), 2);
  EXPECT_EQ(paths.size(), ObjectAt(document, {"paths"})->size());
  const Fields patch = FieldsOf(At(FieldsOf(paths.at("/api/v1/namespaces/{namespace}/pods/{name}")), 8));
  EXPECT_EQ(At(patch, 5), "patchCoreV1NamespacedPod");
  EXPECT_THAT(NamedOf(patch, 13), Contains(Pair("x-kubernetes-group-version-kind", HasSubstr("Pod"))));
  std::set<std::string> queries;
  for (auto [at, end] = patch.equal_range(8); at != end; ++at) {
    const Fields non_body = FieldsOf(At(FieldsOf(At(FieldsOf(at->second), 1)), 2));
    queries.insert(At(FieldsOf(At(non_body, 3)), 4));
  }
  EXPECT_THAT(queries, Contains("dryRun"));
  EXPECT_THAT(queries, Contains("fieldValidation"));
}

}  // namespace
}  // namespace trainyard::apiserver
