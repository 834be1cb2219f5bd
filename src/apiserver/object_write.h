// What becomes of an object when it is created, changed or deleted: names and ids given, fields that are not
// the client's to set put back, unknown ones removed, defaults filled in, all of it checked. Pure: what is
// decided here is stored by apiserver/writer.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "apiserver/budget.h"
#include "apiserver/resources.h"
#include "base/document.h"

namespace trainyard::apiserver {

// What is done about fields that the schema does not know.
enum class FieldValidation { kIgnore, kWarn, kStrict };

struct WriteContext {
  const ResourceInfo& resource;
  const ServedVersion& version;
  absl::Time now;
  std::string manager;  // who changes it
  FieldValidation validation = FieldValidation::kWarn;
  Budget& budget;     // of the request
  bool track = true;  // record in managedFields what the manager changes; an apply has done so itself
};

struct PreparedObject {
  Document object;
  std::vector<std::string> warnings;
};

// What a new object is given.
struct NewIdentity {
  std::string ns;    // of the request; the body's must be the same or missing
  std::string name;  // of the request, if it has one (a PUT or an apply that creates)
  std::string uid;
  std::string name_suffix;  // behind metadata.generateName
};

// Errors are ApiErrors: 400 for what does not fit the request, 422 for what does not fit the schema.
absl::StatusOr<PreparedObject> PrepareCreate(const WriteContext& context, Document body,
                                             const NewIdentity& identity);

// `subresource` is "", "status" or "finalize": what each may change differs. The body's resourceVersion is
// not looked at.
absl::StatusOr<PreparedObject> PrepareUpdate(const WriteContext& context, const Document& live, Document body,
                                             std::string_view subresource);

// The schema's part alone: removes unknown fields (or refuses them), fills in defaults.
absl::Status Normalize(const WriteContext& context, Document& object, std::vector<std::string>& warnings);

struct DeleteTerms {
  std::optional<std::int64_t> grace_seconds;
  std::string propagation;  // "Background", "Foreground", "Orphan", or empty: the resource's own
  std::string uid;          // preconditions
  std::string resource_version;
};

// Reads a DeleteOptions body and the query's parameters.
absl::StatusOr<DeleteTerms> ParseDeleteTerms(const Document* body, std::string_view grace,
                                             std::string_view propagation, std::string_view orphan);

enum class DeleteVerdict {
  kRemove,   // from the store, now
  kMark,     // store `object`, which says that it is being deleted
  kNothing,  // it is being deleted already, and no sooner
};
struct DeleteDecision {
  DeleteVerdict verdict = DeleteVerdict::kRemove;
  Document object;  // of kMark
};
// An ApiError 409 if a precondition does not hold.
absl::StatusOr<DeleteDecision> DecideDelete(const ResourceInfo& resource, const Document& live,
                                            const DeleteTerms& terms, absl::Time now);

// Nothing holds it any more: it has been marked, its finalizers are gone and its grace is over.
bool IsReadyToRemove(const Document& object);

}  // namespace trainyard::apiserver
