// What the tests of the patches share: documents from text, and small schemas built by hand.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/schema/schema.h"
#include "base/document.h"
#include "base/status.h"
#include "kube/error.h"

namespace trainyard::apiserver {

inline Document J(std::string_view text) {
  auto document = ParseJson(text);
  EXPECT_TRUE(document.ok()) << text << ": " << Message(document.status());
  return document.ok() ? *std::move(document) : Document();
}

// The HTTP code that a status stands for; 0 if it stands for none.
inline int CodeOf(const absl::Status& status) {
  const auto error = kube::ToApiError(status);
  return error ? error->code : 0;
}

// With a budget of their own.
inline absl::StatusOr<Document> ApplyJsonPatch(Document object, const Document& patch) {
  Budget budget;
  return ApplyJsonPatch(std::move(object), patch, budget);
}
inline absl::StatusOr<Document> ServerSideApply(const Document& live, const Document& applied,
                                                const Schema& schema, const FieldManager& manager,
                                                bool force) {
  Budget budget;
  return ServerSideApply(live, applied, schema, manager, force, budget);
}

using Properties = std::initializer_list<std::pair<const std::string, SchemaPtr>>;

inline SchemaPtr Of(SchemaType type) {
  auto schema = std::make_shared<Schema>();
  schema->type = type;
  return schema;
}
inline SchemaPtr StringType() { return Of(SchemaType::kString); }
inline SchemaPtr IntType() { return Of(SchemaType::kInteger); }
inline SchemaPtr AnyType() { return Of(SchemaType::kAny); }

inline std::shared_ptr<Schema> ObjectOf(Properties properties, std::string name = "") {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kObject;
  schema->name = std::move(name);
  schema->properties = properties;
  return schema;
}

inline std::shared_ptr<Schema> MapOf(SchemaPtr values) {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kObject;
  schema->additional = std::move(values);
  return schema;
}

inline std::shared_ptr<Schema> ListOf(SchemaPtr items) {
  auto schema = std::make_shared<Schema>();
  schema->type = SchemaType::kArray;
  schema->items = std::move(items);
  return schema;
}

// Merged by its keys in server-side apply, and by the first of them in a strategic merge.
inline std::shared_ptr<Schema> ListByKeys(SchemaPtr items, std::vector<std::string> keys) {
  auto schema = ListOf(std::move(items));
  schema->list_type = ListType::kMap;
  schema->merge_key = keys.front();
  schema->list_keys = std::move(keys);
  return schema;
}

inline std::shared_ptr<Schema> SetOf(SchemaPtr items) {
  auto schema = ListOf(std::move(items));
  schema->list_type = ListType::kSet;
  schema->merge_primitives = true;
  return schema;
}

inline SchemaPtr WithDefault(SchemaType type, Document value) {
  auto schema = std::make_shared<Schema>();
  schema->type = type;
  schema->default_value = std::move(value);
  return schema;
}

// A pod as far as the tests need one, with the list types and merge keys that Kubernetes gives it.
inline SchemaPtr PodSchema() {
  const auto port = ObjectOf({{"name", StringType()},
                              {"containerPort", IntType()},
                              {"hostPort", IntType()},
                              {"protocol", WithDefault(SchemaType::kString, "TCP")}},
                             "ContainerPort");
  const auto env = ObjectOf({{"name", StringType()}, {"value", StringType()}}, "EnvVar");
  const auto container =
      ObjectOf({{"name", StringType()},
                {"image", StringType()},
                {"imagePullPolicy", StringType()},
                {"args", ListOf(StringType())},
                {"command", ListOf(StringType())},
                {"env", ListByKeys(env, {"name"})},
                {"ports", ListByKeys(port, {"containerPort", "protocol"})},
                {"resources", ObjectOf({{"limits", MapOf(Of(SchemaType::kIntOrString))}}, "Resources")},
                {"terminationMessagePath", StringType()},
                {"terminationMessagePolicy", StringType()}},
               "Container");
  auto volume = ObjectOf({{"name", StringType()},
                          {"emptyDir", ObjectOf({{"medium", StringType()}}, "EmptyDirVolumeSource")},
                          {"configMap", ObjectOf({{"name", StringType()}}, "ConfigMapVolumeSource")}},
                         "Volume");
  auto volumes = ListByKeys(volume, {"name"});
  volumes->retain_keys = true;
  auto selector = MapOf(StringType());
  selector->atomic_map = true;
  auto spec = ObjectOf({{"containers", ListByKeys(container, {"name"})},
                        {"initContainers", ListByKeys(container, {"name"})},
                        {"volumes", volumes},
                        {"nodeSelector", selector},
                        {"nodeName", StringType()},
                        {"restartPolicy", StringType()},
                        {"dnsPolicy", StringType()},
                        {"schedulerName", StringType()},
                        {"enableServiceLinks", Of(SchemaType::kBoolean)},
                        {"securityContext", ObjectOf({{"runAsUser", IntType()}}, "PodSecurityContext")},
                        {"terminationGracePeriodSeconds", IntType()},
                        {"tolerations", ListOf(ObjectOf({{"key", StringType()}}))}},
                       "PodSpec");
  spec->required = {"containers"};
  const auto condition =
      ObjectOf({{"type", StringType()}, {"status", StringType()}, {"reason", StringType()}}, "PodCondition");
  const auto status = ObjectOf(
      {{"phase", StringType()}, {"message", StringType()}, {"conditions", ListByKeys(condition, {"type"})}},
      "PodStatus");
  const auto owner = ObjectOf({{"uid", StringType()}, {"name", StringType()}}, "OwnerReference");
  const auto metadata = ObjectOf({{"name", StringType()},
                                  {"namespace", StringType()},
                                  {"uid", StringType()},
                                  {"resourceVersion", StringType()},
                                  {"creationTimestamp", StringType()},
                                  {"generation", IntType()},
                                  {"labels", MapOf(StringType())},
                                  {"annotations", MapOf(StringType())},
                                  {"finalizers", SetOf(StringType())},
                                  {"ownerReferences", ListByKeys(owner, {"uid"})},
                                  {"managedFields", ListOf(AnyType())}},
                                 "ObjectMeta");
  return ObjectOf({{"apiVersion", StringType()},
                   {"kind", StringType()},
                   {"metadata", metadata},
                   {"spec", spec},
                   {"status", status}},
                  "Pod");
}

}  // namespace trainyard::apiserver
