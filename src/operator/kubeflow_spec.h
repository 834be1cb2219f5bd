// The specs of the kinds of kubeflow.org: roles of known names, each with replicas, a restart policy and a
// template, and policies for the whole job. What differs between kinds and versions stands in a Dialect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/document.h"
#include "job/job_spec.h"
#include "job/names.h"
#include "kube/resource.h"
#include "operator/spec_reader.h"

namespace trainyard::ops {

struct ReplicaType {
  std::string_view name;   // "Worker"
  std::string_view slug;   // "worker"
  std::string_view alias;  // another name for the same; empty: none
  bool single = false;     // there can be only one pod
};

// One version of a kind.
struct Dialect {
  std::string_view kind;
  std::string_view version;
  std::string_view replicas;           // the member of spec that holds the roles: "tfReplicaSpecs"
  std::span<const ReplicaType> types;  // in the order in which a job's status and messages show them
  std::string_view container;          // that does the work
  std::string_view port_name;
  std::int32_t port = 0;                                    // unless the container has one of that name
  job::RestartPolicy restart = job::RestartPolicy::kNever;  // of a role that names none
  std::string_view operator_name;                           // as the original's v1 labels pods with it
  bool IsV1() const { return version == "v1"; }
};

struct ParsedSpec {
  job::JobSpec spec;
  std::string invalid;  // the first thing that is wrong, with the field's path; empty: nothing
};

class KubeflowReader : protected SpecReader {
 public:
  KubeflowReader(const Dialect& dialect, const kube::ObjectKey& job) : dialect_(dialect), job_(job) {}
  virtual ~KubeflowReader() = default;
  // Total: any document has a result. The names of the job's pods are made of its own name and its namespace.
  ParsedSpec Read(const Document* spec);

 protected:
  // What the kind has beside roles and policies, and who decides its end. All roles have been read.
  virtual void ReadRest(const Document& spec) = 0;

  // Null: there is none, or it has no pods.
  job::RoleSpec* FindRole(std::string_view slug);
  std::string PathOf(std::string_view role) const;  // "spec.tfReplicaSpecs.Worker"
  job::NameRule Naming() const;
  void CheckNames(const job::RoleSpec& role, int replicas);

  const Dialect& dialect_;
  const kube::ObjectKey job_;
  job::JobSpec out_;

 private:
  void ReadPolicies(const Document& spec);
  void ReadScheduling(const Document& policies, const std::string& path);
  void ReadRoles(const Document& spec);
  void ReadRole(const ReplicaType& type, const std::string& path, const Document& replica);
  void CheckTemplate(const std::string& path, const Document* pod_template);
  void CheckPorts(const std::string& path, const Array& ports);
  std::string ListTypes() const;
};

// The member of the spec that holds the role, in any letter case; null: none.
const Document* FindReplicaSpec(const Dialect& dialect, const Document& spec, std::string_view slug);
// Of the container of a replica spec that does the work.
std::int32_t FindPort(const Dialect& dialect, const Document& replica_spec);

}  // namespace trainyard::ops
