// A kind of job: its translation into the job model and back. The controller knows no kind by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "job/job_spec.h"
#include "job/job_status.h"
#include "kube/object_meta.h"
#include "kube/resource.h"

namespace trainyard::ops {

// A job as the cache has it.
struct CompactJob {
  kube::ObjectMeta meta;
  job::JobSpec spec;
  std::string invalid;  // what is wrong with the spec; empty: nothing
  job::JobStatus status;
  std::string spec_text;  // JSON, with the pods' templates; empty once the job has ended
};

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
  // JSON texts. `role` is one of the spec's, `index` one of its indexes.
  virtual std::string MakePod(std::string_view role, int index, int attempt) const = 0;
  virtual std::string MakeService(std::string_view role, int index) const = 0;
};

class Kind {
 public:
  virtual ~Kind() = default;

  virtual const kube::Resource& resource() const = 0;
  // The container that does the work of a pod.
  virtual std::string_view main_container() const = 0;
  // That pods and services of all jobs of the kind carry.
  virtual std::string_view label_selector() const = 0;
  // What FindPlace() looks at.
  virtual std::vector<std::string> place_labels() const = 0;
  // Nothing: the labels are not those of an object of ours.
  virtual std::optional<Place> FindPlace(const kube::ObjectMeta& meta) const = 0;
  // That an object is to carry to be adopted by the job.
  virtual Object LabelsOf(const kube::ObjectMeta& job, const Place& place) const = 0;

  // Reads any object of the kind, however bad its spec is. InvalidArgument: it has no metadata.
  virtual absl::StatusOr<CompactJob> Decode(std::string json) const = 0;
  virtual Document PrintStatus(const job::JobStatus& status) const = 0;
  // The job's spec is valid and its text is there.
  virtual std::unique_ptr<ObjectMaker> NewMaker(const CompactJob& job) const = 0;
};

}  // namespace trainyard::ops
