#include "data/paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

enum class Found : std::uint8_t { kNothing, kFile, kFolder, kOther };

Found Look(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return Found::kNothing;
  if (S_ISDIR(found.st_mode)) return Found::kFolder;
  return S_ISREG(found.st_mode) ? Found::kFile : Found::kOther;
}

// Appends the folder's files, but for hidden ones: somebody may still write those.
absl::Status List(const std::string& folder, std::vector<std::string>& files) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  std::vector<std::string> found;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!entry->path().filename().string().starts_with('.') && Look(path) == Found::kFile) {
      found.push_back(path);
    }
  }
  if (error) return ErrnoStatus(error.value(), StrCat("cannot list ", folder));
  if (found.empty()) return absl::NotFoundError(StrCat("there is no file in the folder ", folder));
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Match(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, ::globfree);
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (result == GLOB_NOSPACE) return absl::ResourceExhaustedError(StrCat("no memory to match ", pattern));
  if (result != 0 || found.gl_pathc == 0) return absl::NotFoundError(StrCat("no file matches ", pattern));
  std::vector<std::string> matches(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  // glob's own order is the locale's, which differs from machine to machine.
  std::sort(matches.begin(), matches.end());
  return matches;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& paths) {
  if (paths.empty()) return absl::InvalidArgumentError("no record files are named: name at least one");
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (path.empty()) return absl::InvalidArgumentError("the name of a record file is empty");
    const Found found = Look(path);
    if (found == Found::kFolder) {
      TY_RETURN_IF_ERROR(List(path, files));
    } else if (found != Found::kNothing || path.find_first_of("*?[") == std::string::npos) {
      files.push_back(path);
    } else {
      TY_ASSIGN_OR_RETURN(const auto matches, Match(path));
      files.insert(files.end(), matches.begin(), matches.end());
    }
  }
  return files;
}

}  // namespace trainyard::data
