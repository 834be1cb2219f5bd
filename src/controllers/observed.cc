#include "controllers/observed.h"

#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "kube/json_reader.h"
#include "kube/json_status.h"

namespace trainyard::controllers {
namespace {

using kube::json::Error;
using kube::json::kOk;
using kube::json::Read;
using kube::json::Reader;
using kube::json::Value;

const kube::MetaOptions kAllOwners{.owners = true};

Error ReadPorts(Reader& reader, Value containers, std::vector<ContainerPort>& out) {
  return reader.ForEachItem(containers, [&](Value container) {
    return reader.ForEachMember(container, [&](std::string_view key, Value ports) -> Error {
      if (key != "ports") return kOk;
      return reader.ForEachItem(ports, [&](Value item) {
        ContainerPort& port = out.emplace_back();
        return reader.ForEachMember(item, [&](std::string_view field, Value value) -> Error {
          if (field == "name") return Read(value, port.name);
          if (field == "protocol") return Read(value, port.protocol);
          if (field == "containerPort") return Read(value, port.port);
          return kOk;
        });
      });
    });
  });
}

Error ReadTolerations(Reader& reader, Value list, std::vector<Toleration>& out) {
  return reader.ForEachItem(list, [&](Value item) {
    Toleration& toleration = out.emplace_back();
    return reader.ForEachMember(item, [&](std::string_view key, Value field) -> Error {
      if (key == "key") return Read(field, toleration.key);
      if (key == "value") return Read(field, toleration.value);
      if (key == "effect") return Read(field, toleration.effect);
      if (key == "tolerationSeconds") return Read(field, toleration.seconds);
      if (key != "operator") return kOk;
      kube::SharedText op;
      const Error error = Read(field, op);
      toleration.exists = op == "Exists";
      return error;
    });
  });
}

Error ReadPodSpec(Reader& reader, Value spec, ObservedPod& out) {
  return reader.ForEachMember(spec, [&](std::string_view key, Value field) -> Error {
    if (key == "nodeName") return Read(field, out.node);
    if (key == "hostname") return Read(field, out.hostname);
    if (key == "subdomain") return Read(field, out.subdomain);
    if (key == "containers") return ReadPorts(reader, field, out.ports);
    if (key == "tolerations") return ReadTolerations(reader, field, out.tolerations);
    return kOk;
  });
}

Error ReadPodStatus(Reader& reader, Value status, ObservedPod& out) {
  return reader.ForEachMember(status, [&](std::string_view key, Value field) -> Error {
    if (key == "podIP") return Read(field, out.ip);
    if (key == "phase") {
      std::string phase;
      const Error error = Read(field, phase);
      for (const auto known : {kube::PodPhase::kRunning, kube::PodPhase::kSucceeded, kube::PodPhase::kFailed,
                               kube::PodPhase::kUnknown}) {
        if (kube::PrintPhase(known) == phase) out.phase = known;
      }
      return error;
    }
    if (key != "conditions") return kOk;
    return kube::json::ForEachCondition(
        reader, field, [&](std::string_view type, const kube::Condition& condition, std::string_view) {
          if (type == "Ready") out.ready = condition.status == kube::ConditionStatus::kTrue;
        });
  });
}

// The metadata as every watched object has it, and the whole to look into.
struct Whole {
  kube::ObjectMeta meta;
  Document document;
};

absl::StatusOr<Whole> ReadWhole(std::string json) {
  Whole whole;
  TY_ASSIGN_OR_RETURN(whole.document, ParseJson(json));
  TY_ASSIGN_OR_RETURN(whole.meta, kube::ParseObjectMeta(std::move(json), kAllOwners));
  return whole;
}

const Array& ItemsAt(const Document& document, Path path) {
  static const Array none;
  const Array* items = ArrayAt(document, path);
  return items != nullptr ? *items : none;
}

ObservedEndpoints::Subset ReadSubset(const Document& subset) {
  ObservedEndpoints::Subset out;
  for (const Document& address : ItemsAt(subset, {"addresses"})) {
    out.ready.emplace_back(StringAt(address, {"ip"}));
  }
  for (const Document& port : ItemsAt(subset, {"ports"})) {
    out.ports.push_back({.name = std::string(StringAt(port, {"name"})),
                         .protocol = std::string(StringAt(port, {"protocol"}, "TCP")),
                         .port = static_cast<std::int32_t>(IntAt(port, {"port"}).value_or(0))});
  }
  return out;
}

}  // namespace

absl::StatusOr<ObservedObject> ObserveObject(std::string json) {
  TY_ASSIGN_OR_RETURN(kube::ObjectMeta meta, kube::ParseObjectMeta(std::move(json), kAllOwners));
  return ObservedObject{std::move(meta)};
}

absl::StatusOr<ObservedPod> ObservePod(std::string json) {
  ObservedPod pod;
  Reader reader;
  TY_RETURN_IF_ERROR(reader.ReadObject("a Pod", std::move(json), [&](std::string_view key, Value value) {
    if (key == "metadata") return Read(reader, value, pod.meta, kAllOwners);
    if (key == "spec") return ReadPodSpec(reader, value, pod);
    if (key == "status") return ReadPodStatus(reader, value, pod);
    return kOk;
  }));
  return pod;
}

absl::StatusOr<kube::CompactService> ObserveService(std::string json) {
  return kube::ParseService(std::move(json), kAllOwners);
}

absl::StatusOr<ObservedEndpoints> ObserveEndpoints(std::string json) {
  TY_ASSIGN_OR_RETURN(Whole whole, ReadWhole(std::move(json)));
  ObservedEndpoints endpoints{.meta = std::move(whole.meta)};
  for (const Document& subset : ItemsAt(whole.document, {"subsets"})) {
    endpoints.subsets.push_back(ReadSubset(subset));
  }
  return endpoints;
}

absl::StatusOr<ObservedNode> ObserveNode(std::string json) {
  TY_ASSIGN_OR_RETURN(Whole whole, ReadWhole(std::move(json)));
  ObservedNode node{.meta = std::move(whole.meta),
                    .unschedulable = BoolAt(whole.document, {"spec", "unschedulable"})};
  for (const Document& condition : ItemsAt(whole.document, {"status", "conditions"})) {
    const std::string_view type = StringAt(condition, {"type"});
    const std::string_view status = StringAt(condition, {"status"});
    if (type != "Ready") {
      if (status == "True") node.troubles.emplace_back(type);
      continue;
    }
    node.has_ready = true;
    node.ready = status == "True"    ? kube::ConditionStatus::kTrue
                 : status == "False" ? kube::ConditionStatus::kFalse
                                     : kube::ConditionStatus::kUnknown;
    node.heartbeat = StringAt(condition, {"lastHeartbeatTime"});
  }
  for (const Document& taint : ItemsAt(whole.document, {"spec", "taints"})) {
    node.taints.push_back({.key = kube::SharedText(StringAt(taint, {"key"})),
                           .value = kube::SharedText(StringAt(taint, {"value"})),
                           .effect = kube::SharedText(StringAt(taint, {"effect"}))});
  }
  return node;
}

absl::StatusOr<ObservedLease> ObserveLease(std::string json) {
  TY_ASSIGN_OR_RETURN(Whole whole, ReadWhole(std::move(json)));
  return ObservedLease{.meta = std::move(whole.meta),
                       .renewed = std::string(StringAt(whole.document, {"spec", "renewTime"}))};
}

bool IsHeldBy(const kube::ObjectMeta& meta, std::string_view finalizer) {
  return meta.deletion_time.has_value() &&
         std::ranges::any_of(meta.finalizers, [&](const kube::SharedText& f) { return f == finalizer; });
}

}  // namespace trainyard::controllers
