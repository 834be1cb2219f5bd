// What an update, a create or a patch other than an apply does to the ownership of fields. Runs on each
// write, so it reads no more of managedFields than the changed fields touch.
#include <algorithm>
#include <utility>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/same_value.h"
#include "apiserver/patch/typed_fields.h"
#include "base/rfc3339.h"

namespace trainyard::apiserver {
namespace {

bool ExistedBefore(const Document& object) { return object.is_object() && !object.get_object().empty(); }

bool IsEntryOf(const Document& entry, const FieldManager& manager) {
  return StringAt(entry, {"manager"}) == manager.name &&
         StringAt(entry, {"operation"}) == manager.operation &&
         StringAt(entry, {"apiVersion"}) == manager.api_version &&
         StringAt(entry, {"subresource"}) == manager.subresource;
}

// Clients say "forget who owns what" by an empty list or one empty entry.
bool IsReset(const Array& managed) {
  return managed.empty() ||
         (managed.size() == 1 && managed[0].is_object() && managed[0].get_object().empty());
}

// The entries to go on from. Those of the live object, unless the client has sent others: whoever writes
// managedFields by hand means it, but one that does not understand them must not lose them.
Array StartingEntries(const Document& before, Document& after, const FieldManager& manager) {
  const Array* live = ArrayAt(before, {"metadata", "managedFields"});
  Array* sent = ArrayAt(after, {"metadata", "managedFields"});
  if (sent != nullptr && manager.subresource.empty()) {
    if (live != nullptr && SameValue(*sent, *live)) return std::move(*sent);
    if (IsReset(*sent)) return {};
    const auto entries = ReadManagedFields(*sent);
    if (entries.ok()) return PrintManagedFields(*entries);
  }
  return live != nullptr ? *live : Array();
}

Object NewEntry(const FieldManager& manager, const FieldSet& fields) {
  Object entry;
  entry.reserve(7);
  entry["manager"] = manager.name;
  entry["operation"] = manager.operation;
  entry["apiVersion"] = manager.api_version;
  entry["time"] = PrintTime(manager.time);
  entry["fieldsType"] = "FieldsV1";
  entry["fieldsV1"] = PrintFieldSet(fields);
  if (!manager.subresource.empty()) entry["subresource"] = manager.subresource;
  return entry;
}

// Takes the changed fields from all managers but the one.
void Release(Array& entries, const Changes& changes, const FieldManager& manager) {
  for (auto entry = entries.begin(); entry != entries.end();) {
    Object* fields = ObjectAt(*entry, {"fieldsV1"});
    if (fields != nullptr) {
      TakeFields(*fields, changes.removed);
      if (!IsEntryOf(*entry, manager)) TakeFields(*fields, changes.set);
    }
    entry = fields == nullptr || fields->empty() ? entries.erase(entry) : std::next(entry);
  }
}

void Claim(Array& entries, const FieldSet& set, const FieldManager& manager) {
  const auto own = std::find_if(entries.begin(), entries.end(),
                                [&](const Document& entry) { return IsEntryOf(entry, manager); });
  if (own == entries.end()) {
    entries.push_back(NewEntry(manager, set));
    return;
  }
  Object& entry = own->get_object();
  Object& fields = entry["fieldsV1"].get_object();
  if (!HasFields(fields, set)) fields = PrintFieldSet(Union(ParseFieldSet(fields), set));
  entry["time"] = PrintTime(manager.time);
}

void Cap(Array& entries) {
  const auto updates = std::count_if(entries.begin(), entries.end(), [](const Document& entry) {
    return StringAt(entry, {"operation"}) == "Update";
  });
  if (updates <= 10) return;
  auto read = ReadManagedFields(entries);
  if (!read.ok()) return;
  CapManagedFields(*read);
  entries = PrintManagedFields(*read);
}

}  // namespace

void TrackUpdate(const Document& before, Document& after, const Schema& schema, const FieldManager& manager) {
  if (!after.is_object()) return;
  Array entries = StartingEntries(before, after, manager);
  // Without entries, who owned what before is not known, and nobody asks until somebody applies.
  const bool tracked = !entries.empty() || !ExistedBefore(before);
  const Changes changes = tracked ? CompareFields(before, after, schema) : Changes();
  if (!changes.empty()) {
    Release(entries, changes, manager);
    if (!changes.set.empty()) Claim(entries, changes.set, manager);
    Cap(entries);
    SortManagedFields(entries);
  }
  Object& metadata = MakeObjectAt(after, {"metadata"});
  if (entries.empty()) {
    Remove(metadata, "managedFields");
  } else {
    metadata["managedFields"] = std::move(entries);
  }
}

}  // namespace trainyard::apiserver
