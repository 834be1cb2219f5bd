// metadata.managedFields: who owns which fields of an object. One entry for each manager, operation,
// subresource and, of updates, API version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/patch/field_set.h"
#include "apiserver/patch/patch.h"
#include "base/document.h"

namespace trainyard::apiserver {

struct ManagedEntry {
  std::string manager;
  std::string operation;  // "Apply" or "Update"
  std::string api_version;
  std::string subresource;
  std::string time;  // RFC 3339; may be empty
  FieldSet fields;

  bool IsOf(const FieldManager& other) const;
  bool operator==(const ManagedEntry&) const = default;
};

// Those of the object; none if it has none. InvalidArgument: an entry is not what it must be.
absl::StatusOr<std::vector<ManagedEntry>> ReadManagedFields(const Document& object);
absl::StatusOr<std::vector<ManagedEntry>> ReadManagedFields(const Array& entries);

// The entries as they stand in an object, in their order: applies first, then by time and by name.
Array PrintManagedFields(const std::vector<ManagedEntry>& entries);
void SortManagedFields(Array& entries);

// More than ten entries of updates: the oldest become one, "ancient-changes".
void CapManagedFields(std::vector<ManagedEntry>& entries);

}  // namespace trainyard::apiserver
