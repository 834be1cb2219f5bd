#include "shim/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>

namespace trainyard::shim {
namespace {

// More would take longer to bind back than anybody waits for a process to start.
constexpr std::size_t kMaxCoveredEntries = 4096;

// Where a path leads, that is: /var/run may be a link to /run.
constexpr unsigned kOntoTarget = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS;

int CloneTree(int folder, const char* path) {
  return ::open_tree(
      folder, path,
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
}

bool Exists(const std::string& path, struct stat& info) { return ::stat(path.c_str(), &info) == 0; }

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A new file system in memory that looks like `like` from outside.
int MakeMemoryFolder(const struct stat& like) {
  const OwnedFd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid()) return -1;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%o", like.st_mode & 07777);
  ::fsconfig(context.get(), FSCONFIG_SET_STRING, "mode", mode, 0);
  if (::geteuid() == 0) {
    char id[16];
    std::snprintf(id, sizeof id, "%u", like.st_uid);
    ::fsconfig(context.get(), FSCONFIG_SET_STRING, "uid", id, 0);
    std::snprintf(id, sizeof id, "%u", like.st_gid);
    ::fsconfig(context.get(), FSCONFIG_SET_STRING, "gid", id, 0);
  }
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return -1;
  return ::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

// The names in a folder; false if there are too many or it cannot be read.
bool ListNames(int folder, std::vector<std::string>& names) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  DIR* listing = ::fdopendir(fd);
  if (listing == nullptr) return false;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kMaxCoveredEntries) {
      ::closedir(listing);
      errno = 0;
      return false;
    }
    names.emplace_back(name);
  }
  ::closedir(listing);
  return true;
}

// One entry of the covered folder shown again in its cover. What cannot be shown stays an empty entry.
void ShowAgain(int covered, int cover, const std::string& name) {
  struct stat info{};
  if (::fstatat(covered, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (S_ISLNK(info.st_mode)) {
    char target[4096];
    const ssize_t size = ::readlinkat(covered, name.c_str(), target, sizeof target - 1);
    if (size < 0) return;
    target[size] = '\0';
    (void)::symlinkat(target, cover, name.c_str());
    return;
  }
  const int made = S_ISDIR(info.st_mode) ? ::mkdirat(cover, name.c_str(), 0755)
                                         : ::mknodat(cover, name.c_str(), S_IFREG | 0644, 0);
  if (made != 0) return;
  const OwnedFd tree(CloneTree(covered, name.c_str()));
  if (tree.valid()) (void)::move_mount(tree.get(), "", cover, name.c_str(), MOVE_MOUNT_F_EMPTY_PATH);
}

bool AnyName(std::string_view) { return true; }

// Terminals of the console, disks and their like: many, and nothing that a training job opens.
bool UsedDevice(std::string_view name) {
  for (const std::string_view prefix : {"tty", "vcs", "loop", "ram"}) {
    if (name.size() > prefix.size() && name.starts_with(prefix)) return false;
  }
  return true;
}

Failure MakeMissing(const std::string& ancestor, const std::string& target, bool folder) {
  std::size_t end = ancestor == "/" ? 0 : ancestor.size();
  while (end != target.size()) {
    end = std::min(target.find('/', end + 1), target.size());
    const std::string path = target.substr(0, end);
    const bool last = end == target.size();
    const int made = last && !folder ? ::mknod(path.c_str(), S_IFREG | 0666, 0) : ::mkdir(path.c_str(), 0755);
    if (made != 0 && errno != EEXIST) return Failure::Here("cannot make " + path);
  }
  return Failure::None();
}

Failure Cover(const std::string& folder, bool (*wanted)(std::string_view name)) {
  const OwnedFd covered(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!covered.valid() || ::fstat(covered.get(), &info) != 0) return Failure::Here("cannot open " + folder);
  std::vector<std::string> names;
  if (!ListNames(covered.get(), names)) {
    if (errno != 0) return Failure::Here("cannot list " + folder);
    return {.stage = folder + " has more than " + std::to_string(kMaxCoveredEntries) +
                     " entries; create the folder on this machine"};
  }
  const OwnedFd cover(MakeMemoryFolder(info));
  if (!cover.valid()) return Failure::Here("cannot make a file system in memory");
  if (::move_mount(cover.get(), "", AT_FDCWD, folder.c_str(), kOntoTarget) != 0) {
    return Failure::Here("cannot mount over " + folder);
  }
  for (const std::string& name : names) {
    if (wanted(name)) ShowAgain(covered.get(), cover.get(), name);
  }
  // What is mounted over the root is seen only by those who enter it.
  if (folder == "/" && (::fchdir(cover.get()) != 0 || ::chroot(".") != 0))
    return Failure::Here("cannot enter /");
  return Failure::None();
}

Failure EnsureTarget(const std::string& target, bool folder) {
  struct stat info{};
  if (Exists(target, info)) {
    if (S_ISDIR(info.st_mode) == folder) return Failure::None();
    return {.stage = "cannot mount a " + std::string(folder ? "folder" : "file") + " at " + target +
                     ": there is a " + std::string(folder ? "file" : "folder")};
  }
  std::string ancestor = ParentOf(target);
  while (!Exists(ancestor, info)) ancestor = ParentOf(ancestor);
  if (!S_ISDIR(info.st_mode))
    return {.stage = "cannot mount at " + target + ": " + ancestor + " is no folder"};
  // It is made on this machine if that is permitted. Who may not write there loses nothing by the cover,
  // whose own files go with the container.
  if (MakeMissing(ancestor, target, folder).ok()) return Failure::None();
  if (Failure failure = Cover(ancestor, AnyName); !failure.ok()) {
    failure.stage = "cannot make " + target + " visible: " + failure.stage;
    return failure;
  }
  return MakeMissing(ancestor, target, folder);
}

struct Opened {
  OwnedFd tree;
  bool folder = false;
  const MountRequest* request = nullptr;
};

Failure Attach(const Opened& opened) {
  std::string target = opened.request->target;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  if (Failure failure = EnsureTarget(target, opened.folder); !failure.ok()) return failure;
  if (::move_mount(opened.tree.get(), "", AT_FDCWD, target.c_str(), kOntoTarget) != 0) {
    return Failure::Here("cannot mount " + opened.request->source + " at " + target);
  }
  return Failure::None();
}

}  // namespace

Failure MountAll(const std::vector<MountRequest>& requests) {
  std::vector<Opened> opened;
  for (const MountRequest& request : requests) {
    if (request.target.size() < 2 || request.target[0] != '/') {
      return {.stage = "cannot mount at '" + request.target + "': it is no absolute path below /"};
    }
    Opened& one = opened.emplace_back();
    one.request = &request;
    one.tree = OwnedFd(::open_tree(AT_FDCWD, request.source.c_str(),
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT));
    if (!one.tree.valid())
      return Failure::Here("cannot open " + request.source + " to mount it at " + request.target);
    struct stat info{};
    if (::fstat(one.tree.get(), &info) != 0) return Failure::Here("cannot look at " + request.source);
    one.folder = S_ISDIR(info.st_mode);
    if (!request.read_only) continue;
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    if (::mount_setattr(one.tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) !=
        0) {
      return Failure::Here("cannot make " + request.source + " read-only");
    }
  }
  for (const Opened& one : opened) {
    if (Failure failure = Attach(one); !failure.ok()) return failure;
  }
  return Failure::None();
}

Failure CoverDevices() {
  struct stat info{};
  if (Exists("/dev/termination-log", info)) return Failure::None();
  if (Failure failure = Cover("/dev", UsedDevice); !failure.ok()) return failure;
  return MakeMissing("/dev", "/dev/termination-log", false);
}

}  // namespace trainyard::shim
