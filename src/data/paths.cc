#include "data/paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

bool Exists(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0;
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
    if (Exists(path) || path.find_first_of("*?[") == std::string::npos) {
      files.push_back(path);
      continue;
    }
    TY_ASSIGN_OR_RETURN(const auto matches, Match(path));
    files.insert(files.end(), matches.begin(), matches.end());
  }
  return files;
}

}  // namespace trainyard::data
