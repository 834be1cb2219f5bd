// What the API server serves: its built-in resources and those that CustomResourceDefinitions add.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/schema/kind_table.h"
#include "apiserver/schema/schema.h"
#include "base/document.h"
#include "kube/resource.h"

namespace trainyard::apiserver {

struct PrinterColumn {
  std::string name;
  std::string type;
  std::string format;
  std::string description;
  std::string json_path;
  std::int64_t priority = 0;
};

struct ScalePaths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string label_selector;  // may be empty
};

// One version of a resource, as it is served.
struct ServedVersion {
  std::string name;
  bool storage = true;
  bool deprecated = false;
  std::string deprecation_warning;
  SchemaPtr schema;  // of the whole object
  bool has_status = false;
  std::optional<ScalePaths> scale;
  std::vector<PrinterColumn> columns;  // of custom resources
};

struct ResourceInfo {
  std::string group;
  std::string plural;
  std::string singular;
  std::string kind;
  std::string list_kind;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool custom = false;                    // comes from a CustomResourceDefinition
  KindInfo names;                         // what it is to the checks and defaults of kinds
  bool readable = true;                   // false: only created, and nothing is stored (reviews)
  bool generation = false;                // counts changes of what is not status
  std::vector<ServedVersion> versions;    // as discovery lists them, the preferred one first
  std::vector<std::string> subresources;  // beside status and scale

  const ServedVersion* Version(std::string_view name) const;
  std::string ApiVersion(std::string_view version) const;
};

// One state of the table; a change makes a new one.
class ResourceTable {
 public:
  // Those that are always there.
  static std::shared_ptr<const ResourceTable> BuiltIn();
  // This one with the given custom resources in place of those it has.
  std::shared_ptr<const ResourceTable> WithCustom(
      std::vector<std::shared_ptr<const ResourceInfo>> custom) const;

  // Null: not served.
  std::shared_ptr<const ResourceInfo> Find(std::string_view group, std::string_view plural) const;
  const std::vector<std::shared_ptr<const ResourceInfo>>& all() const { return all_; }

 private:
  void Add(std::shared_ptr<const ResourceInfo> resource);

  std::vector<std::shared_ptr<const ResourceInfo>> all_;  // the built-in ones first
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ResourceInfo>, std::less<>> by_name_;
};

}  // namespace trainyard::apiserver
