// trainyard checkpoint list, trainyard checkpoint verify, trainyard checkpoint export
#include <sys/stat.h>

#include <filesystem>
#include <iostream>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "graph/exec/saved.h"
#include "master/checkpoints.h"

namespace trainyard::cli {
namespace {

using master::ElasticCheckpoint;
using master::FoundCheckpoint;

// What a folder has, or one file. A usage error: neither is there.
absl::StatusOr<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::NotFoundError(StrCat("there is no ", path));
  TY_ASSIGN_OR_RETURN(auto found, master::FindCheckpoints(path));
  if (found.empty()) return absl::NotFoundError(StrCat("there is no checkpoint in ", path));
  return found;
}

class CheckpointList final : public Command {
 public:
  std::string name() const override { return "checkpoint list"; }
  std::string summary() const override { return "List the checkpoints of an elastic job"; }
  std::string details() const override { return "Example:\n  trainyard checkpoint list ckpt"; }
  void Declare(Flags& flags) override {
    flags.Argument("PATH", "A folder of checkpoints, or one of them", path_);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "table, json or name (table)",
                .one_of = {"table", "json", "name"}},
               output_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto found, FindCheckpoints(path_));
    std::vector<std::vector<std::string>> rows = {{"VERSION", "SIZE", "WRITTEN", "FILE"}};
    Array objects;
    const auto parts = master::CountPartBytes(std::filesystem::path(found.front().file).parent_path());
    for (const FoundCheckpoint& one : found) {
      struct stat state{};
      const absl::Time written =
          ::stat(one.file.c_str(), &state) == 0 ? absl::TimeFromTimespec(state.st_mtim) : absl::UnixEpoch();
      const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", written, absl::UTCTimeZone());
      if (output_ == "name") std::cout << one.file << "\n";
      const auto beside = parts.find(one.step);
      const std::uint64_t bytes = one.bytes + (beside == parts.end() ? 0 : beside->second);
      rows.push_back({std::to_string(one.step), FormatBytes(bytes), time, one.file});
      objects.push_back(
          Object{{"version", one.step}, {"bytes", bytes}, {"written", time}, {"file", one.file}});
    }
    if (output_ == "json") std::cout << PrintJson(objects) << "\n";
    if (output_ == "table") std::cout << Table(rows, 3);
    return absl::OkStatus();
  }

 private:
  std::string path_;
  std::string output_ = "table";
};

class CheckpointVerify final : public Command {
 public:
  std::string name() const override { return "checkpoint verify"; }
  std::string summary() const override { return "Read checkpoints whole, and check every checksum in them"; }
  std::string details() const override {
    return "Exits with 1 if one is damaged.\n\nExample:\n  trainyard checkpoint verify ckpt";
  }
  void Declare(Flags& flags) override {
    flags.Argument("PATH", "A folder of checkpoints, or one of them", path_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto found, FindCheckpoints(path_));
    int damaged = 0;
    for (const FoundCheckpoint& one : found) {
      const absl::StatusOr<ElasticCheckpoint> checkpoint = master::ReadElasticCheckpoint(one);
      if (!checkpoint.ok()) {
        ++damaged;
        std::cout << Message(checkpoint.status()) << "\n";
        continue;
      }
      std::size_t bytes = 0;
      for (const auto& [name, tensor] : checkpoint->variables) bytes += tensor.bytes();
      std::cout << one.file << ": whole, version " << checkpoint->version << " of job " << checkpoint->name
                << ", " << checkpoint->variables.size() << " variables, " << FormatBytes(bytes) << "\n";
    }
    if (damaged == 0) return absl::OkStatus();
    return absl::DataLossError(StrCat(damaged, " of ", found.size(), " checkpoints are damaged"));
  }

 private:
  std::string path_;
};

class CheckpointExport final : public Command {
 public:
  std::string name() const override { return "checkpoint export"; }
  std::string summary() const override { return "Write a checkpoint's variables, a file for each"; }
  std::string details() const override {
    return "The files are those that `Executor.load` of the Python package reads. Of a folder, the newest "
           "checkpoint that\n"
           "is whole.\n\nExample:\n  trainyard checkpoint export ckpt --to model";
  }
  void Declare(Flags& flags) override {
    flags.Argument("PATH", "A folder of checkpoints, or one of them", path_);
    flags.Text({.name = "--to", .value = "DIR", .help = "Where they are written; made if it is not there"},
               to_);
    flags.Switch({.name = "--model-only", .help = "Leave out what the optimizer keeps"}, model_only_);
  }
  absl::Status Run() override {
    if (to_.empty()) return UsageError("--to is missing: the folder to write to");
    TY_ASSIGN_OR_RETURN(ElasticCheckpoint checkpoint, master::ReadNewestCheckpoint(path_));
    graph::Scope scope;
    int written = 0;
    for (auto& [name, tensor] : checkpoint.variables) {
      if (model_only_ && std::ranges::find(checkpoint.shared, name) == checkpoint.shared.end()) continue;
      scope.Put(name, std::move(tensor));
      ++written;
    }
    TY_RETURN_IF_ERROR(graph::SaveVariables(scope, to_));
    std::cout << "version " << checkpoint.version << " of job " << checkpoint.name << ": " << written
              << " variables in " << to_ << std::endl;
    return absl::OkStatus();
  }

 private:
  std::string path_;
  std::string to_;
  bool model_only_ = false;
};

}  // namespace

std::unique_ptr<Command> NewCheckpointList() { return std::make_unique<CheckpointList>(); }
std::unique_ptr<Command> NewCheckpointVerify() { return std::make_unique<CheckpointVerify>(); }
std::unique_ptr<Command> NewCheckpointExport() { return std::make_unique<CheckpointExport>(); }

}  // namespace trainyard::cli
