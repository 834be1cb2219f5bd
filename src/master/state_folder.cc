#include "master/state_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::master {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".unfinished-";
constexpr int kMostTries = 100;  // against other pods that take over at the same time
constexpr int kNameLength = 8;
constexpr std::size_t kMostPodBytes = 1024;
constexpr mode_t kPodFileMode = 0644;

absl::Status Wrong(std::string_view what, const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(StrCat("cannot ", what, " ", path, ": ", error.message()));
}

std::string PathOf(const std::string& folder, int number) { return StrCat(folder, "/", number); }
std::string PodFile(const std::string& path) { return StrCat(path, "/pod"); }

// By number, the pods that have owned the folder.
absl::StatusOr<std::map<int, std::string>> ReadOwners(const std::string& folder) {
  std::map<int, std::string> owners;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto number = ParseNumber<int>(entry->path().filename().native());
    if (!number) continue;
    TY_ASSIGN_OR_RETURN(owners[*number], ReadFile(PodFile(entry->path()), kMostPodBytes));
  }
  if (error) return Wrong("read the folder", folder, error);
  return owners;
}

// The copy of the number before appears under its own when it is whole. False: another pod was first.
absl::StatusOr<bool> Copy(const std::string& folder, int number, const std::string& pod) {
  const std::string unfinished = StrCat(folder, "/", kUnfinished, IdSource::Random().Suffix(kNameLength));
  std::error_code error;
  if (number > 1) {
    fs::copy(PathOf(folder, number - 1), unfinished, fs::copy_options::recursive, error);
  } else {
    fs::create_directory(unfinished, error);
  }
  if (error) return Wrong("copy the job's state in", folder, error);
  TY_RETURN_IF_ERROR(ReplaceFile(PodFile(unfinished), pod, kPodFileMode, Durability::kPower));
  fs::rename(unfinished, PathOf(folder, number), error);
  if (!error) return true;
  const std::error_code lost = error;
  fs::remove_all(unfinished, error);
  if (lost == std::errc::directory_not_empty || lost == std::errc::file_exists) return false;
  return Wrong("take over the folder", folder, lost);
}

}  // namespace

StateFolder::StateFolder(std::string folder, int number)
    : folder_(std::move(folder)), number_(number), path_(StrCat(PathOf(folder_, number), "/queue")) {}

absl::StatusOr<StateFolder> StateFolder::TakeOver(const std::string& folder, const std::string& pod) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Wrong("make the folder", folder, error);
  for (int i = 0; i < kMostTries; ++i) {
    TY_ASSIGN_OR_RETURN(const auto owners, ReadOwners(folder));
    const int newest = owners.empty() ? 0 : owners.rbegin()->first;
    if (newest > 0 && owners.at(newest) == pod) return StateFolder(folder, newest);
    if (std::ranges::any_of(owners, [&](const auto& owner) { return owner.second == pod; })) {
      return absl::FailedPreconditionError(
          StrCat("another pod, ", owners.at(newest), ", has taken over this job from pod ", pod));
    }
    TY_ASSIGN_OR_RETURN(const bool taken, Copy(folder, newest + 1, pod));
    if (taken) return StateFolder(folder, newest + 1);
  }
  return absl::UnavailableError(StrCat("other pods take over ", folder, " again and again"));
}

bool StateFolder::IsOwned() const {
  std::error_code error;
  return !fs::exists(PathOf(folder_, number_ + 1), error);
}

}  // namespace trainyard::master
