#include "client/pod_parts.h"

#include <string>
#include <utility>

namespace trainyard::client {
namespace {

constexpr std::string_view kPartOf = "app.kubernetes.io/part-of";

}  // namespace

Object Metadata(std::string_view ns, std::string_view name) {
  return {{"name", name}, {"namespace", ns}, {"labels", Object{{kPartOf, "trainyard"}}}};
}

Object FromSecret(std::string_view variable, std::string_view secret) {
  return {{"name", variable},
          {"valueFrom", Object{{"secretKeyRef", Object{{"name", secret}, {"key", kTokenKey}}}}}};
}

Object FromField(std::string_view variable, std::string_view path) {
  return {{"name", variable}, {"valueFrom", Object{{"fieldRef", Object{{"fieldPath", path}}}}}};
}

Object Variable(std::string_view name, std::string_view value) { return {{"name", name}, {"value", value}}; }

Array UnderAgent(std::string_view program, Array command, int restarts) {
  Array all{program, "agent", "keep", "--restarts", std::to_string(restarts), "--"};
  for (Document& word : command) all.push_back(std::move(word));
  return all;
}

Object ResourcesOf(const graph::Resource& resource) {
  Object requests;
  if (!resource.cpu.empty()) requests["cpu"] = resource.cpu;
  if (!resource.memory.empty()) requests["memory"] = resource.memory;
  Object limits = requests;
  limits.erase("cpu");  // a pod that could go faster may
  if (!resource.gpu.empty()) requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"] = resource.gpu;
  return {{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

}  // namespace trainyard::client
