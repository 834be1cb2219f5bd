// The files of a pod's volumes: what stands in them (pure), and putting it there so that a reader sees all of
// the old files or all of the new.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node/environment.h"

namespace trainyard::node {

struct VolumeFile {
  std::string path;  // below the volume
  std::string bytes;
  int mode = 0644;
  bool operator==(const VolumeFile&) const = default;
};

// A volume whose files come from the API server.
struct VolumeContent {
  std::string name;
  std::vector<VolumeFile> files;      // by path
  std::optional<std::int64_t> group;  // whose they are too, where this process may say so
  bool operator==(const VolumeContent&) const = default;
};

// The token of a pod's service account; empty: there is none.
using TokenSourceFn = std::function<std::string(const PodSpec& pod)>;

// NotFound: what a volume refers to and that must be there is not; in a kubelet's words.
absl::StatusOr<std::vector<VolumeContent>> PlanVolumes(const PodSpec& pod, const ClusterObjects& objects,
                                                       const PodFacts& facts, const TokenSourceFn& token);

// Makes the folders of all volumes that live in the pod's own folder. `group`: whose they are too.
absl::Status MakeVolumeFolders(const PodSpec& pod, const std::string& volumes_folder);

// Puts the files into FOLDER/NAME, in one step: FOLDER/NAME/..data is a link that is turned over, and what
// users see are links through it.
absl::Status WriteVolume(const VolumeContent& content, const std::string& volumes_folder);

// A hostPath volume that must exist, or be made, by its type. FailedPrecondition: it is not as it must be.
absl::Status CheckHostPaths(const PodSpec& pod);

}  // namespace trainyard::node
