// TFJobs for tests.
#pragma once

#include <string>
#include <string_view>

#include "base/document.h"
#include "base/yaml.h"

namespace trainyard::ops {

// A role whose pods have one container that does the work.
inline Object TfRole(int replicas, std::string_view restart_policy = "Always") {
  return {{"replicas", replicas},
          {"restartPolicy", restart_policy},
          {"template",
           Object{{"spec", Object{{"containers", Array{Object{{"name", "tensorflow"}, {"image", "tf"}}}}}}}}};
}

inline Object TfJob(Object roles, std::string_view name = "mnist") {
  return {{"apiVersion", "kubeflow.org/v1alpha2"},
          {"kind", "TFJob"},
          {"metadata", Object{{"name", name},
                              {"namespace", "team"},
                              {"uid", "0a1b2c3d-0000-4000-8000-000000000000"},
                              {"resourceVersion", "7"},
                              {"generation", 1}}},
          {"spec", Object{{"tfReplicaSpecs", std::move(roles)}}}};
}

// From YAML, as users write it.
inline Document Yaml(std::string_view text) {
  const auto documents = ParseYaml(text).value();
  return documents.empty() ? Document() : documents.front();
}

}  // namespace trainyard::ops
