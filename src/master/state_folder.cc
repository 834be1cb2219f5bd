#include "master/state_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
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
std::string QueueOf(const std::string& folder, int number) {
  return StrCat(PathOf(folder, number), "/queue");
}
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

// Moves what was made aside to its place. False: another pod was first.
absl::StatusOr<bool> Move(const std::string& unfinished, const std::string& place) {
  std::error_code error;
  fs::rename(unfinished, place, error);
  if (!error) return true;
  const std::error_code lost = error;
  fs::remove_all(unfinished, error);
  if (lost == std::errc::directory_not_empty || lost == std::errc::file_exists) return false;
  return Wrong("make the folder", place, lost);
}

std::string NewUnfinished(const std::string& folder) {
  return StrCat(folder, "/", kUnfinished, IdSource::Random().Suffix(kNameLength));
}

absl::StatusOr<bool> Claim(const std::string& folder, int number, const std::string& pod) {
  const std::string unfinished = NewUnfinished(folder);
  std::error_code error;
  fs::create_directory(unfinished, error);
  if (error) return Wrong("make the folder", unfinished, error);
  TY_RETURN_IF_ERROR(ReplaceFile(PodFile(unfinished), pod, kPodFileMode, Durability::kPower));
  return Move(unfinished, PathOf(folder, number));
}

// Copies the queue of the owner before, if there was one and it is not copied yet.
absl::Status TakeQueue(const std::string& folder, int number, absl::Duration settle) {
  std::error_code error;
  if (fs::exists(QueueOf(folder, number), error)) return absl::OkStatus();
  int before = number - 1;
  while (before > 0 && !fs::exists(QueueOf(folder, before), error)) --before;
  if (before == 0) return absl::OkStatus();
  absl::SleepFor(settle);
  const std::string unfinished = NewUnfinished(folder);
  fs::copy(QueueOf(folder, before), unfinished, fs::copy_options::recursive, error);
  if (error) return Wrong("copy the job's state in", folder, error);
  return Move(unfinished, QueueOf(folder, number)).status();
}

}  // namespace

StateFolder::StateFolder(std::string folder, int number)
    : folder_(std::move(folder)), number_(number), path_(QueueOf(folder_, number)) {}

absl::StatusOr<StateFolder> StateFolder::TakeOver(const std::string& folder, const std::string& pod,
                                                  absl::Duration settle) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Wrong("make the folder", folder, error);
  for (int i = 0; i < kMostTries; ++i) {
    TY_ASSIGN_OR_RETURN(const auto owners, ReadOwners(folder));
    const int newest = owners.empty() ? 0 : owners.rbegin()->first;
    if (newest > 0 && owners.at(newest) == pod) {
      TY_RETURN_IF_ERROR(TakeQueue(folder, newest, settle));
      return StateFolder(folder, newest);
    }
    if (std::ranges::any_of(owners, [&](const auto& owner) { return owner.second == pod; })) {
      return absl::FailedPreconditionError(
          StrCat("another pod, ", owners.at(newest), ", has taken over this job from pod ", pod));
    }
    TY_RETURN_IF_ERROR(Claim(folder, newest + 1, pod));
  }
  return absl::UnavailableError(StrCat("other pods take over ", folder, " again and again"));
}

bool StateFolder::IsOwned() const {
  std::error_code error;
  return !fs::exists(PathOf(folder_, number_ + 1), error);
}

}  // namespace trainyard::master
