// Objects of the built-in kinds as protobuf, which newer Go clients send (kubectl from 1.33 on, for some
// commands). They are read only: what is answered is JSON, which every client takes.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "apiserver/schema/kind_table.h"
#include "base/document.h"

namespace trainyard::apiserver {

// What a body of application/vnd.kubernetes.protobuf holds, as the same client would have written it in JSON.
// InvalidArgument: it is none, or is broken; Unimplemented: its kind, or one of its fields, can only be sent
// as JSON.
absl::StatusOr<Document> DecodeProtobuf(std::string_view body, const KindTable& kinds = BuiltInKinds());

}  // namespace trainyard::apiserver
