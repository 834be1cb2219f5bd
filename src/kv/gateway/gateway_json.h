// Pure: etcd's messages as JSON, in the way of etcd's own gateway.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trainyard::kv {

// Names of fields as in etcd.proto or in camelCase; unknown ones are passed over. An empty text is an empty
// message. InvalidArgument: what is wrong, in one line.
absl::Status ParseJson(std::string_view text, google::protobuf::Message& message);
std::string PrintJson(const google::protobuf::Message& message);

// The objects that stand in a text one behind the other. InvalidArgument: there is something else.
absl::StatusOr<std::vector<std::string_view>> SplitObjects(std::string_view text);

int HttpCode(absl::StatusCode code);
// The body of an answer that failed.
std::string PrintError(const absl::Status& status);
// The line that ends a stream which failed.
std::string PrintStreamError(const absl::Status& status);

}  // namespace trainyard::kv
