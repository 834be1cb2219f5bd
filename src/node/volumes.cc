#include "node/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "base/fd.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::node {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, VolumeFile>;

void Put(Files& files, const std::string& path, std::string bytes, int mode) {
  files[path] = {.path = path, .bytes = std::move(bytes), .mode = mode};
}

// Collects the files of one volume from its sources.
class Collector {
 public:
  Collector(const PodSpec& pod, const ClusterObjects& objects, const PodFacts& facts,
            const TokenSourceFn& token)
      : pod_(pod), objects_(objects), facts_(facts), token_(token) {}

  absl::StatusOr<VolumeContent> Collect(const VolumeSpec& volume) {
    Files files;
    for (const VolumeSpec::Source& source : volume.sources) {
      const absl::Status status =
          std::visit([&](const auto& one) { return Add(one, volume, files); }, source);
      if (!status.ok()) {
        return Annotate(status, StrCat("MountVolume.SetUp failed for volume \"", volume.name, "\" "));
      }
    }
    VolumeContent content{.name = volume.name};
    content.group = pod_.fs_group;
    for (auto& [path, file] : files) {
      if (content.group) file.mode |= 0440;
      content.files.push_back(std::move(file));
    }
    return content;
  }

 private:
  static absl::Status Add(const EmptyDirSource&, const VolumeSpec&, Files&) { return absl::OkStatus(); }
  static absl::Status Add(const HostPathSource&, const VolumeSpec&, Files&) { return absl::OkStatus(); }
  static absl::Status Add(const UnsupportedSource&, const VolumeSpec&, Files&) { return absl::OkStatus(); }

  absl::Status Add(const ConfigMapSource& source, const VolumeSpec& volume, Files& files) {
    return AddData(source, objects_.config_maps, "configmap", volume, files);
  }
  absl::Status Add(const SecretSource& source, const VolumeSpec& volume, Files& files) {
    return AddData(source, objects_.secrets, "secret", volume, files);
  }
  absl::Status Add(const DownwardSource& source, const VolumeSpec& volume, Files& files) {
    for (const VolumeItem& item : source.items) {
      std::string value;
      if (const auto* field = std::get_if<FieldRef>(&item.from)) {
        TY_ASSIGN_OR_RETURN(value, FieldValue(pod_, facts_, field->path));
      } else if (const auto* resource = std::get_if<ResourceFieldRef>(&item.from)) {
        TY_ASSIGN_OR_RETURN(value, ResourceValue(pod_, facts_, pod_.containers[0], *resource));
      }
      Put(files, item.path, std::move(value), item.mode.value_or(volume.default_mode));
    }
    return absl::OkStatus();
  }
  absl::Status Add(const TokenSource& source, const VolumeSpec& volume, Files& files) {
    std::string token = token_ ? token_(pod_) : "";
    if (!token.empty()) Put(files, source.path, std::move(token), volume.default_mode);
    return absl::OkStatus();
  }

  absl::Status AddData(const ConfigMapSource& source, const std::map<kube::ObjectKey, DataObject>& all,
                       std::string_view kind, const VolumeSpec& volume, Files& files) {
    const auto found = all.find({pod_.ns, source.name});
    if (found == all.end()) {
      if (source.optional) return absl::OkStatus();
      return absl::NotFoundError(StrCat(kind, " \"", source.name, "\" not found"));
    }
    StringMap data = found->second.data;
    data.insert(found->second.binary.begin(), found->second.binary.end());
    if (source.items.empty()) {
      for (const auto& [key, value] : data) Put(files, key, value, volume.default_mode);
      return absl::OkStatus();
    }
    for (const VolumeItem& item : source.items) {
      const auto value = data.find(item.key);
      if (value == data.end()) {
        if (source.optional) continue;
        return absl::NotFoundError(
            StrCat("references non-existent ", kind == "secret" ? "secret" : "config", " key: ", item.key));
      }
      Put(files, item.path, value->second, item.mode.value_or(volume.default_mode));
    }
    return absl::OkStatus();
  }

  const PodSpec& pod_;
  const ClusterObjects& objects_;
  const PodFacts& facts_;
  const TokenSourceFn& token_;
};

bool ComesFromServer(const VolumeSpec& volume) {
  return std::ranges::any_of(volume.sources, [](const VolumeSpec::Source& source) {
    return !std::holds_alternative<EmptyDirSource>(source) &&
           !std::holds_alternative<HostPathSource>(source) &&
           !std::holds_alternative<UnsupportedSource>(source);
  });
}

absl::Status WriteNewFile(const std::string& path, const VolumeFile& content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot make ", path));
  TY_RETURN_IF_ERROR(WriteAll(file.get(), content.bytes, path));
  if (::fchmod(file.get(), static_cast<mode_t>(content.mode)) != 0) {
    return ErrnoStatus(errno, StrCat("cannot set the mode of ", path));
  }
  return absl::OkStatus();
}

absl::Status FromCode(const std::error_code& code, std::string_view what) {
  return code ? ErrnoStatus(code.value(), what) : absl::OkStatus();
}

// The names that a volume shows at its top: "a" of "a/b" and "a/c".
std::set<std::string> TopNames(const VolumeContent& content) {
  std::set<std::string> names;
  for (const VolumeFile& file : content.files) names.emplace(file.path.substr(0, file.path.find('/')));
  return names;
}

absl::Status FillFolder(const VolumeContent& content, const fs::path& folder) {
  std::error_code code;
  fs::create_directory(folder, code);
  TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot make ", folder.string())));
  ::chmod(folder.c_str(), 0755);
  for (const VolumeFile& file : content.files) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path(), code);
    TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot make ", path.parent_path().string())));
    TY_RETURN_IF_ERROR(WriteNewFile(path.string(), file));
    if (!content.group || ::geteuid() != 0) continue;
    if (::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*content.group)) != 0) {
      return ErrnoStatus(errno, StrCat("cannot give ", path.string(), " to its group"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<VolumeContent>> PlanVolumes(const PodSpec& pod, const ClusterObjects& objects,
                                                       const PodFacts& facts, const TokenSourceFn& token) {
  std::vector<VolumeContent> contents;
  Collector collector(pod, objects, facts, token);
  for (const VolumeSpec& volume : pod.volumes) {
    if (!ComesFromServer(volume)) continue;
    TY_ASSIGN_OR_RETURN(VolumeContent content, collector.Collect(volume));
    contents.push_back(std::move(content));
  }
  return contents;
}

absl::Status MakeVolumeFolders(const PodSpec& pod, const std::string& volumes_folder) {
  std::error_code code;
  fs::create_directories(volumes_folder, code);
  TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot make ", volumes_folder)));
  for (const VolumeSpec& volume : pod.volumes) {
    if (std::holds_alternative<HostPathSource>(volume.sources[0])) continue;
    const std::string folder = StrCat(volumes_folder, "/", volume.name);
    fs::create_directories(folder, code);
    TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot make ", folder)));
    if (std::holds_alternative<EmptyDirSource>(volume.sources[0])) {
      ::chmod(folder.c_str(), 0777);
      if (pod.fs_group && ::geteuid() == 0) {
        (void)!::chown(folder.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*pod.fs_group));
        ::chmod(folder.c_str(), 02777);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteVolume(const VolumeContent& content, const std::string& volumes_folder) {
  const fs::path folder = fs::path(volumes_folder) / content.name;
  std::error_code code;
  const fs::path before = fs::read_symlink(folder / "..data", code);
  const int number = code ? 0 : ParseNumber<int>(std::string_view(before.native()).substr(2)).value_or(0);
  const std::string next = StrCat("..", number + 1);
  fs::remove_all(folder / next, code);  // of one who was killed here
  TY_RETURN_IF_ERROR(FillFolder(content, folder / next));
  fs::remove(folder / "..data_new", code);
  fs::create_symlink(next, folder / "..data_new", code);
  TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot link in ", folder.string())));
  fs::rename(folder / "..data_new", folder / "..data", code);
  TY_RETURN_IF_ERROR(FromCode(code, StrCat("cannot turn over ", folder.string())));

  const std::set<std::string> names = TopNames(content);
  for (const std::string& name : names) {
    if (!fs::is_symlink(folder / name, code))
      fs::create_symlink(fs::path("..data") / name, folder / name, code);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("..") || names.contains(name)) continue;
    fs::remove(entry.path(), code);
  }
  if (!before.empty()) fs::remove_all(folder / before, code);
  return absl::OkStatus();
}

absl::Status CheckHostPaths(const PodSpec& pod) {
  for (const VolumeSpec& volume : pod.volumes) {
    const auto* host = std::get_if<HostPathSource>(&volume.sources[0]);
    if (host == nullptr) continue;
    std::error_code code;
    if (host->type == "DirectoryOrCreate") fs::create_directories(host->path, code);
    if (host->type == "FileOrCreate" && !fs::exists(host->path, code)) {
      (void)WriteNewFile(host->path, {.path = host->path, .bytes = "", .mode = 0644});
    }
    const fs::file_status status = fs::status(host->path, code);
    const bool folder = host->type.starts_with("Directory");
    const bool file = host->type.starts_with("File");
    if (!fs::exists(status) || (folder && !fs::is_directory(status)) ||
        (file && !fs::is_regular_file(status))) {
      return absl::FailedPreconditionError(
          StrCat("MountVolume.SetUp failed for volume \"", volume.name, "\" : hostPath ", host->path,
                 " is not a ", host->type.empty() ? "file or folder" : host->type, " of this machine"));
    }
  }
  return absl::OkStatus();
}

}  // namespace trainyard::node
