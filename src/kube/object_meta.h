// What every object has in common, in a compact form: what a controller needs to find and judge it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/resource.h"
#include "kube/shared_text.h"

namespace trainyard::kube {

// Labels or annotations, by key.
class TextMap {
 public:
  using Entry = std::pair<SharedText, SharedText>;

  TextMap() = default;
  // Of a key that is given twice, the last counts.
  explicit TextMap(std::vector<Entry> entries);

  std::optional<std::string_view> Find(std::string_view key) const;
  // The value, or "".
  std::string_view Get(std::string_view key) const { return Find(key).value_or(""); }
  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const TextMap&) const = default;

 private:
  std::vector<Entry> entries_;
};

struct OwnerReference {
  SharedText api_version;
  SharedText kind;
  SharedText name;
  SharedText uid;
  bool controls = false;
  bool blocks = false;  // an owner that is deleted in the foreground waits for this object
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name;
  SharedText ns;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  absl::Time created = absl::InfinitePast();
  std::optional<absl::Time> deletion_time;  // set: it is being deleted, and is to be gone by then
  std::optional<std::int64_t> deletion_grace_seconds;
  TextMap labels;       // all, if no others were asked for
  TextMap annotations;  // only those asked for
  std::optional<OwnerReference> controller;
  std::vector<OwnerReference> owners;  // all of them; only if asked for
  std::vector<SharedText> finalizers;

  ObjectKey Key() const { return {std::string(ns.view()), name}; }
  bool operator==(const ObjectMeta&) const = default;
};

struct MetaOptions {
  std::vector<std::string> annotations;            // whose values are kept
  std::optional<std::vector<std::string>> labels;  // that are kept; nothing: all
  bool owners = false;                             // all owners are kept, beside the one that controls
};

// The metadata of an object of any kind. InvalidArgument: the text is no such object; it names the field.
absl::StatusOr<ObjectMeta> ParseObjectMeta(std::string json, const MetaOptions& options = {});

}  // namespace trainyard::kube
