// The four ways to change an object by a patch. Pure: the object before and the patch go in, the object after
// comes out, or an ApiError (kube::ToApiError finds it): 400 for what is no patch, 422 for one that the
// object cannot take, and, where said, a conflict. Whether the object after is still a good one is the
// caller's to validate; a JSON or merge patch may even make something else than an object of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "apiserver/budget.h"
#include "apiserver/schema/schema.h"
#include "base/document.h"

namespace trainyard::apiserver {

// What a client hears when its patch cannot be used: the codes and reasons of a Kubernetes API server.

// 400 BadRequest: the patch is not a patch.
absl::Status BadPatch(std::string message);
// 422 Invalid: a patch, but not one that this object can take.
absl::Status UnfitPatch(std::string message);
// 413 RequestEntityTooLarge.
absl::Status PatchTooLarge(std::string message);
// The same: the request's budget does not pay for `what`.
absl::Status OverBudget(std::string_view what);

// RFC 6902. A failed `test` or a path that is not there is 422. At most 10,000 operations, else 413; the
// budget pays for what they copy, and how deep the document becomes is bounded too.
absl::StatusOr<Document> ApplyJsonPatch(Document object, const Document& patch, Budget& budget);

// RFC 7386. A patch that is no object takes the object's place.
void ApplyMergePatch(Document& object, const Document& patch);

// Kubernetes' strategic merge: lists with a merge key are merged by it; the directives $patch (replace,
// delete, merge), $retainKeys, $deleteFromPrimitiveList/ and $setElementOrder/ are obeyed. Only for kinds
// whose schema has merge keys.
absl::StatusOr<Document> ApplyStrategicPatch(Document object, const Document& patch, const Schema& schema);

// Who owns which fields: metadata.managedFields, read and written.
struct FieldManager {
  std::string name;
  std::string operation;  // "Apply" or "Update"
  std::string api_version;
  std::string subresource;
  absl::Time time;
};

// Server-side apply: `applied` is the manager's whole intent. Fields that it owned and no longer names are
// removed unless somebody else owns them too. A field that another manager owns with another value is a
// conflict (ApiError 409 with a cause for each field, which the budget pays for) unless `force`. Returns the
// object with managedFields brought up to date; the live one, to the byte, if nothing changed.
//
// A live object that is null or {} is one that is created. A uid or resourceVersion that `applied` states is
// in the result, for the caller to compare with the live one's. With the subresource "status", only the
// status of `applied` counts; without, the caller takes the status out first if the kind has that
// subresource.
absl::StatusOr<Document> ServerSideApply(const Document& live, const Document& applied, const Schema& schema,
                                         const FieldManager& manager, bool force, Budget& budget);

// After an update or another kind of patch: the manager owns what it changed, and others lose it. `before` is
// null or {} when the object is created. The managedFields of `after` are those that the client sent; with
// none, or through a subresource, those of `before` go on.
void TrackUpdate(const Document& before, Document& after, const Schema& schema, const FieldManager& manager);

}  // namespace trainyard::apiserver
