#include "local/home.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::local {
namespace {

constexpr std::size_t kMaxLockBytes = 4096;

absl::Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, StrCat("cannot make the folder ", path));
}

absl::Status MakeParents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    TY_RETURN_IF_ERROR(MakeFolder(path.substr(0, slash)));
  }
  return MakeFolder(path);
}

RunningCluster ParseLock(std::string_view text) {
  RunningCluster running;
  const std::size_t end = text.find('\n');
  running.pid = ParseNumber<pid_t>(text.substr(0, end)).value_or(0);
  if (end != std::string_view::npos) {
    text.remove_prefix(end + 1);
    running.server = text.substr(0, text.find('\n'));
  }
  return running;
}

}  // namespace

absl::StatusOr<std::string> DefaultHome() {
  if (const char* home = std::getenv("TRAINYARD_HOME"); home != nullptr && *home != '\0')
    return std::string(home);
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    const passwd* user = ::getpwuid(::getuid());
    home = user != nullptr ? user->pw_dir : nullptr;
  }
  if (home == nullptr)
    return absl::NotFoundError("there is no home folder: set TRAINYARD_HOME or give --home");
  return StrCat(home, "/.trainyard");
}

absl::StatusOr<Home> OpenHome(std::string root) {
  if (root.empty()) return absl::InvalidArgumentError("the home of the cluster must not be an empty name");
  if (root.front() != '/') {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) == nullptr) return ErrnoStatus(errno, "cannot tell the current folder");
    root = StrCat(here, "/", root);
  }
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  TY_RETURN_IF_ERROR(MakeParents(root));
  struct stat info{};
  if (::stat(root.c_str(), &info) != 0) return ErrnoStatus(errno, StrCat("cannot look at ", root));
  if (!S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(StrCat(root, " is not a folder"));
  if (info.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(
        StrCat(root, " belongs to another user: give another folder with --home or TRAINYARD_HOME"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        StrCat(root, " can be written by others, and it holds keys: chmod go-w ", root));
  }
  Home home{.root = std::move(root)};
  for (const std::string& folder : {home.Pki(), home.Store(), home.Pods(), home.Bin()})
    TY_RETURN_IF_ERROR(MakeFolder(folder));
  return home;
}

absl::StatusOr<HomeLock> HomeLock::Take(const Home& home) {
  Fd file(::open(home.Lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot open ", home.Lock()));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, StrCat("cannot lock ", home.Lock()));
    char text[kMaxLockBytes];
    const ssize_t size = ::pread(file.get(), text, sizeof text, 0);
    const RunningCluster running =
        ParseLock(std::string_view(text, size > 0 ? static_cast<std::size_t>(size) : 0));
    return absl::FailedPreconditionError(StrCat("a cluster is running on ", home.root, " already (process ",
                                                running.pid,
                                                "): trainyard status shows it, trainyard down ends it"));
  }
  HomeLock lock(std::move(file));
  TY_RETURN_IF_ERROR(lock.Announce(""));
  return lock;
}

absl::Status HomeLock::Announce(const std::string& server) {
  const std::string text = StrCat(::getpid(), "\n", server, "\n");
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, "cannot write the cluster's lock file");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RunningCluster>> FindRunning(const Home& home) {
  Fd file(::open(home.Lock().c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return std::nullopt;
    return ErrnoStatus(errno, StrCat("cannot open ", home.Lock()));
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    return std::nullopt;  // nobody holds it; ours goes with the descriptor
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(home.Lock(), kMaxLockBytes));
  return ParseLock(text);
}

}  // namespace trainyard::local
