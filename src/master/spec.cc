#include "master/spec.h"

#include <limits>

#include "base/record.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"
#include "graph/ir/validate.h"

namespace trainyard::master {
namespace {

constexpr JobKind kKinds[] = {JobKind::kTrain, JobKind::kEvaluate, JobKind::kPredict};
constexpr int kMostWorkers = 10000;
constexpr int kMostPservers = 1000;

// Calls visit(name, field) for every field, for both directions.
template <typename Spec, typename Visitor>
void ForEachField(Spec& s, Visitor visit) {
  visit("name", s.name);
  visit("id", s.id);
  visit("kind", s.kind);
  visit("model", s.model);
  visit("program", s.program);
  visit("params", s.params);
  visit("trainingData", s.training_data);
  visit("validationData", s.validation_data);
  visit("predictionData", s.prediction_data);
  visit("dataFormat", s.data_format);
  visit("skipHeader", s.skip_header);
  visit("dataReader", s.data_reader);
  visit("trainingRecords", s.training_records);
  visit("validationRecords", s.validation_records);
  visit("predictionRecords", s.prediction_records);
  visit("folder", s.folder);
  visit("minibatch", s.minibatch);
  visit("minibatchesPerTask", s.minibatches_per_task);
  visit("epochs", s.epochs);
  visit("maxSteps", s.max_steps);
  visit("seed", s.seed);
  visit("shuffle", s.shuffle);
  visit("overlapEpochs", s.overlap_epochs);
  visit("mostFailures", s.most_failures);
  visit("async", s.async);
  visit("gradsToWait", s.grads_to_wait);
  visit("staleness", s.staleness);
  visit("modulateRate", s.modulate_rate);
  visit("pullEvery", s.pull_every);
  visit("onNonFinite", s.on_nonfinite);
  visit("tasksOnly", s.tasks_only);
  visit("evaluationSteps", s.evaluation_steps);
  visit("evaluationEvery", s.evaluation_every);
  visit("evaluationDelay", s.evaluation_delay);
  visit("checkpointSteps", s.checkpoint_steps);
  visit("checkpointEvery", s.checkpoint_every);
  visit("keepCheckpoints", s.keep_checkpoints);
  visit("checkpointDir", s.checkpoint_dir);
  visit("initFrom", s.init_from);
  visit("output", s.output);
  visit("writer", s.writer);
  visit("workers", s.workers);
  visit("minWorkers", s.min_workers);
  visit("maxWorkers", s.max_workers);
  visit("pservers", s.pservers);
  visit("mostRestarts", s.most_restarts);
  visit("taskTimeout", s.task_timeout);
  visit("workerPod", s.worker_pod);
  visit("pserverPod", s.pserver_pod);
  visit("masterPod", s.master_pod);
  visit("threads", s.threads);
}

template <typename Pod, typename Visitor>
void ForEachPodField(Pod& p, Visitor visit) {
  visit("cpu", p.cpu);
  visit("memory", p.memory);
  visit("gpu", p.gpu);
  visit("priorityClass", p.priority_class);
}

using trainyard::FromDocument;
using trainyard::ToDocument;
Document ToDocument(JobKind kind) { return Document(Name(kind)); }
Document ToDocument(graph::OnNonFinite policy) { return Document(graph::Name(policy)); }
Document ToDocument(const PodSpec& pod) {
  Object object;
  ForEachPodField(pod, [&](const char* name, const std::string& text) { object[name] = text; });
  return object;
}

std::string_view FromDocument(const Document& document, JobKind& kind) {
  for (const JobKind one : kKinds) {
    if (Name(one) != Text(document)) continue;
    kind = one;
    return "";
  }
  return "train, evaluate or predict";
}
std::string_view FromDocument(const Document& document, graph::OnNonFinite& policy) {
  const std::optional<graph::OnNonFinite> parsed = graph::ParseOnNonFinite(Text(document));
  policy = parsed.value_or(policy);
  return parsed ? "" : "fail, warn or skip";
}
std::string_view FromDocument(const Document& document, PodSpec& pod) {
  RecordReader reader(document, "a pod");
  ForEachPodField(pod, [&](const char* name, std::string& text) {
    reader.Take(name, [&](const Document& value) { return FromDocument(value, text); });
  });
  return reader.End().ok() ? "" : "an object with cpu, memory, gpu and priorityClass";
}

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

absl::Status ValidateKind(const JobSpec& spec) {
  switch (spec.kind) {
    case JobKind::kTrain:
      if (spec.training_data.empty()) return Bad("there is no training data: give --training-data");
      if (!spec.prediction_data.empty())
        return Bad("prediction goes by itself: train first, then `trainyard predict`");
      return absl::OkStatus();
    case JobKind::kEvaluate:
      if (spec.validation_data.empty()) return Bad("there is nothing to evaluate on: give --validation-data");
      break;
    case JobKind::kPredict:
      if (spec.prediction_data.empty()) return Bad("there is nothing to predict: give --prediction-data");
      if (spec.output.empty()) return Bad("where do the predictions go? Give --output");
      break;
  }
  if (spec.init_from.empty())
    return Bad("which model? Give --init-from, a folder that `trainyard train` wrote checkpoints to");
  return absl::OkStatus();
}

absl::Status ValidateReader(const JobSpec& spec) {
  const bool own = !spec.data_reader.empty();
  if (own && !spec.program.empty())
    return Bad("a program reads record files by itself: --data-reader is for models that are functions");
  if (own && (spec.data_format != "auto" || spec.skip_header))
    return Bad("--data-format and --skip-header are for record files: leave them out with --data-reader");
  struct Told {
    std::string_view flag;
    const DataSources& sources;
    std::int64_t records;
  };
  for (const Told& told : {Told{"--training-records", spec.training_data, spec.training_records},
                           Told{"--validation-records", spec.validation_data, spec.validation_records},
                           Told{"--prediction-records", spec.prediction_data, spec.prediction_records}}) {
    if (told.records < 0 || told.records > kMostRecords)
      return Bad(told.flag, " must be from 1 to ", kMostRecords, ", and is ", told.records);
    if (!own && told.records > 0)
      return Bad(told.flag, " is for --data-reader: those of record files are counted");
    if (own && told.records == 0 && !told.sources.empty())
      return Bad("how many records are there? Give ", told.flag);
  }
  return absl::OkStatus();
}

absl::Status ValidatePods(const JobSpec& spec) {
  if (spec.min_workers < 1) return Bad("--min-workers must be at least 1, and is ", spec.min_workers);
  if (spec.workers < 1) return Bad("--workers must be at least 1, and is ", spec.workers);
  if (spec.workers < spec.min_workers || spec.workers > spec.max_workers) {
    return Bad("--workers must be between --min-workers (", spec.min_workers, ") and --max-workers (",
               spec.max_workers, "), and is ", spec.workers);
  }
  if (spec.max_workers > kMostWorkers) return Bad("--max-workers must be at most ", kMostWorkers);
  if (spec.pservers < 0 || spec.pservers > kMostPservers)
    return Bad("--pservers must be from 0 to ", kMostPservers, ", and is ", spec.pservers);
  if (spec.pservers > 0 && (spec.kind != JobKind::kTrain || spec.tasks_only))
    return Bad("pservers keep a model that is trained: leave --pservers out");
  if (spec.threads < 1) return Bad("--threads must be at least 1, and is ", spec.threads);
  return absl::OkStatus();
}

absl::Status ValidateLearning(const JobSpec& spec) {
  if (spec.grads_to_wait < 1) return Bad("--grads-to-wait must be at least 1, and is ", spec.grads_to_wait);
  if (spec.async && spec.grads_to_wait != 1)
    return Bad("--async uses each gradient when it comes: leave --grads-to-wait out");
  if (spec.async && spec.staleness != 0)
    return Bad("--async uses each gradient however old it is: leave --staleness out, or --async");
  if (spec.staleness < 0) return Bad("--staleness must not be below 0, and is ", spec.staleness);
  if (spec.modulate_rate && !spec.async)
    return Bad("--modulate-rate is for --async: in sync no gradient is far behind");
  if (spec.pull_every < 1) return Bad("--pull-every must be at least 1, and is ", spec.pull_every);
  if (spec.pserver_pod != PodSpec() && spec.pservers == 0)
    return Bad(
        "--pserver-cpu, --pserver-memory and --pserver-priority are for --pservers: give both, or none");
  if (spec.pull_every > 1 && !spec.async) return Bad("--pull-every is for --async");
  return absl::OkStatus();
}

constexpr std::string_view kMagic = "TYPROGS1";
constexpr std::size_t kLengthBytes = 8;

}  // namespace

std::string_view Name(JobKind kind) {
  switch (kind) {
    case JobKind::kTrain:
      return "train";
    case JobKind::kEvaluate:
      return "evaluate";
    case JobKind::kPredict:
      return "predict";
  }
  return "";
}

std::string Print(const JobSpec& spec) {
  Object object;
  ForEachField(spec, [&](const char* name, const auto& field) { object[name] = ToDocument(field); });
  return PrintJson(object);
}

absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  JobSpec spec;
  RecordReader reader(document, "a job");
  ForEachField(spec, [&](const char* name, auto& field) {
    reader.Take(name, [&](const Document& value) { return FromDocument(value, field); });
  });
  TY_RETURN_IF_ERROR(reader.End());
  return spec;
}

absl::Status Validate(const JobSpec& spec) {
  if (spec.model.empty() && spec.program.empty() && !spec.tasks_only)
    return Bad("which model? Give --model FILE");
  if (spec.tasks_only && spec.kind != JobKind::kTrain) return Bad("only training is done by workers alone");
  if (spec.tasks_only && !spec.validation_data.empty())
    return Bad("the master has no model that it could have evaluated: leave --validation-data out");
  TY_RETURN_IF_ERROR(ValidateKind(spec));
  TY_RETURN_IF_ERROR(ValidateReader(spec));
  if (spec.minibatch < 1) return Bad("--minibatch must be at least 1, and is ", spec.minibatch);
  if (spec.minibatches_per_task < 1)
    return Bad("--minibatches-per-task must be at least 1, and is ", spec.minibatches_per_task);
  if (spec.minibatch > std::numeric_limits<std::int32_t>::max() / spec.minibatches_per_task)
    return Bad("a task of ", spec.minibatches_per_task, " minibatches of ", spec.minibatch,
               " records is too large");
  if (spec.epochs < 1 || spec.epochs > std::numeric_limits<std::int32_t>::max())
    return Bad("--epochs must be at least 1, and is ", spec.epochs);
  if (spec.max_steps < 0) return Bad("--max-steps must not be below 0, and is ", spec.max_steps);
  if (spec.shuffle != "none" && spec.shuffle != "tasks" && spec.shuffle != "records")
    return Bad("--shuffle is none, tasks or records, and not ", Escaped(spec.shuffle));
  if (spec.most_failures < 1) return Bad("--task-failures must be at least 1, and is ", spec.most_failures);
  TY_RETURN_IF_ERROR(ValidateLearning(spec));
  if (spec.evaluation_steps < 0 || spec.evaluation_every < absl::ZeroDuration() ||
      spec.evaluation_delay < absl::ZeroDuration())
    return Bad("--evaluation-steps, --evaluation-every and --evaluation-delay must not be below 0");
  if ((spec.evaluation_steps > 0 || spec.evaluation_every > absl::ZeroDuration()) &&
      spec.validation_data.empty())
    return Bad("there is nothing to evaluate on: give --validation-data");
  if (spec.checkpoint_steps < 0 || spec.checkpoint_every < absl::ZeroDuration() || spec.keep_checkpoints < 0)
    return Bad("--checkpoint-steps, --checkpoint-every and --keep-checkpoints must not be below 0");
  return ValidatePods(spec);
}

// MAGIC, how many bytes the main program has (u64, little-endian), the main program, the startup program.
absl::StatusOr<graph::Programs> DecodePrograms(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kLengthBytes)
    return absl::InvalidArgumentError("these bytes are no program");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[kMagic.size() + i])) << (8 * i);
  bytes.remove_prefix(kMagic.size() + kLengthBytes);
  if (length > bytes.size())
    return absl::InvalidArgumentError("these bytes are only the beginning of a program");
  graph::Programs programs;
  TY_ASSIGN_OR_RETURN(programs.main, graph::Decode(bytes.substr(0, length)));
  TY_ASSIGN_OR_RETURN(programs.startup, graph::Decode(bytes.substr(length)));
  return programs;
}

std::string EncodePrograms(const graph::Programs& programs) {
  const std::string main = graph::Encode(programs.main);
  std::string bytes(kMagic);
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(main.size()) >> (8 * i));
  return bytes + main + graph::Encode(programs.startup);
}

}  // namespace trainyard::master
