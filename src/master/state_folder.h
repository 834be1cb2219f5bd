// The folder in which the master of a job keeps its queue, on storage that outlives its node. One pod at a
// time owns it.
//
//   FOLDER/1/pod, FOLDER/1/queue   the first pod of the master, and its queue
//   FOLDER/2/pod, FOLDER/2/queue   the pod that took over, and its queue, which began as a copy
//
// The node of a master may only be cut off, with the master still running there. So a pod that takes over
// never writes to files that another one has open. It claims the next number, which ends the old master when
// it looks, waits until it must have looked, and copies the queue. What an old master stores that did not
// look is seen by nobody.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::master {

class StateFolder {
 public:
  // How often an owner looks whether it still is.
  static constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

  // Takes the folder over for this pod. A process that is started again in the same pod gets what it had.
  // After `settle` an owner before must have looked. FailedPrecondition: another pod has taken it over from
  // this one.
  static absl::StatusOr<StateFolder> TakeOver(const std::string& folder, const std::string& pod,
                                              absl::Duration settle = 3 * kLookEvery);

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
