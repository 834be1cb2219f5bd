// The folder in which the master of a job keeps its queue, on storage that outlives its node. One pod at a
// time owns it.
//
//   FOLDER/1/pod, FOLDER/1/queue   the first pod of the master, and its queue
//   FOLDER/2/pod, FOLDER/2/queue   the pod that took over, and its queue, which began as a copy
//
// The node of a master may only be cut off, with the master still running there. So a pod that takes over
// never writes to files that another one has open. It copies them under the next number; what the old master
// stores from then on is seen by nobody, and the old master ends when it finds the higher number.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace trainyard::master {

class StateFolder {
 public:
  // Takes the folder over for this pod. A process that is started again in the same pod gets what it had.
  // FailedPrecondition: another pod has taken it over from this one.
  static absl::StatusOr<StateFolder> TakeOver(const std::string& folder, const std::string& pod);

  // Where the queue is.
  const std::string& path() const { return path_; }
  // Whether no other pod has taken over. Unknown, as when the storage does not answer, counts as owned: what
  // cannot be read cannot have been copied either.
  bool IsOwned() const;

 private:
  StateFolder(std::string folder, int number);

  std::string folder_;
  int number_ = 0;
  std::string path_;
};

}  // namespace trainyard::master
