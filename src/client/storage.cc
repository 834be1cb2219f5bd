#include "client/storage.h"

#include <filesystem>

#include "base/text.h"
#include "kube/names.h"

namespace trainyard::client {
namespace {

constexpr std::string_view kClaim = "claim:";
constexpr std::string_view kStorageVolume = "storage";
constexpr std::string_view kClaimMount = "/var/lib/trainyard";

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat("the storage '", Shortened(Escaped(text), 200), "' ", why,
             ": write a folder that all nodes see, as /mnt/yard, or claim:NAME for a PersistentVolumeClaim"));
}

}  // namespace

absl::StatusOr<Storage> ParseStorage(std::string_view text) {
  if (text.starts_with(kClaim)) {
    const std::string_view name = text.substr(kClaim.size());
    if (name.empty() || !kube::FindDns1123SubdomainProblem(name).empty())
      return Bad(text, "names no claim that can be");
    return VolumeClaim{std::string(name)};
  }
  if (!text.starts_with('/')) return Bad(text, "is no absolute path");
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  if (text == "/") return Bad(text, "is the root of the file system");
  for (const std::string_view part : Split(text, '/')) {
    if (part == "..") return Bad(text, "has a '..' in it");
  }
  return SharedFolder{std::string(text)};
}

std::string Print(const Storage& storage) {
  if (const auto* claim = std::get_if<VolumeClaim>(&storage)) return StrCat(kClaim, claim->name);
  return std::get<SharedFolder>(storage).path;
}

std::string MountPath(const Storage& storage) {
  const auto* folder = std::get_if<SharedFolder>(&storage);
  return folder != nullptr ? folder->path : std::string(kClaimMount);
}

absl::StatusOr<std::string> PathInStorage(const Storage& storage, std::string_view what,
                                          std::string_view path) {
  const std::string root = MountPath(storage);
  std::string found = (std::filesystem::path(root) / path).lexically_normal().string();
  if (found.size() > 1 && found.ends_with('/')) found.pop_back();
  if (found == root || found.starts_with(root + "/")) return found;
  return absl::InvalidArgumentError(
      StrCat(what, " ", Shortened(Escaped(path), 200), " is outside the storage ", root,
             ", and would be lost with the pod that writes it: give a path below ", root,
             ", or a relative one, which begins there"));
}

Document VolumeOf(const Storage& storage) {
  if (const auto* claim = std::get_if<VolumeClaim>(&storage)) {
    return Object{{"name", kStorageVolume}, {"persistentVolumeClaim", Object{{"claimName", claim->name}}}};
  }
  return Object{
      {"name", kStorageVolume},
      {"hostPath", Object{{"path", std::get<SharedFolder>(storage).path}, {"type", "DirectoryOrCreate"}}}};
}

Document MountOf(const Storage& storage) {
  return Object{{"name", kStorageVolume}, {"mountPath", MountPath(storage)}};
}

}  // namespace trainyard::client
