// What objects must hold beyond their schemas: names, references between their parts, what cannot be changed.
// Pure. Values of the wrong type are the business of Validate(), which comes first; here they are passed
// over.
#pragma once

#include <vector>

#include "apiserver/schema/kind_table.h"
#include "base/document.h"
#include "kube/error.h"

namespace trainyard::apiserver {

// What is wrong with a new object that is complete: defaults are filled in and the name is made. Of kinds
// that are not built in, the metadata is checked.
std::vector<kube::Cause> ValidateCreate(const KindInfo& kind, const Document& object);

// What is wrong with the new state of an object, also as compared with the old one. Not for the status
// subresource nor for bindings, which change what nobody else may.
std::vector<kube::Cause> ValidateUpdate(const KindInfo& kind, const Document& old_object,
                                        const Document& new_object);

}  // namespace trainyard::apiserver
