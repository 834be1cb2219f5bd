#include "kube/pod.h"

#include <algorithm>
#include <array>
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

constexpr std::array<std::string_view, 5> kPhases = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};

Error ReadPhase(Value value, PodPhase& out) {
  std::string_view text;
  const Error error = value.get_string().get(text);
  const auto* found = std::ranges::find(kPhases, text);
  out = found == kPhases.end() ? PodPhase::kUnknown : static_cast<PodPhase>(found - kPhases.begin());
  return error;
}

Error ReadRestartPolicy(Value value, PodRestartPolicy& out) {
  std::string_view text;
  const Error error = value.get_string().get(text);
  out = text == "Never"       ? PodRestartPolicy::kNever
        : text == "OnFailure" ? PodRestartPolicy::kOnFailure
                              : PodRestartPolicy::kAlways;
  return error;
}

// {"running": {...}}: the one member says which state it is.
Error ReadState(Reader& reader, Value value, ContainerState& out) {
  return reader.ForEachMember(value, [&](std::string_view state, Value details) -> Error {
    if (state == "running") {
      out.kind = ContainerState::Kind::kRunning;
    } else if (state == "terminated") {
      out.kind = ContainerState::Kind::kTerminated;
    } else if (state != "waiting") {
      return kOk;
    }
    return reader.ForEachMember(details, [&](std::string_view key, Value field) -> Error {
      if (key == "reason") return Read(field, out.reason);
      if (key == "exitCode") return Read(field, out.exit_code);
      if (key == "signal") return Read(field, out.signal);
      if (key == "startedAt") return Read(field, out.started);
      if (key == "finishedAt") return Read(field, out.finished);
      if (key == "message") return json::ReadMessage(field, out.message);
      return kOk;
    });
  });
}

Error ReadContainerStatuses(Reader& reader, Value list, std::vector<ContainerStatus>& out) {
  const Error error = reader.ForEachItem(list, [&](Value item) {
    ContainerStatus& status = out.emplace_back();
    return reader.ForEachMember(item, [&](std::string_view key, Value field) -> Error {
      if (key == "name") return Read(field, status.name);
      if (key == "ready") return Read(field, status.ready);
      if (key == "restartCount") return Read(field, status.restart_count);
      if (key == "state") return ReadState(reader, field, status.state);
      if (key != "lastState") return kOk;
      ContainerState last;
      const Error read = ReadState(reader, field, last);
      if (last.kind == ContainerState::Kind::kTerminated) status.last_termination = std::move(last);
      return read;
    });
  });
  out.shrink_to_fit();
  return error;
}

// What one container asks for; where it has a limit and no request, the limit.
Error ReadRequests(Reader& reader, Value container, std::vector<ResourceAmount>& out) {
  std::vector<ResourceAmount> limits;
  const Error error = reader.ForEachMember(container, [&](std::string_view key, Value field) -> Error {
    if (key != "resources") return kOk;
    return reader.ForEachMember(field, [&](std::string_view kind, Value amounts) -> Error {
      if (kind == "requests") return Read(reader, amounts, out);
      if (kind == "limits") return Read(reader, amounts, limits);
      return kOk;
    });
  });
  for (const ResourceAmount& limit : limits) {
    const auto same_name = [&](const ResourceAmount& amount) { return amount.name == limit.name; };
    if (std::ranges::none_of(out, same_name)) json::AddAmount(out, limit.name, limit.milli);
  }
  return error;
}

// Containers run together, init containers one after the other before them.
struct Requests {
  std::vector<ResourceAmount> together;
  std::vector<ResourceAmount> most_alone;
  std::vector<ResourceAmount> overhead;

  std::vector<ResourceAmount> Sum() && {
    for (const ResourceAmount& alone : most_alone) {
      const std::int64_t missing = alone.milli - FindAmount(together, alone.name.view());
      if (missing > 0) json::AddAmount(together, alone.name, missing);
    }
    for (const ResourceAmount& more : overhead) json::AddAmount(together, more.name, more.milli);
    together.shrink_to_fit();
    return std::move(together);
  }
};

Error ReadSpec(Reader& reader, Value value, CompactPod& out) {
  Requests requests;
  const Error error = reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "nodeName") return Read(field, out.node);
    if (key == "restartPolicy") return ReadRestartPolicy(field, out.restart_policy);
    if (key == "overhead") return Read(reader, field, requests.overhead);
    if (key == "nodeSelector") return Read(reader, field, out.node_selector);
    if (key == "schedulingGates") {
      return reader.ForEachItem(field, [&](Value gate) {
        return reader.ForEachMember(gate, [&](std::string_view name, Value text) {
          return name == "name" ? Read(text, out.scheduling_gates.emplace_back()) : kOk;
        });
      });
    }
    if (key == "containers") {
      return reader.ForEachItem(field, [&](Value container) {
        std::vector<ResourceAmount> amounts;
        const Error read = ReadRequests(reader, container, amounts);
        for (const ResourceAmount& a : amounts) json::AddAmount(requests.together, a.name, a.milli);
        return read;
      });
    }
    if (key == "initContainers") {
      return reader.ForEachItem(field, [&](Value container) {
        std::vector<ResourceAmount> amounts;
        const Error read = ReadRequests(reader, container, amounts);
        for (const ResourceAmount& a : amounts) {
          const std::int64_t more = a.milli - FindAmount(requests.most_alone, a.name.view());
          if (more > 0) json::AddAmount(requests.most_alone, a.name, more);
        }
        return read;
      });
    }
    return kOk;
  });
  out.requests = std::move(requests).Sum();
  return error;
}

Error ReadStatus(Reader& reader, Value value, CompactPod& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "phase") return ReadPhase(field, out.phase);
    if (key == "reason") return Read(field, out.reason);
    if (key == "message") return json::ReadMessage(field, out.message);
    if (key == "podIP") return Read(field, out.pod_ip);
    if (key == "hostIP") return Read(field, out.host_ip);
    if (key == "startTime") return Read(field, out.start_time);
    if (key == "containerStatuses") return ReadContainerStatuses(reader, field, out.containers);
    if (key == "initContainerStatuses") return ReadContainerStatuses(reader, field, out.init_containers);
    if (key == "conditions") {
      return json::ForEachCondition(
          reader, field, [&](std::string_view type, Condition condition, std::string_view message) {
            if (type == "PodScheduled" && condition.status == ConditionStatus::kFalse) {
              out.unscheduled = SharedText(message);
            }
            Condition* known = type == "Ready"              ? &out.ready
                               : type == "PodScheduled"     ? &out.scheduled
                               : type == "DisruptionTarget" ? &out.disruption
                                                            : nullptr;
            if (known != nullptr) *known = std::move(condition);
          });
    }
    return kOk;
  });
}

}  // namespace

std::string_view PrintPhase(PodPhase phase) { return kPhases[static_cast<std::size_t>(phase)]; }

bool IsAccelerator(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = resource.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

std::int64_t FindAmount(const std::vector<ResourceAmount>& amounts, std::string_view name) {
  for (const ResourceAmount& amount : amounts) {
    if (amount.name == name) return amount.milli;
  }
  return 0;
}

const ContainerStatus* CompactPod::FindContainer(std::string_view name) const {
  for (const ContainerStatus& container : containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

absl::StatusOr<CompactPod> ParsePod(std::string json, const MetaOptions& options) {
  CompactPod pod;
  Reader reader;
  TY_RETURN_IF_ERROR(reader.ReadObject("a Pod", std::move(json), [&](std::string_view key, Value value) {
    if (key == "metadata") return Read(reader, value, pod.meta, options);
    if (key == "spec") return ReadSpec(reader, value, pod);
    if (key == "status") return ReadStatus(reader, value, pod);
    return kOk;
  }));
  return pod;
}

}  // namespace trainyard::kube
