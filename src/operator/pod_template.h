// Pods and services of jobs, made from what a template says and what every kind adds to it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/document.h"
#include "job/action.h"

namespace trainyard::ops {

struct ObjectParts {
  std::string name;
  std::string_view ns;
  Object labels;  // they win over the template's
  int attempt = 0;
  Object owner;
  job::GangScheduler gang = job::GangScheduler::kNone;  // of a pod: that it waits for
};

// A pod as the template has it, under the job's name, labels and ownership.
Document PodFromTemplate(const Document& pod_template, ObjectParts parts);

// One that selects the pods with its own labels. Peers look each other up while they start, so an address is
// there before its pod is ready.
Document HeadlessService(ObjectParts parts, Array ports);

// Also those that come before the others.
void ForEachContainer(Object& pod_spec, const std::function<void(Object&)>& fill);

// The list at the key, made if there is none.
Array& MakeArrayAt(Object& object, std::string_view key);

// Mounts the ConfigMap of a job's configuration in every container.
void MountConfig(Object& pod_spec, const std::string& config_map);

void AddEnv(Array& env, std::string_view name, std::string value);

}  // namespace trainyard::ops
