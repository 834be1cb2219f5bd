// Where a pod lives on disk: one folder below the cluster's home, from the moment that the node sees the pod
// until it is finished with it.
//
//   HOME/pods/UID/            (0700)
//     pod.json                the pod, its node and its address, for the next start of the node
//     config, shim.sock, shim.log
//     state                   what happened to its processes
//     hosts                   its /etc/hosts
//     volumes/NAME/
//     logs/CONTAINER/0.log, 1.log, …    one for each run; 0.log.1, 0.log.2 are its older parts
//     termination/CONTAINER.0           what is seen at terminationMessagePath
//     ended                   there if `trainyard down` ended what ran in it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "node/pod_record.h"

namespace trainyard::node {

class PodFolder {
 public:
  PodFolder(std::string_view home, std::string_view uid);

  const std::string& path() const { return path_; }
  std::string State() const { return path_ + "/state"; }
  std::string Hosts() const { return path_ + "/hosts"; }
  std::string Config() const { return path_ + "/config"; }
  std::string PodJson() const { return path_ + "/pod.json"; }
  std::string Volumes() const { return path_ + "/volumes"; }
  std::string EndedMark() const { return path_ + "/ended"; }
  std::string LogFolder(std::string_view container) const;
  std::string Log(std::string_view container, int attempt) const;
  std::string Termination(std::string_view container, int attempt) const;

 private:
  std::string path_;
};

std::string PodsFolder(std::string_view home);
// The uids of the pods that have a folder.
std::vector<std::string> ListPodFolders(const std::string& home);

// Makes it and what must be in it before a shim can be started. May be called again.
absl::Status MakePodFolder(const PodFolder& folder);
// What one run needs beside: its log's folder and an empty termination message. Forgets what the run
// kKeptRuns before it left behind.
inline constexpr int kKeptRuns = 5;
absl::Status PrepareRun(const PodFolder& folder, std::string_view container, int attempt);
void RemovePodFolder(const PodFolder& folder);

// What stands in pod.json.
struct SavedPod {
  Document pod;
  std::string address;
};
absl::Status SavePod(const PodFolder& folder, const SavedPod& saved);
absl::StatusOr<SavedPod> LoadPod(const PodFolder& folder);

// One line of the state file.
struct StateEvent {
  enum class Kind : std::uint8_t { kShim, kStarted, kFailed, kExited };
  Kind kind = Kind::kStarted;
  std::string id;  // of the run
  absl::Time at;
  std::int64_t pid = 0;
  std::optional<int> code;
  std::optional<int> signal;
  bool oom = false;
  std::string error;
};
std::vector<StateEvent> ParseState(std::string_view bytes);
std::optional<StateEvent> ParseStateEvent(std::string_view frame);
// What can be read of it; nothing if there is none. A torn end is left out.
std::vector<StateEvent> ReadState(const PodFolder& folder);
// For a shim that is gone and left runs without an end.
absl::Status AppendLostRuns(const PodFolder& folder, const std::vector<std::string>& ids, absl::Time at);

// The end of a run that the event tells, without its message.
RunEnd ToRunEnd(const StateEvent& event, PlanTime now);
// Goes through the events as the node would have seen them.
void ReplayState(const std::vector<StateEvent>& events, const PodSpec& spec, PlanTime now,
                 absl::Duration reset, PodRecord& record);

// The termination message of a run that ended: the file's text, or, if it is empty and the container wants
// that, the last lines of the log of a run that failed.
std::string ReadTerminationMessage(const PodFolder& folder, const ContainerSpec& container, int attempt,
                                   bool failed);

}  // namespace trainyard::node
