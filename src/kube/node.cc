#include "kube/node.h"

#include <utility>

#include "base/status.h"
#include "kube/json_reader.h"
#include "kube/json_status.h"

namespace trainyard::kube {
namespace {

using json::Error;
using json::kOk;
using json::Read;
using json::Reader;
using json::Value;

Error ReadSpec(Reader& reader, Value value, CompactNode& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "unschedulable") return Read(field, out.unschedulable);
    if (key != "taints") return kOk;
    return reader.ForEachItem(field, [&](Value item) {
      Taint& taint = out.taints.emplace_back();
      return reader.ForEachMember(item, [&](std::string_view name, Value part) -> Error {
        if (name == "key") return Read(part, taint.key);
        if (name == "value") return Read(part, taint.value);
        if (name == "effect") return Read(part, taint.effect);
        return kOk;
      });
    });
  });
}

Error ReadStatus(Reader& reader, Value value, CompactNode& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "allocatable") return Read(reader, field, out.allocatable);
    if (key != "conditions") return kOk;
    return json::ForEachCondition(reader, field,
                                  [&](std::string_view type, Condition condition, std::string_view) {
                                    if (type == "Ready") {
                                      out.ready = std::move(condition);
                                    } else if (condition.status == ConditionStatus::kTrue) {
                                      out.troubles.emplace_back(type);
                                    }
                                  });
  });
}

}  // namespace

absl::StatusOr<CompactNode> ParseNode(std::string json, const MetaOptions& options) {
  CompactNode node;
  Reader reader;
  TY_RETURN_IF_ERROR(reader.ReadObject("a Node", std::move(json), [&](std::string_view key, Value value) {
    if (key == "metadata") return Read(reader, value, node.meta, options);
    if (key == "spec") return ReadSpec(reader, value, node);
    if (key == "status") return ReadStatus(reader, value, node);
    return kOk;
  }));
  return node;
}

}  // namespace trainyard::kube
