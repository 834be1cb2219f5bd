#include "cli/graph_model.h"

#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/client_flags.h"
#include "master/spec.h"
#include "ps/job.h"

namespace trainyard::cli {
namespace {

constexpr std::int64_t kMostGraphs = 10000;

constexpr int kSuffixLength = 5;

// Gone with all that is in it when this is.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make() {
    std::string path = (std::filesystem::temp_directory_path() / "trainyard-model-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "cannot make a folder for the model");
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::vector<std::pair<std::string, std::string>> EnvironmentFor(const master::JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && text.substr(0, equals) != "PYTHONPATH")
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  const char* const before = std::getenv("PYTHONPATH");
  environment.emplace_back("PYTHONPATH", StrCat(PackageFolder(), ":", before == nullptr ? "" : before));
  environment.emplace_back("TRAINYARD_JOB_SPEC", master::Print(spec));
  return environment;
}

std::string LastLineOf(const std::string& file) {
  const auto said = ReadFile(file, kMostModelBytes);
  std::string last = said.ok() ? *said : "";
  while (last.ends_with('\n')) last.pop_back();
  if (const std::size_t line = last.rfind('\n'); line != std::string::npos) last.erase(0, line + 1);
  return last;
}

}  // namespace

void GraphModelFlags::Declare(Flags& flags) {
  const std::string model = "Model";
  flags.Text({.name = "--model",
              .value = "FILE",
              .help = "A file of Python with a function net(job), or a program that was saved",
              .group = model},
             model_);
  flags.Texts({.name = "--param",
               .value = "NAME=VALUE",
               .help = "Something for net(job), in job.params; may be repeated",
               .group = model},
              params_);
  flags.Texts({.name = "--training-data",
               .value = "PATH",
               .help = "Files, globs or a folder, in job.training_data; may be repeated",
               .group = model},
              data_);
  flags.Number({.name = "--minibatch",
                .value = "N",
                .help = "Records of a batch, in job.minibatch (64)",
                .group = model},
               minibatch_);
  flags.Number({.name = "--seed", .value = "N", .help = "Of first values, in job.seed (1)", .group = model},
               seed_);
  flags.Text({.name = "--python",
              .value = "FILE",
              .help = "The interpreter that reads the model (/usr/bin/python3)",
              .group = model},
             python_);
  const std::string graphs = "Graphs";
  flags.Number({.name = "--trainers", .value = "N", .help = "Trainers (2)", .group = graphs}, trainers_);
  flags.Number({.name = "--pservers", .value = "N", .help = "Pservers (1)", .group = graphs}, pservers_);
  flags.Number(
      {.name = "--passes", .value = "N", .help = "How often all records are used (1)", .group = graphs},
      passes_);
  flags.Switch({.name = "--async",
                .help = "Each gradient is used when it comes, and no trainer waits for another",
                .group = graphs},
               async_);
}

absl::Status GraphModelFlags::TakeNumbers() {
  if (model_.empty()) return UsageError("--model is missing: a file of Python, or a program that was saved");
  for (const auto& [flag, given] :
       {std::pair("--trainers", &trainers_), std::pair("--pservers", &pservers_)}) {
    if (*given && (**given < 1 || **given > kMostGraphs))
      return UsageError(StrCat(flag, " must be between 1 and ", kMostGraphs, ", and is ", **given));
  }
  for (const auto& [flag, given] : {std::pair("--passes", &passes_), std::pair("--minibatch", &minibatch_)}) {
    if (*given && **given < 1) return UsageError(StrCat(flag, " must be at least 1, and is ", **given));
  }
  if (trainers_) options_.trainers = static_cast<int>(*trainers_);
  if (pservers_) options_.pservers = static_cast<int>(*pservers_);
  if (passes_) options_.passes = *passes_;
  if (async_) options_.mode = graph::SyncMode::kAsync;
  return absl::OkStatus();
}

absl::StatusOr<graph::Programs> GraphModelFlags::ReadPrograms() const {
  if (!model_.ends_with(".py")) {
    TY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(model_, kMostModelBytes));
    auto programs = master::DecodePrograms(bytes);
    return programs.ok() ? std::move(programs) : Annotate(programs.status(), StrCat("--model ", model_));
  }
  master::JobSpec job{.name = NameOfModel(model_)};
  TY_ASSIGN_OR_RETURN(job.params, ParsePairs("--param", params_));
  for (const std::string& source : data_) job.training_data.push_back(AbsolutePaths(source));
  job.minibatch = minibatch_.value_or(job.minibatch);
  job.seed = static_cast<std::uint64_t>(seed_.value_or(static_cast<std::int64_t>(job.seed)));
  TY_ASSIGN_OR_RETURN(const CompiledModel compiled, CompileModel(python_, model_, job));
  if (compiled.program.empty())
    return absl::InvalidArgumentError(StrCat(
        "the model ", model_,
        " has no function net(job): graphs are made of a net; `trainyard train` runs other functions"));
  return master::DecodePrograms(compiled.program);
}

absl::StatusOr<graph::Graphs> GraphModelFlags::Transpile() {
  TY_RETURN_IF_ERROR(TakeNumbers());
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, ReadPrograms());
  auto graphs = graph::Transpile(programs, options_);
  absl::Status checked = graphs.status();
  if (checked.ok()) checked = ps::FindRead(graphs->trainers.front()).status();
  if (!checked.ok()) return Annotate(checked, StrCat("--model ", model_));
  return graphs;
}

std::string PackageFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path().parent_path() / "python";
  return std::filesystem::exists(folder / "trainyard", error) ? folder.string() : "";
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

absl::StatusOr<CompiledModel> CompileModel(const std::string& python, const std::string& model,
                                           const master::JobSpec& spec) {
  TY_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  const std::string said = folder.path() + "/said";
  TY_ASSIGN_OR_RETURN(
      Child child, Child::Spawn({.argv = {python, "-m", "trainyard.elastic", "compile", model, folder.path()},
                                 .env = EnvironmentFor(spec),
                                 .stdout_path = said,
                                 .stderr_path = said}));
  TY_ASSIGN_OR_RETURN(const ExitStatus ended, child.Wait());
  if (ShellCode(ended) != 0) {
    const std::string last = LastLineOf(said);
    return absl::InvalidArgumentError(
        StrCat("the model ", model, " cannot be used: ", last.empty() ? PrintExit(ended) : last));
  }
  CompiledModel compiled;
  std::error_code error;
  if (const std::string file = folder.path() + "/program"; std::filesystem::exists(file, error)) {
    TY_ASSIGN_OR_RETURN(compiled.program, ReadFile(file, kMostModelBytes));
  }
  if (const std::string file = folder.path() + "/records.json"; std::filesystem::exists(file, error)) {
    TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostModelBytes));
    TY_ASSIGN_OR_RETURN(const Document records, ParseJson(text));
    compiled.training_records = IntAt(records, {"training"}).value_or(0);
    compiled.validation_records = IntAt(records, {"evaluation"}).value_or(0);
    compiled.prediction_records = IntAt(records, {"prediction"}).value_or(0);
  }
  return compiled;
}

}  // namespace trainyard::cli
