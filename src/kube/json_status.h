// Reading the parts that pods and nodes have in common: conditions and amounts. Beside json_reader.h, and
// for the same sources.
#pragma once

#include <string_view>
#include <vector>

#include "kube/json_reader.h"
#include "kube/pod.h"

namespace trainyard::kube::json {

// Calls `condition(type, value, message)` for each of a list of conditions; of the message, the first bytes.
template <typename F>
Error ForEachCondition(Reader& reader, Value list, F&& condition) {
  return reader.ForEachItem(list, [&](Value item) {
    std::string type;
    std::string message;
    Condition value;
    const Error error = reader.ForEachMember(item, [&](std::string_view key, Value field) -> Error {
      if (key == "type") return Read(field, type);
      if (key == "reason") return Read(field, value.reason);
      if (key == "message") return ReadMessage(field, message);
      if (key == "lastTransitionTime") return Read(field, value.since);
      if (key != "status") return kOk;
      std::string status;
      const Error read = Read(field, status);
      value.status = status == "True"    ? ConditionStatus::kTrue
                     : status == "False" ? ConditionStatus::kFalse
                                         : ConditionStatus::kUnknown;
      return read;
    });
    if (error == kOk) condition(std::string_view(type), std::move(value), std::string_view(message));
    return error;
  });
}

// Adds `milli` to what `amounts` has of that name; saturates.
void AddAmount(std::vector<ResourceAmount>& amounts, const SharedText& name, std::int64_t milli);

// An object of quantities.
Error Read(Reader& reader, Value value, std::vector<ResourceAmount>& out);

}  // namespace trainyard::kube::json
