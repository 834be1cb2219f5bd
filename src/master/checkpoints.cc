#include "master/checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "base/document.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"
#include "graph/pass/shards.h"
#include "tasks/codec.h"

namespace trainyard::master {
namespace {

constexpr std::string_view kGraph = "model";
constexpr std::string_view kNonFiniteGraph = "model-nonfinite";
constexpr std::string_view kLayout = "elastic";
constexpr std::string_view kPart = "pserver-";
constexpr std::string_view kEnding = ".ckpt";

// "model-VERSION-CHECKSUM.ckpt", or "model-nonfinite-VERSION-CHECKSUM.ckpt", and its size. Nothing: it is no
// checkpoint's name.
std::optional<FoundCheckpoint> Look(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  std::string_view rest = name;
  if (!rest.starts_with(kGraph) || !rest.ends_with(kEnding)) return std::nullopt;
  const bool nonfinite = rest.starts_with(kNonFiniteGraph);
  rest.remove_prefix(nonfinite ? kNonFiniteGraph.size() : kGraph.size());
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
                         .layout = std::string(kLayout),
                         .nonfinite = nonfinite};
}

// Of "pserver-INDEX-VERSION-CHECKSUM.ckpt". Nothing: it is no part's name.
std::optional<std::int64_t> VersionOfPart(std::string_view name) {
  if (!name.starts_with(kPart) || !name.ends_with(kEnding)) return std::nullopt;
  const std::vector<std::string_view> parts = Split(name, '-');
  return parts.size() == 4 ? ParseNumber<std::int64_t>(parts[2]) : std::nullopt;
}

// One line of JSON, then the programs and the queue.
std::string PrintExtra(const ElasticCheckpoint& checkpoint) {
  Array shared;
  for (const std::string& name : checkpoint.shared) shared.emplace_back(name);
  Object metrics;
  for (const tasks::Metric& metric : checkpoint.metrics) metrics[metric.name] = NumberDocument(metric.value);
  Array parts;
  for (const CheckpointPart& part : checkpoint.parts)
    parts.push_back(Object{{"file", part.file}, {"bytes", part.bytes}, {"crc32c", part.crc32c}});
  const Object head{{"job", checkpoint.job},
                    {"parts", std::move(parts)},
                    {"name", checkpoint.name},
                    {"evaluated", checkpoint.evaluated},
                    {"nonfinite", checkpoint.nonfinite},
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
  checkpoint.nonfinite = StringAt(head, {"nonfinite"});
  if (const Object* const metrics = ObjectAt(head, {"metrics"})) {
    for (const auto& metric : *metrics) {
      if (const auto value = NumberOf(metric.value()))
        checkpoint.metrics.push_back({std::string(Key(metric)), *value});
    }
  }
  if (const Array* const shared = ArrayAt(head, {"shared"})) {
    for (const Document& name : *shared) checkpoint.shared.emplace_back(Text(name));
  }
  if (const Array* const parts = ArrayAt(head, {"parts"})) {
    for (const Document& part : *parts) {
      const std::int64_t bytes = IntAt(part, {"bytes"}).value_or(-1);
      const std::int64_t crc = IntAt(part, {"crc32c"}).value_or(-1);
      const std::string file(StringAt(part, {"file"}));
      if (bytes < 0 || crc < 0 || crc > std::numeric_limits<std::uint32_t>::max() ||
          file.find('/') != std::string::npos)
        return absl::DataLossError("it has a part that cannot be");
      checkpoint.parts.push_back({file, static_cast<std::uint64_t>(bytes), static_cast<std::uint32_t>(crc)});
    }
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

absl::Status Damaged(const std::string& file, const absl::Status& why) {
  return absl::DataLossError(StrCat("checkpoint ", file, ": ", Message(why)));
}

// Without what is in its parts.
absl::StatusOr<ElasticCheckpoint> ReadAlone(const FoundCheckpoint& found) {
  TY_ASSIGN_OR_RETURN(ps::CheckpointData data, ps::ReadCheckpoint(found));
  ElasticCheckpoint checkpoint{
      .version = data.step, .variables = std::move(data.variables), .file = found.file};
  if (absl::Status parsed = ParseExtra(data.extra, checkpoint); !parsed.ok())
    return Damaged(found.file, parsed);
  return checkpoint;
}

absl::StatusOr<ps::CheckpointData> ReadPart(const ElasticCheckpoint& checkpoint, std::size_t index) {
  const CheckpointPart& part = checkpoint.parts[index];
  absl::StatusOr<ps::CheckpointData> data =
      ps::ReadCheckpoint({.step = checkpoint.version,
                          .file = (std::filesystem::path(checkpoint.file).parent_path() / part.file).string(),
                          .bytes = part.bytes,
                          .crc32c = part.crc32c,
                          .layout = std::string(kLayout)});
  if (!data.ok()) return Damaged(checkpoint.file, data.status());
  return data;
}

absl::StatusOr<graph::Programs> LearningOf(const ElasticCheckpoint& checkpoint) {
  graph::Programs learning;
  TY_ASSIGN_OR_RETURN(learning.main, graph::Decode(checkpoint.update));
  TY_ASSIGN_OR_RETURN(learning.startup, graph::Decode(checkpoint.startup));
  return learning;
}

absl::StatusOr<std::vector<graph::Shard>> ShardsOf(const ElasticCheckpoint& checkpoint, int pservers) {
  TY_ASSIGN_OR_RETURN(const graph::Programs learning, LearningOf(checkpoint));
  return graph::CutIntoShards(learning, checkpoint.shared, pservers);
}

// All but the newest `keep` up to that version and the newest finite one, and parts of earlier versions that
// none of the others names. What stays because it could not be deleted is deleted with the next.
absl::Status DeleteOld(const std::string& folder, std::int64_t version, std::size_t keep) {
  TY_ASSIGN_OR_RETURN(const std::vector<FoundCheckpoint> found, ListCheckpoints(folder));
  std::error_code error;
  std::set<std::int64_t> kept;
  const auto finite =
      std::find_if_not(found.rbegin(), found.rend(), std::mem_fn(&FoundCheckpoint::nonfinite));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool last_finite = finite != found.rend() && &*finite == &found[i];
    if (i + keep < found.size() && found[i].step < version && !last_finite) {
      std::filesystem::remove(found[i].file, error);
    } else {
      kept.insert(found[i].step);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<std::int64_t> part = VersionOfPart(entry.path().filename().string());
    if (part && *part < version && !kept.contains(*part)) std::filesystem::remove(entry.path(), error);
  }
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

absl::StatusOr<FoundCheckpoint> WriteElasticCheckpoint(const std::string& folder,
                                                       const ElasticCheckpoint& checkpoint,
                                                       std::int64_t keep) {
  TY_ASSIGN_OR_RETURN(FoundCheckpoint written,
                      ps::WriteCheckpoint(folder, checkpoint.nonfinite.empty() ? kGraph : kNonFiniteGraph,
                                          {.step = checkpoint.version,
                                           .layout = std::string(kLayout),
                                           .variables = checkpoint.variables,
                                           .extra = PrintExtra(checkpoint)}));
  written.nonfinite = !checkpoint.nonfinite.empty();
  if (keep != 0) TY_RETURN_IF_ERROR(DeleteOld(folder, checkpoint.version, static_cast<std::size_t>(keep)));
  return written;
}

absl::StatusOr<CheckpointPart> WriteCheckpointPart(const std::string& folder, int pserver,
                                                   std::int64_t version,
                                                   const std::map<std::string, graph::Tensor>& variables) {
  TY_ASSIGN_OR_RETURN(
      const FoundCheckpoint written,
      ps::WriteCheckpoint(folder, StrCat(kPart, pserver),
                          {.step = version, .layout = std::string(kLayout), .variables = variables}));
  return CheckpointPart{std::filesystem::path(written.file).filename(), written.bytes, written.crc32c};
}

absl::StatusOr<ElasticCheckpoint> ReadElasticCheckpoint(const FoundCheckpoint& found) {
  TY_ASSIGN_OR_RETURN(ElasticCheckpoint checkpoint, ReadAlone(found));
  if (checkpoint.parts.empty()) return checkpoint;
  TY_ASSIGN_OR_RETURN(const auto shards, ShardsOf(checkpoint, static_cast<int>(checkpoint.parts.size())));
  ps::OldLayout old;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    old.mains.push_back(shards[i].programs.main);
    TY_ASSIGN_OR_RETURN(old.data.emplace_back(), ReadPart(checkpoint, i));
  }
  TY_ASSIGN_OR_RETURN(const graph::Programs learning, LearningOf(checkpoint));
  auto whole = ps::Recut(graph::KeptVariables(learning), 1, old);
  if (!whole.ok()) return Damaged(found.file, whole.status());
  checkpoint.variables = *std::move(whole);
  return checkpoint;
}

absl::StatusOr<std::map<std::string, graph::Tensor>> ReadShard(const std::string& file, int index,
                                                               int pservers) {
  TY_ASSIGN_OR_RETURN(const std::vector<FoundCheckpoint> found, FindCheckpoints(file));
  TY_ASSIGN_OR_RETURN(ElasticCheckpoint checkpoint, ReadAlone(found.front()));
  if (checkpoint.parts.size() == static_cast<std::size_t>(pservers)) {
    TY_ASSIGN_OR_RETURN(ps::CheckpointData own, ReadPart(checkpoint, static_cast<std::size_t>(index)));
    return std::move(own.variables);
  }
  TY_ASSIGN_OR_RETURN(checkpoint, ReadElasticCheckpoint(found.front()));
  TY_ASSIGN_OR_RETURN(const auto shards, ShardsOf(checkpoint, pservers));
  TY_ASSIGN_OR_RETURN(const graph::Programs learning, LearningOf(checkpoint));
  ps::OldLayout old{.mains = {graph::Program{.id = "whole"}}};
  old.mains.front().main().vars = graph::KeptVariables(learning);
  old.data.push_back({.step = checkpoint.version, .variables = std::move(checkpoint.variables)});
  return ps::Recut(shards[static_cast<std::size_t>(index)].programs.main.main().vars, pservers, old);
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

std::map<std::int64_t, std::uint64_t> CountPartBytes(const std::string& folder) {
  std::map<std::int64_t, std::uint64_t> bytes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (const auto version = VersionOfPart(entry.path().filename().string()))
      bytes[*version] += entry.file_size(error);
  }
  return bytes;
}

absl::StatusOr<ElasticCheckpoint> ReadNewestCheckpoint(const std::string& path, std::string_view job) {
  TY_ASSIGN_OR_RETURN(const std::vector<FoundCheckpoint> found, FindCheckpoints(path));
  absl::Status damaged;
  for (auto one = found.rbegin(); one != found.rend(); ++one) {
    if (one->nonfinite && job.empty() && one->file != path) {
      log::Warn("a checkpoint with non-finite values is passed over", {{"file", one->file}});
      continue;
    }
    absl::StatusOr<ElasticCheckpoint> checkpoint = ReadElasticCheckpoint(*one);
    if (!checkpoint.ok()) {
      log::Warn("a checkpoint is passed over", {{"because", checkpoint.status()}});
      damaged = checkpoint.status();
      continue;
    }
    if (job.empty() || checkpoint->job == job) return checkpoint;
  }
  if (!damaged.ok()) return damaged;
  if (!found.empty() && job.empty())
    return absl::FailedPreconditionError(StrCat(
        "every checkpoint in ", path, " has non-finite values: name the file of one to use it anyway"));
  return absl::NotFoundError(StrCat("there is no checkpoint in ", path));
}

}  // namespace trainyard::master
