#include "master/spec.h"

#include <concepts>
#include <limits>
#include <set>
#include <type_traits>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
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

// ---- Out

Document ToDocument(const std::string& text) { return Document(text); }
Document ToDocument(bool value) { return Document(value); }
template <std::integral T>
  requires(!std::same_as<T, bool>)
Document ToDocument(T number) {
  return Document(number);
}
Document ToDocument(absl::Duration time) { return Document(absl::FormatDuration(time)); }
Document ToDocument(JobKind kind) { return Document(Name(kind)); }
Document ToDocument(graph::OnNonFinite policy) { return Document(graph::Name(policy)); }
Document ToDocument(const DataSources& list) {
  Array array;
  for (const std::string& text : list) array.emplace_back(text);
  return array;
}
Document ToDocument(const std::map<std::string, std::string>& map) {
  Object object;
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}
Document ToDocument(const PodSpec& pod) {
  Object object;
  ForEachPodField(pod, [&](const char* name, const std::string& text) { object[name] = text; });
  return object;
}

// ---- In: false if it is of another kind

bool FromDocument(const Document& document, std::string& text) {
  text = Text(document);
  return document.is_string();
}
bool FromDocument(const Document& document, bool& value) {
  if (document.is_bool()) value = document.get_bool();
  return document.is_bool();
}
template <std::integral T>
  requires(!std::same_as<T, bool>)
bool FromDocument(const Document& document, T& number) {
  if (document.is_uint64()) {
    number = static_cast<T>(document.get_uint64());
    return std::in_range<T>(document.get_uint64());
  }
  if (!document.is_int64()) return false;
  number = static_cast<T>(document.get_int64());
  return std::in_range<T>(document.get_int64());
}
bool FromDocument(const Document& document, absl::Duration& time) {
  return document.is_string() && absl::ParseDuration(std::string(Text(document)), &time);
}
bool FromDocument(const Document& document, JobKind& kind) {
  for (const JobKind one : kKinds) {
    if (Name(one) != Text(document)) continue;
    kind = one;
    return true;
  }
  return false;
}
bool FromDocument(const Document& document, graph::OnNonFinite& policy) {
  const std::optional<graph::OnNonFinite> parsed = graph::ParseOnNonFinite(Text(document));
  policy = parsed.value_or(policy);
  return parsed.has_value();
}
bool FromDocument(const Document& document, DataSources& list) {
  if (!document.is_array()) return false;
  list.clear();
  for (const Document& item : document.get_array()) {
    if (!item.is_string()) return false;
    list.emplace_back(Text(item));
  }
  return true;
}
bool FromDocument(const Document& document, std::map<std::string, std::string>& map) {
  if (!document.is_object()) return false;
  map.clear();
  for (const auto& member : document.get_object()) {
    if (!member.value().is_string()) return false;
    map.emplace(Key(member), Text(member.value()));
  }
  return true;
}
bool FromDocument(const Document& document, PodSpec& pod) {
  if (!document.is_object()) return false;
  bool good = true;
  ForEachPodField(pod, [&](const char* name, std::string& text) {
    if (const Document* value = document.get_object().if_contains(name)) good &= FromDocument(*value, text);
  });
  return good;
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
  if (!document.is_object()) return Bad("a job is a JSON object");
  JobSpec spec;
  std::string wrong;
  std::set<std::string_view> known;
  ForEachField(spec, [&](const char* name, auto& field) {
    known.insert(name);
    const Document* const value = document.get_object().if_contains(name);
    if (value != nullptr && !FromDocument(*value, field) && wrong.empty()) wrong = name;
  });
  if (!wrong.empty()) return Bad("the job's field ", wrong, " is of the wrong kind or out of range");
  for (const auto& member : document.get_object()) {
    if (!known.contains(Key(member))) return Bad("a job has no field ", Shortened(Escaped(Key(member)), 64));
  }
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

}  // namespace trainyard::master
