// A kind of job: its translation into the job model and back. The controller knows no kind by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/document.h"
#include "job/action.h"
#include "job/job_spec.h"
#include "job/job_status.h"
#include "job/names.h"
#include "kube/object_meta.h"
#include "kube/resource.h"

namespace trainyard::reconcile {

// A job as the cache has it.
struct CompactJob {
  kube::ObjectMeta meta;
  job::JobSpec spec;
  std::string invalid;       // what is wrong with the spec; empty: nothing
  std::string edit_problem;  // what is wrong with an edit: the spec is then the one that was valid before it
  job::JobStatus status;
  std::string spec_text;  // JSON, with the pods' templates; empty once the job has ended
};

// What the job's objects are called.
job::NameRule NamingOf(const CompactJob& job);
// The ConfigMap that pods mount when what they are told of each other does not fit their environment, and
// where they find its files.
std::string ConfigName(const CompactJob& job);
// The PodGroup of the job's gang. Jobs of several kinds may have the same name, so the kind is part of it.
std::string PodGroupName(std::string_view kind, std::string_view job);
inline constexpr std::string_view kConfigFolder = "/var/run/trainyard/config";

// The reference by which an object belongs to the job, and goes with it.
Object OwnerReference(const kube::Resource& kind, const kube::ObjectMeta& job);

// Which pod of a job an object is, or is of.
struct Place {
  std::string job;
  std::string role;  // the slug
  int index = 0;
  bool operator==(const Place&) const = default;
};

// Makes the objects of one job.
class ObjectMaker {
 public:
  virtual ~ObjectMaker() = default;
  // JSON texts. The role is one of the spec's, the index one of its indexes.
  virtual std::string MakePod(const job::CreatePod& create) const = 0;
  virtual std::string MakeService(const job::CreateService& create) const = 0;
  // The files of the configuration, by name, of a job that has config_in_file.
  virtual Object MakeConfigData() const = 0;
};

class Kind {
 public:
  virtual ~Kind() = default;

  virtual const kube::Resource& resource() const = 0;
  // Whether objects of that apiVersion are its own: there may be versions beside the one that it watches.
  virtual bool Serves(std::string_view api_version) const { return api_version == resource().ApiVersion(); }
  // As users name it on the command line: "tfjob", "tfjobs", "tfj".
  virtual const std::vector<std::string>& names() const = 0;
  // Whether the container of that name does the work of a pod.
  virtual bool IsMain(std::string_view container) const = 0;
  // Whether the autoscaler may change the sizes of its jobs.
  virtual bool is_elastic() const { return false; }
  // The states that its jobs have, and what it calls them.
  virtual job::Telling telling() const = 0;
  // That pods and services of all jobs of the kind carry.
  virtual std::string_view label_selector() const = 0;
  // What FindPlace() looks at.
  virtual std::vector<std::string> place_labels() const = 0;
  // Nothing: the labels are not those of an object of ours.
  virtual std::optional<Place> FindPlace(const kube::ObjectMeta& meta) const = 0;
  // That all objects of the job carry, and those of a pod and its service.
  virtual Object LabelsOf(const kube::ObjectMeta& job) const = 0;
  virtual Object LabelsOf(const kube::ObjectMeta& job, const Place& place) const = 0;

  // Reads any object of the kind, however bad its spec is. InvalidArgument: it has no metadata.
  virtual absl::StatusOr<CompactJob> Decode(std::string json) const = 0;
  virtual Document PrintStatus(const CompactJob& job, const job::JobStatus& status) const = 0;
  // The job's spec is valid and its text is there.
  virtual std::unique_ptr<ObjectMaker> NewMaker(const CompactJob& job) const = 0;
};

// As Kind::Decode(), but an edit that is not valid leaves the job with its last valid spec: the one in its
// status, or that of the job as it was known until now, which `find` returns, or null.
using FindKnownJob = absl::FunctionRef<std::shared_ptr<const CompactJob>(const kube::ObjectKey&)>;
absl::StatusOr<CompactJob> DecodeJob(const Kind& kind, const std::string& json, FindKnownJob find);

}  // namespace trainyard::reconcile
