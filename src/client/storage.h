// Where a graph job or an elastic job keeps what must outlive its pods: checkpoints, and the store if it has
// one of its own. Pure.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard::client {

// A folder that every node sees under this path: a network file system, or the only node's disk.
struct SharedFolder {
  std::string path;
  bool operator==(const SharedFolder&) const = default;
};
// A PersistentVolumeClaim of the job's namespace.
struct VolumeClaim {
  std::string name;
  bool operator==(const VolumeClaim&) const = default;
};
using Storage = std::variant<SharedFolder, VolumeClaim>;

// "/mnt/yard", "claim:NAME". InvalidArgument: it is neither; the message shows both forms.
absl::StatusOr<Storage> ParseStorage(std::string_view text);
std::string Print(const Storage& storage);

// Where containers see it: a folder at its own path, so that paths in the store mean the same everywhere.
std::string MountPath(const Storage& storage);
// Where pods find a path of the job's own: a relative one lies below the storage. InvalidArgument: it lies
// outside, where what a pod writes goes with the pod; `what` names the path.
absl::StatusOr<std::string> PathInStorage(const Storage& storage, std::string_view what,
                                          std::string_view path);
// A volume called `storage`, for a pod's `volumes`, and its mount.
Document VolumeOf(const Storage& storage);
Document MountOf(const Storage& storage);

}  // namespace trainyard::client
