// The requests that operations on objects are, and which of them may be made twice.
#include "base/document.h"
#include "base/text.h"
#include "kube/api.h"
#include "kube/json_slice.h"

namespace trainyard::kube {
namespace {

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

std::string_view Policy(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

std::string Target(const Resource& resource, const ObjectKey& key, std::string_view subresource = "") {
  return ResourcePath(resource, key.ns, key.name, subresource);
}

std::string PrintDeleteOptions(const DeleteOptions& options) {
  Object body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  if (options.propagation) body["propagationPolicy"] = Policy(*options.propagation);
  Object preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty()) preconditions["resourceVersion"] = options.resource_version;
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  return PrintJson(body);
}

}  // namespace

Operation GetOperation(const Resource& resource, const ObjectKey& key) {
  return {.request = {.method = "GET", .target = Target(resource, key)}};
}

Operation ForMetadata(Operation operation) {
  operation.request.accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
  return operation;
}

Operation CreateOperation(const Resource& resource, std::string_view ns, std::string object) {
  const bool named = !FindIdentity(object).name.empty();
  return {
      .request = {.method = "POST", .target = ResourcePath(resource, ns), .body = std::move(object)},
      .repeatable = named,
  };
}

Operation UpdateOperation(const Resource& resource, const ObjectKey& key, std::string object,
                          std::string_view subresource) {
  const bool versioned = !FindIdentity(object).resource_version.empty();
  return {
      .request = {.method = "PUT", .target = Target(resource, key, subresource), .body = std::move(object)},
      .repeatable = versioned,
  };
}

Operation PatchOperation(const Resource& resource, const ObjectKey& key, std::string patch,
                         const PatchOptions& options, std::string_view subresource) {
  // An applied configuration says what is to be, not what is to change.
  const bool repeatable = options.type == PatchType::kApply ||
                          (options.type != PatchType::kJson && !FindIdentity(patch).resource_version.empty());
  std::string target = Target(resource, key, subresource);
  AddParameter(target, "fieldManager", options.field_manager);
  if (options.force) AddParameter(target, "force", "true");
  if (options.dry_run) AddParameter(target, "dryRun", "All");
  return {
      .request = {.method = "PATCH",
                  .target = std::move(target),
                  .body = std::move(patch),
                  .content_type = std::string(ContentType(options.type))},
      .repeatable = repeatable,
  };
}

Operation DeleteOperation(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  return {
      .request = {.method = "DELETE", .target = Target(resource, key), .body = PrintDeleteOptions(options)},
      // A second delete without a precondition could hit a namesake made in between.
      .repeatable = !options.uid.empty() || !options.resource_version.empty(),
  };
}

Operation EvictOperation(const ObjectKey& pod, std::string_view uid) {
  const Object eviction{{"apiVersion", "policy/v1"},
                        {"kind", "Eviction"},
                        {"metadata", Object{{"name", pod.name}, {"namespace", pod.ns}}},
                        {"deleteOptions", Object{{"preconditions", Object{{"uid", uid}}}}}};
  return {.request = {.method = "POST",
                      .target = Target(Resource::Pods(), pod, "eviction"),
                      .body = PrintJson(eviction)}};
}

}  // namespace trainyard::kube
