// Server-side apply: each manager states what it wants of an object, and the server keeps who wants what.
#include <algorithm>
#include <tuple>
#include <utility>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/same_value.h"
#include "apiserver/patch/typed_fields.h"
#include "apiserver/patch/typed_merge.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/error.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kBeforeFirstApply = "before-first-apply";

struct FieldConflict {
  const ManagedEntry* with;
  std::vector<std::string> fields;
};

std::string ShowManager(const ManagedEntry& entry) {
  std::string shown = StrCat("\"", Escaped(entry.manager), "\"");
  if (!entry.subresource.empty()) StrAppend(shown, " with subresource \"", Escaped(entry.subresource), "\"");
  if (entry.operation == "Update") StrAppend(shown, " using ", entry.api_version);
  return shown;
}

// In the form in which kubectl knows it: it shows the message and reads the causes.
absl::Status ConflictError(const std::vector<FieldConflict>& conflicts) {
  kube::ApiError error{.code = 409, .reason = "Conflict"};
  std::string list;
  for (const FieldConflict& conflict : conflicts) {
    const std::string manager = ShowManager(*conflict.with);
    StrAppend(list, list.empty() ? "" : "\n", "conflicts with ", manager, ":");
    for (const std::string& field : conflict.fields) {
      StrAppend(list, "\n- ", field);
      error.causes.push_back(
          {.reason = "FieldManagerConflict", .field = field, .message = StrCat("conflict with ", manager)});
    }
  }
  if (error.causes.size() == 1) {
    error.message =
        StrCat("Apply failed with 1 conflict: ", error.causes[0].message, ": ", error.causes[0].field);
  } else {
    error.message = StrCat("Apply failed with ", error.causes.size(), " conflicts: ", list);
  }
  return kube::ToStatus(error);
}

bool Exists(const Document& object) { return object.is_object() && !object.get_object().empty(); }

absl::Status CheckRequest(const Document& applied, const Schema& schema, const FieldManager& manager) {
  if (!applied.is_object()) return BadPatch("an applied configuration must be an object");
  if (const Document* managed = Find(applied, {"metadata", "managedFields"});
      managed != nullptr && !managed->is_null()) {
    return BadPatch("metadata.managedFields must not be in an applied configuration");
  }
  const std::string_view version = StringAt(applied, {"apiVersion"}, manager.api_version);
  if (version != manager.api_version) {
    return BadPatch(StrCat("the applied configuration is of apiVersion ", version, ", but was sent to ",
                           manager.api_version));
  }
  return CheckApplied(applied, schema);
}

// A status says nothing about the rest of the object, but which one it is meant for.
Document OnlyWhatCounts(const Document& applied, const FieldManager& manager) {
  if (manager.subresource != "status") return applied;
  Document counts = Object();
  if (const Document* found = Find(applied, {"status"})) counts.get_object()["status"] = *found;
  for (const char* const condition : {"uid", "resourceVersion"}) {
    if (const Document* found = Find(applied, {"metadata", condition}))
      MakeObjectAt(counts, {"metadata"})[condition] = *found;
  }
  return counts;
}

struct Ownership {
  const FieldSet& last;  // what the manager applied before
  const FieldSet& now;   // what it applies now, and what all others own
};

// Takes out what the manager applied before and does not apply now, unless another manager owns it.
Document Prune(const Document& merged, const Ownership& ownership, const Schema& schema) {
  const auto fields_of = [&](const Document& object) {
    return WithNamedFields(FieldsOf(object, schema), schema);
  };
  const FieldSet last = WithNamedFields(ownership.last, schema);
  const FieldSet all = fields_of(merged);

  // An item goes with all that is below it; so take out first, and put back what somebody owns there.
  const Document without = WithoutFields(merged, last, schema);
  const FieldSet kept = Union(fields_of(without), WithNamedFields(ownership.now, schema));
  const Document owned = WithoutFields(merged, Difference(all, kept), schema);
  return WithoutFields(merged, Intersection(Difference(all, fields_of(owned)), last), schema);
}

// What the server or the client alone decides, and which is no field of anybody: a client may state which
// version or which object it means.
bool SamePreconditions(const Document& live, const Document& next) {
  const Document* a = Find(live, {"metadata"});
  const Document* b = Find(next, {"metadata"});
  if (a == nullptr || b == nullptr) return a == b;
  return StringAt(*a, {"uid"}) == StringAt(*b, {"uid"}) &&
         StringAt(*a, {"resourceVersion"}) == StringAt(*b, {"resourceVersion"});
}

// The managers other than the applying one, and what they own of that which changed. A long key may stand
// above many fields, and in the name of each.
std::vector<FieldConflict> FindConflicts(const std::vector<ManagedEntry>& others, const FieldSet& set,
                                         Budget& budget) {
  std::vector<FieldConflict> conflicts;
  for (const ManagedEntry& entry : others) {
    FieldConflict conflict{.with = &entry};
    ForEachField(Intersection(entry.fields, set), [&](const std::string& field) {
      const std::size_t shown = 2 * field.size() + ShowManager(entry).size() + 64;
      if (!budget.overdrawn() && budget.Take(shown)) conflict.fields.push_back(field);
    });
    if (!conflict.fields.empty()) conflicts.push_back(std::move(conflict));
  }
  std::ranges::sort(conflicts, {}, [](const FieldConflict& conflict) {
    const ManagedEntry& with = *conflict.with;
    return std::tie(with.manager, with.operation, with.api_version, with.subresource);
  });
  return conflicts;
}

void Release(std::vector<ManagedEntry>& entries, const Changes& changes) {
  for (ManagedEntry& entry : entries) {
    entry.fields = Difference(Difference(entry.fields, changes.set), changes.removed);
  }
  std::erase_if(entries, [](const ManagedEntry& entry) { return entry.fields.empty(); });
}

struct Managers {
  std::vector<ManagedEntry> others;
  ManagedEntry own;  // as it was
};

absl::StatusOr<Managers> ReadManagers(const Document& live, const Schema& schema,
                                      const FieldManager& manager) {
  auto entries = ReadManagedFields(live);
  if (!entries.ok()) {
    return Annotate(entries.status(),
                    StrCat("metadata.managedFields of ", StringAt(live, {"metadata", "name"}),
                           " cannot be read; set it to [{}] to begin anew"));
  }
  if (entries->empty() && Exists(live)) {
    entries->push_back({.manager = std::string(kBeforeFirstApply),
                        .operation = "Update",
                        .api_version = manager.api_version,
                        .time = PrintTime(manager.time),
                        .fields = CompareFields(Document(), live, schema).set});
    std::erase_if(*entries, [](const ManagedEntry& entry) { return entry.fields.empty(); });
  }
  Managers managers;
  for (ManagedEntry& entry : *entries) {
    if (entry.IsOf(manager)) {
      managers.own = std::move(entry);
    } else {
      managers.others.push_back(std::move(entry));
    }
  }
  return managers;
}

void WriteManagers(Document& object, const std::vector<ManagedEntry>& entries) {
  Object& metadata = MakeObjectAt(object, {"metadata"});
  if (entries.empty()) {
    Remove(metadata, "managedFields");
  } else {
    metadata["managedFields"] = PrintManagedFields(entries);
  }
}

}  // namespace

absl::StatusOr<Document> ServerSideApply(const Document& live, const Document& applied, const Schema& schema,
                                         const FieldManager& manager, bool force, Budget& budget) {
  TY_RETURN_IF_ERROR(CheckRequest(applied, schema, manager));
  TY_ASSIGN_OR_RETURN(Managers managers, ReadManagers(live, schema, manager));
  const Document wanted = OnlyWhatCounts(applied, manager);
  ManagedEntry own{.manager = manager.name,
                   .operation = manager.operation,
                   .api_version = manager.api_version,
                   .subresource = manager.subresource,
                   .time = managers.own.time,
                   .fields = FieldsOf(wanted, schema)};
  Document next = MergeApplied(live, wanted, schema);
  if (!Difference(managers.own.fields, own.fields).empty()) {
    FieldSet managed = own.fields;
    for (const ManagedEntry& entry : managers.others) managed = Union(managed, entry.fields);
    // Merged again, for an empty object or list that is wanted so and that pruning took for a left-over.
    next = MergeApplied(Prune(next, {managers.own.fields, managed}, schema), wanted, schema);
  }

  const Changes changes = CompareFields(live, next, schema);
  if (!force) {
    const std::vector<FieldConflict> conflicts = FindConflicts(managers.others, changes.set, budget);
    if (budget.overdrawn()) return OverBudget("names of the fields in conflict");
    if (!conflicts.empty()) return ConflictError(conflicts);
  }
  const std::size_t others = managers.others.size();
  Release(managers.others, changes);
  const bool same = Exists(live) && changes.empty() && SamePreconditions(live, next);
  if (same && own == managers.own && others == managers.others.size()) return live;
  if (!same || own != managers.own) own.time = PrintTime(manager.time);
  // Where no field changed, lists keep their order too: the object is the live one.
  if (same) next = live;
  if (!own.fields.empty()) managers.others.push_back(std::move(own));
  WriteManagers(next, managers.others);
  return next;
}

}  // namespace trainyard::apiserver
