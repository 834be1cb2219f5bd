#include "apiserver/resources.h"

#include <algorithm>

#include "apiserver/schema/kind_table.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// What a built-in kind's schema does not say of the resource.
struct Extras {
  std::vector<std::string> subresources;
  bool readable = true;
  bool generation = false;
};

Extras ExtrasOf(const KindInfo& kind) {
  if (kind.kind == "Pod") return {.subresources = {"binding", "eviction", "log", "proxy"}};
  if (kind.kind == "Service") return {.subresources = {"proxy"}};
  if (kind.kind == "Namespace") return {.subresources = {"finalize"}};
  if (kind.kind == "CustomResourceDefinition") return {.generation = true};
  // A question that is answered, and nothing that is kept.
  if (kind.kind.ends_with("Review")) return {.readable = false};
  return {};
}

std::shared_ptr<const ResourceInfo> Make(const KindInfo& kind) {
  Extras extras = ExtrasOf(kind);
  auto resource = std::make_shared<ResourceInfo>();
  resource->names = kind;
  resource->group = kind.group;
  resource->plural = kind.plural;
  resource->singular = kind.singular;
  resource->kind = kind.kind;
  resource->list_kind = StrCat(kind.kind, "List");
  resource->short_names = kind.short_names;
  resource->categories = kind.categories;
  resource->namespaced = kind.namespaced;
  resource->readable = extras.readable;
  resource->generation = extras.generation;
  resource->subresources = std::move(extras.subresources);
  const bool has_status = extras.readable && kind.schema->properties.contains("status");
  resource->versions.push_back({.name = kind.version, .schema = kind.schema, .has_status = has_status});
  return resource;
}

}  // namespace

const ServedVersion* ResourceInfo::Version(std::string_view name) const {
  const auto found =
      std::find_if(versions.begin(), versions.end(), [&](const ServedVersion& v) { return v.name == name; });
  return found == versions.end() ? nullptr : &*found;
}

std::string ResourceInfo::ApiVersion(std::string_view version) const {
  return group.empty() ? std::string(version) : StrCat(group, "/", version);
}

std::shared_ptr<const ResourceTable> ResourceTable::BuiltIn() {
  static const std::shared_ptr<const ResourceTable> table = [] {
    auto made = std::make_shared<ResourceTable>();
    for (const KindInfo& kind : BuiltInKinds().kinds()) {
      if (!kind.plural.empty()) made->Add(Make(kind));
    }
    return made;
  }();
  return table;
}

std::shared_ptr<const ResourceTable> ResourceTable::WithCustom(
    std::vector<std::shared_ptr<const ResourceInfo>> custom) const {
  auto made = std::make_shared<ResourceTable>();
  for (const auto& resource : all_) {
    if (!resource->custom) made->Add(resource);
  }
  for (auto& resource : custom) made->Add(std::move(resource));
  return made;
}

void ResourceTable::Add(std::shared_ptr<const ResourceInfo> resource) {
  by_name_[{resource->group, resource->plural}] = resource;
  all_.push_back(std::move(resource));
}

std::shared_ptr<const ResourceInfo> ResourceTable::Find(std::string_view group,
                                                        std::string_view plural) const {
  const auto found = by_name_.find({std::string(group), std::string(plural)});
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace trainyard::apiserver
