#include "node/node_objects.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "apiserver/discovery.h"
#include "base/files.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "kube/node.h"

namespace trainyard::node {
namespace {

std::string FirstLine(const std::string& path) {
  const auto text = ReadFile(path, 1 << 16);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

// The value of PRETTY_NAME, without its quotes.
std::string OsImage() {
  const auto text = ReadFile("/etc/os-release", 1 << 16);
  if (!text.ok()) return "Linux";
  for (std::string_view line : Split(*text, '\n')) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    if (line.starts_with('"') && line.ends_with('"') && line.size() > 1)
      line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return "Linux";
}

std::string GoArchitecture(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

Object Amounts(const Resources& resources) {
  Object object;
  for (const auto& [name, amount] : resources) object[name] = amount.Print();
  return object;
}

Document Conditions(absl::Time since, absl::Time now) {
  const auto condition = [&](std::string_view type, bool status, std::string_view reason,
                             std::string_view message) {
    return Object{{"type", type},
                  {"status", status ? "True" : "False"},
                  {"reason", reason},
                  {"message", message},
                  {"lastHeartbeatTime", PrintTime(now)},
                  {"lastTransitionTime", PrintTime(since)}};
  };
  return Array{
      condition("MemoryPressure", false, "KubeletHasSufficientMemory", "memory is not watched here"),
      condition("DiskPressure", false, "KubeletHasNoDiskPressure", "disk space is not watched here"),
      condition("PIDPressure", false, "KubeletHasSufficientPID", "process numbers are not watched here"),
      condition("Ready", true, "KubeletReady", "the process node is ready")};
}

std::string KubeletVersion(std::string_view release) {
  return StrCat("v1.", apiserver::kApiMinor, ".0+trainyard.", release);
}

Object Status(const NodeConfig& config, const MachineFacts& facts, std::string_view release, absl::Time since,
              absl::Time now) {
  const Object amounts = Amounts(NodeCapacity(config, facts));
  return Object{{"capacity", amounts},
                {"allocatable", amounts},
                {"conditions", Conditions(since, now)},
                {"addresses", Array{Object{{"type", "InternalIP"}, {"address", kHostIp}},
                                    Object{{"type", "Hostname"}, {"address", config.name}}}},
                {"nodeInfo", Object{{"machineID", facts.machine_id},
                                    {"systemUUID", facts.machine_id},
                                    {"bootID", facts.boot_id},
                                    {"kernelVersion", facts.kernel},
                                    {"osImage", facts.os_image},
                                    {"containerRuntimeVersion", StrCat(kube::kProcessRuntime, release)},
                                    {"kubeletVersion", KubeletVersion(release)},
                                    {"kubeProxyVersion", KubeletVersion(release)},
                                    {"operatingSystem", "linux"},
                                    {"architecture", facts.architecture}}}};
}

Object Labels(const NodeConfig& config, const MachineFacts& facts) {
  Object labels{{"kubernetes.io/hostname", config.name},
                {"kubernetes.io/os", "linux"},
                {"kubernetes.io/arch", facts.architecture},
                {"beta.kubernetes.io/os", "linux"},
                {"beta.kubernetes.io/arch", facts.architecture}};
  for (const auto& [key, value] : config.labels) labels[key] = value;
  return labels;
}

Object Metadata(const NodeConfig& config, const MachineFacts& facts) {
  Object annotations;
  for (const auto& [key, value] : config.annotations) annotations[key] = value;
  return {{"labels", Labels(config, facts)}, {"annotations", std::move(annotations)}};
}

}  // namespace

MachineFacts LookAtMachine(const std::string& folder) {
  MachineFacts facts;
  utsname names{};
  ::uname(&names);
  facts.hostname = names.nodename;
  facts.kernel = names.release;
  facts.architecture = GoArchitecture(names.machine);
  facts.os_image = OsImage();
  facts.machine_id = FirstLine("/etc/machine-id");
  facts.boot_id = FirstLine("/proc/sys/kernel/random/boot_id");
  facts.cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  facts.memory_bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) == 0) {
    facts.disk_bytes = static_cast<std::int64_t>(disk.f_blocks) * static_cast<std::int64_t>(disk.f_frsize);
  }
  return facts;
}

Resources NodeCapacity(const NodeConfig& config, const MachineFacts& facts) {
  using kube::Quantity;
  Resources capacity = {
      {"cpu", Quantity::FromUnits(facts.cpus)},
      {"memory", Quantity::FromUnits(facts.memory_bytes, Quantity::Format::kBinary)},
      {"ephemeral-storage", Quantity::FromUnits(facts.disk_bytes, Quantity::Format::kBinary)},
      {"pods", Quantity::FromUnits(kMaxPods)}};
  for (const auto& [name, text] : config.capacity) {
    if (const auto amount = Quantity::Parse(text); amount.ok()) capacity.insert_or_assign(name, *amount);
  }
  return capacity;
}

Document MakeNode(const NodeConfig& config, const MachineFacts& facts, std::string_view release,
                  absl::Time now) {
  Object metadata = Metadata(config, facts);
  metadata["name"] = config.name;
  return Object{{"apiVersion", "v1"},
                {"kind", "Node"},
                {"metadata", std::move(metadata)},
                {"spec", Object{}},
                {"status", Status(config, facts, release, now, now)}};
}

Document NodePatch(const NodeConfig& config, const MachineFacts& facts) {
  return Object{{"metadata", Metadata(config, facts)}};
}

Document NodeStatusPatch(const NodeConfig& config, const MachineFacts& facts, std::string_view release,
                         absl::Time since, absl::Time now) {
  Object status = Status(config, facts, release, since, now);
  // What the node had before, and has no more, goes.
  for (const std::string_view amounts : {"capacity", "allocatable"}) {
    status[amounts].get_object()["$patch"] = "replace";
  }
  return Object{{"status", std::move(status)}};
}

bool SaysReady(const Document& node) {
  const Array* conditions = ArrayAt(node, {"status", "conditions"});
  return conditions != nullptr && std::ranges::any_of(*conditions, [](const Document& condition) {
           return StringAt(condition, {"type"}) == "Ready" && StringAt(condition, {"status"}) == "True";
         });
}

Document MakeLease(std::string_view node, absl::Duration duration, absl::Time now) {
  return Object{{"apiVersion", "coordination.k8s.io/v1"},
                {"kind", "Lease"},
                {"metadata", Object{{"name", node}, {"namespace", "kube-node-lease"}}},
                {"spec", Object{{"holderIdentity", node},
                                {"leaseDurationSeconds", absl::ToInt64Seconds(duration)},
                                {"renewTime", PrintMicroTime(now)}}}};
}

}  // namespace trainyard::node
