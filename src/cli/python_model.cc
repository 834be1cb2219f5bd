#include "cli/python_model.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/ids.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::cli {
namespace {

constexpr int kSuffixLength = 5;

}  // namespace

std::string PythonPackageFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path().parent_path() / "python";
  return std::filesystem::exists(folder / "trainyard", error) ? folder.string() : "";
}

std::string AbsolutePath(std::string_view path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

std::string AbsolutePaths(std::string_view list) {
  std::string out;
  for (const std::string_view path : Split(list, ','))
    StrAppend(out, out.empty() ? "" : ",", path.empty() ? std::string() : AbsolutePath(path));
  return out;
}

std::string NameOfModel(const std::string& model) {
  std::string stem = std::filesystem::path(model).stem().string();
  if (stem == "model") stem = std::filesystem::path(AbsolutePath(model)).parent_path().filename().string();
  std::string name;
  for (const unsigned char c : stem) name += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  while (!name.empty() &&
         (name.front() == '-' || std::isdigit(static_cast<unsigned char>(name.front())) != 0))
    name.erase(0, 1);
  return StrCat(name.empty() ? "job" : name.substr(0, 40), "-", IdSource::Random().Suffix(kSuffixLength));
}

absl::StatusOr<std::string> CompileModel(const std::string& python, const std::string& model,
                                         const std::string& job) {
  std::string folder = (std::filesystem::temp_directory_path() / "trainyard-model-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, "cannot make a folder for the model");
  struct Removed {
    const std::string& folder;
    ~Removed() {
      std::error_code error;
      std::filesystem::remove_all(folder, error);
    }
  } const removed{folder};
  const std::string out = folder + "/program";
  const std::string errors = folder + "/errors";
  std::vector<std::pair<std::string, std::string>> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && text.substr(0, equals) != "PYTHONPATH")
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  const char* const before = std::getenv("PYTHONPATH");
  environment.emplace_back("PYTHONPATH", StrCat(PythonPackageFolder(), ":", before == nullptr ? "" : before));
  environment.emplace_back("TRAINYARD_JOB_SPEC", job);
  TY_ASSIGN_OR_RETURN(Child child,
                      Child::Spawn({.argv = {python, "-m", "trainyard.elastic", "compile", model, out},
                                    .env = std::move(environment),
                                    .stdout_path = errors,
                                    .stderr_path = errors}));
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, child.Wait());
  if (ShellCode(ended) != 0) {
    const auto said = ReadFile(errors, kMostModelBytes);
    std::string last = said.ok() ? *said : "";
    while (last.ends_with('\n')) last.pop_back();
    if (const std::size_t line = last.rfind('\n'); line != std::string::npos) last.erase(0, line + 1);
    return absl::InvalidArgumentError(
        StrCat("the model ", model, " cannot be used: ", last.empty() ? PrintExit(ended) : last));
  }
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return std::string();
  return ReadFile(out, kMostModelBytes);
}

}  // namespace trainyard::cli
