#include "apiserver/patch/managed_fields.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kFieldsV1 = "FieldsV1";
constexpr std::size_t kMostUpdaters = 10;
constexpr std::string_view kAncient = "ancient-changes";

absl::StatusOr<ManagedEntry> ReadEntry(const Document& document) {
  ManagedEntry entry{.manager = std::string(StringAt(document, {"manager"})),
                     .operation = std::string(StringAt(document, {"operation"})),
                     .api_version = std::string(StringAt(document, {"apiVersion"})),
                     .subresource = std::string(StringAt(document, {"subresource"})),
                     .time = std::string(StringAt(document, {"time"}))};
  if (entry.operation != "Apply" && entry.operation != "Update") {
    return absl::InvalidArgumentError("operation must be Apply or Update");
  }
  if (entry.api_version.empty()) return absl::InvalidArgumentError("apiVersion must not be empty");
  if (StringAt(document, {"fieldsType"}) != kFieldsV1) {
    return absl::InvalidArgumentError("fieldsType must be FieldsV1");
  }
  if (const Object* fields = ObjectAt(document, {"fieldsV1"})) entry.fields = ParseFieldSet(*fields);
  return entry;
}

Object PrintEntry(const ManagedEntry& entry) {
  Object printed;
  printed.reserve(7);
  printed["manager"] = entry.manager;
  printed["operation"] = entry.operation;
  printed["apiVersion"] = entry.api_version;
  if (!entry.time.empty()) printed["time"] = entry.time;
  printed["fieldsType"] = kFieldsV1;
  printed["fieldsV1"] = PrintFieldSet(entry.fields);
  if (!entry.subresource.empty()) printed["subresource"] = entry.subresource;
  return printed;
}

}  // namespace

bool ManagedEntry::IsOf(const FieldManager& other) const {
  // An applier stays the same one when it moves to another version of the API.
  return manager == other.name && operation == other.operation && subresource == other.subresource &&
         (operation == "Apply" || api_version == other.api_version);
}

absl::StatusOr<std::vector<ManagedEntry>> ReadManagedFields(const Document& object) {
  const Array* managed = ArrayAt(object, {"metadata", "managedFields"});
  return managed != nullptr ? ReadManagedFields(*managed) : std::vector<ManagedEntry>();
}

absl::StatusOr<std::vector<ManagedEntry>> ReadManagedFields(const Array& entries) {
  std::vector<ManagedEntry> read;
  read.reserve(entries.size());
  for (const Document& document : entries) {
    TY_ASSIGN_OR_RETURN(ManagedEntry entry, ReadEntry(document));
    read.push_back(std::move(entry));
  }
  return read;
}

Array PrintManagedFields(const std::vector<ManagedEntry>& entries) {
  Array printed;
  printed.reserve(entries.size());
  for (const ManagedEntry& entry : entries) printed.push_back(PrintEntry(entry));
  SortManagedFields(printed);
  return printed;
}

void SortManagedFields(Array& entries) {
  const auto key = [](const Document& entry) {
    return std::tuple(StringAt(entry, {"operation"}), StringAt(entry, {"time"}), StringAt(entry, {"manager"}),
                      StringAt(entry, {"apiVersion"}), StringAt(entry, {"subresource"}));
  };
  const auto less = [&](const Document& a, const Document& b) { return key(a) < key(b); };
  if (!std::is_sorted(entries.begin(), entries.end(), less)) std::sort(entries.begin(), entries.end(), less);
}

void CapManagedFields(std::vector<ManagedEntry>& entries) {
  const auto is_update = [](const ManagedEntry& entry) { return entry.operation == "Update"; };
  auto updaters = static_cast<std::size_t>(std::ranges::count_if(entries, is_update));
  if (updaters <= kMostUpdaters) return;
  std::ranges::sort(entries, {}, [](const ManagedEntry& entry) {
    return std::tie(entry.time, entry.manager, entry.api_version, entry.subresource);
  });
  std::map<std::string, std::size_t> buckets;  // of each API version, the entry that takes up the others
  std::vector<ManagedEntry> kept;
  for (ManagedEntry& entry : entries) {
    if (updaters > kMostUpdaters && is_update(entry)) {
      const auto [bucket, fresh] = buckets.try_emplace(entry.api_version, kept.size());
      if (!fresh) {
        ManagedEntry& into = kept[bucket->second];
        into.manager = kAncient;
        into.subresource.clear();
        into.time = entry.time;
        into.fields = Union(into.fields, entry.fields);
        --updaters;
        continue;
      }
    }
    kept.push_back(std::move(entry));
  }
  entries = std::move(kept);
}

}  // namespace trainyard::apiserver
