#include "master/checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "tasks/codec.h"

namespace trainyard::master {
namespace {

constexpr std::string_view kGraph = "model";
constexpr std::string_view kLayout = "elastic";
constexpr std::string_view kEnding = ".ckpt";

// "model-VERSION-CHECKSUM.ckpt" and its size. Nothing: it is no checkpoint's name.
std::optional<FoundCheckpoint> Look(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  std::string_view rest = name;
  if (!rest.starts_with(kGraph) || !rest.ends_with(kEnding)) return std::nullopt;
  rest.remove_prefix(kGraph.size());
  rest.remove_suffix(kEnding.size());
  const std::vector<std::string_view> parts = Split(rest, '-');
  if (parts.size() != 3 || !parts[0].empty()) return std::nullopt;
  const auto version = ParseNumber<std::int64_t>(parts[1]);
  const auto crc = ParseNumber<std::uint32_t>(parts[2], 16);
  struct stat state{};
  if (!version || !crc || ::stat(path.c_str(), &state) != 0) return std::nullopt;
  return FoundCheckpoint{.step = *version,
                         .file = path,
                         .bytes = static_cast<std::uint64_t>(state.st_size),
                         .crc32c = *crc,
                         .layout = std::string(kLayout)};
}

// One line of JSON, then the programs and the queue.
std::string PrintExtra(const ElasticCheckpoint& checkpoint) {
  Array shared;
  for (const std::string& name : checkpoint.shared) shared.emplace_back(name);
  Object metrics;
  for (const tasks::Metric& metric : checkpoint.metrics) metrics[metric.name] = metric.value;
  const Object head{{"job", checkpoint.job},
                    {"name", checkpoint.name},
                    {"evaluated", checkpoint.evaluated},
                    {"metrics", std::move(metrics)},
                    {"shared", std::move(shared)},
                    {"update", checkpoint.update.size()},
                    {"startup", checkpoint.startup.size()}};
  return StrCat(PrintJson(head), "\n", checkpoint.update, checkpoint.startup,
                tasks::Encode(checkpoint.queue));
}

absl::Status ParseExtra(std::string_view extra, ElasticCheckpoint& checkpoint) {
  const std::size_t end = extra.find('\n');
  if (end == std::string_view::npos) return absl::DataLossError("it is no elastic job's");
  TY_ASSIGN_OR_RETURN(const Document head, ParseJson(extra.substr(0, end)));
  checkpoint.job = StringAt(head, {"job"});
  checkpoint.name = StringAt(head, {"name"});
  checkpoint.evaluated = IntAt(head, {"evaluated"}).value_or(-1);
  if (const Object* const metrics = ObjectAt(head, {"metrics"})) {
    for (const auto& metric : *metrics) {
      if (metric.value().is_number())
        checkpoint.metrics.push_back({std::string(Key(metric)), metric.value().to_number<double>()});
    }
  }
  if (const Array* const shared = ArrayAt(head, {"shared"})) {
    for (const Document& name : *shared) checkpoint.shared.emplace_back(Text(name));
  }
  std::string_view rest = extra.substr(end + 1);
  for (const auto& [key, program] :
       {std::pair("update", &checkpoint.update), std::pair("startup", &checkpoint.startup)}) {
    const std::int64_t size = IntAt(head, {key}).value_or(-1);
    if (size < 0 || static_cast<std::uint64_t>(size) > rest.size())
      return absl::DataLossError(StrCat("it has no program ", key));
    *program = rest.substr(0, static_cast<std::size_t>(size));
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
  TY_ASSIGN_OR_RETURN(checkpoint.queue, tasks::DecodeState(rest));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FoundCheckpoint>> ListCheckpoints(const std::string& folder) {
  std::error_code error;
  std::vector<FoundCheckpoint> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (const auto one = Look(entry.path())) found.push_back(*one);
  }
  if (error) return ErrnoStatus(error.value(), StrCat("cannot look into ", folder));
  std::ranges::sort(found, {}, [](const FoundCheckpoint& one) { return std::pair(one.step, one.file); });
  return found;
}

absl::Status WriteElasticCheckpoint(const std::string& folder, const ElasticCheckpoint& checkpoint,
                                    std::int64_t keep) {
  TY_RETURN_IF_ERROR(ps::WriteCheckpoint(folder, kGraph,
                                         {.step = checkpoint.version,
                                          .layout = std::string(kLayout),
                                          .variables = checkpoint.variables,
                                          .extra = PrintExtra(checkpoint)}));
  if (keep == 0) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const std::vector<FoundCheckpoint> found, ListCheckpoints(folder));
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i) {
    if (found[i].step >= checkpoint.version) continue;
    std::error_code error;
    std::filesystem::remove(found[i].file, error);  // one that stays is deleted with the next
  }
  return absl::OkStatus();
}

absl::StatusOr<ElasticCheckpoint> ReadElasticCheckpoint(const FoundCheckpoint& found) {
  TY_ASSIGN_OR_RETURN(ps::CheckpointData data, ps::ReadCheckpoint(found));
  ElasticCheckpoint checkpoint{.version = data.step, .variables = std::move(data.variables)};
  if (absl::Status parsed = ParseExtra(data.extra, checkpoint); !parsed.ok())
    return absl::DataLossError(StrCat("checkpoint ", found.file, ": ", Message(parsed)));
  return checkpoint;
}

absl::StatusOr<std::vector<FoundCheckpoint>> FindCheckpoints(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return ListCheckpoints(path);
  const auto one = Look(path);
  if (!one)
    return absl::InvalidArgumentError(
        StrCat(path, " is no checkpoint: they are called model-VERSION-CHECKSUM.ckpt"));
  return std::vector<FoundCheckpoint>{*one};
}

absl::StatusOr<ElasticCheckpoint> ReadNewestCheckpoint(const std::string& path, std::string_view job) {
  TY_ASSIGN_OR_RETURN(const std::vector<FoundCheckpoint> found, FindCheckpoints(path));
  absl::Status damaged;
  for (auto one = found.rbegin(); one != found.rend(); ++one) {
    absl::StatusOr<ElasticCheckpoint> checkpoint = ReadElasticCheckpoint(*one);
    if (!checkpoint.ok()) {
      log::Warn("a checkpoint is passed over", {{"because", checkpoint.status()}});
      damaged = checkpoint.status();
      continue;
    }
    if (job.empty() || checkpoint->job == job) return checkpoint;
  }
  if (!damaged.ok()) return damaged;
  return absl::NotFoundError(StrCat("there is no checkpoint in ", path));
}

}  // namespace trainyard::master
