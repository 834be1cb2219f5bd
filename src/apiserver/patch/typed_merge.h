// Putting an applied configuration into an object, and taking fields out of one.
#pragma once

#include "absl/status/status.h"
#include "apiserver/patch/field_set.h"
#include "apiserver/schema/schema.h"
#include "base/document.h"

namespace trainyard::apiserver {

// What keeps a configuration from being applied: a field that the schema does not declare, a value of the
// wrong kind, items of a list that cannot be told apart. 400, with the field's path.
absl::Status CheckApplied(const Document& applied, const Schema& schema);

// The object with all that `applied` says. Of lists with keys and of sets: what `applied` has comes in its
// order, and what only the object has stays where it is before that.
Document MergeApplied(const Document& object, const Document& applied, const Schema& schema);

// The object without the fields of the set and what lies below them. What thereby becomes empty goes too.
Document WithoutFields(const Document& object, const FieldSet& fields, const Schema& schema);

}  // namespace trainyard::apiserver
