#include "cli/elastic_flags.h"

#include <algorithm>
#include <limits>

#include "base/base64.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/client_flags.h"
#include "cli/graph_model.h"
#include "client/graph_jobs.h"
#include "kube/names.h"
#include "master/spec.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kNumbers = 32;  // more than there are

}  // namespace

ElasticFlags::ElasticFlags(master::JobKind kind) {
  spec_.kind = kind;
  // They are pointed to while flags are declared.
  numbers_.reserve(kNumbers);
  times_.reserve(kNumbers);
}

void ElasticFlags::Declare(Flags& flags) {
  DeclareModel(flags);
  DeclareData(flags);
  if (spec_.kind == master::JobKind::kTrain) DeclareLearning(flags);
  DeclareResults(flags);
  DeclareWorkers(flags);
  DeclarePlace(flags);
}

void ElasticFlags::DeclareModel(Flags& flags) {
  const std::string group = "Model";
  flags.Text({.name = "--model",
              .value = "FILE",
              .help = "A file of Python with the model's functions or its net, or a program that was saved",
              .group = group},
             model_);
  flags.Texts({.name = "--param",
               .value = "NAME=VALUE",
               .help = "Something for the model's functions; may be repeated",
               .group = group},
              params_);
  flags.Text({.name = "--init-from",
              .value = "DIR",
              .help = "Begin with the model of these checkpoints",
              .group = group},
             spec_.init_from);
}

void ElasticFlags::DeclareData(Flags& flags) {
  const std::string group = "Data";
  const std::string together = "; repeat it for files whose records go together by number";
  const auto number = [&](std::string name, std::string help, std::int64_t& bound) {
    numbers_.push_back({name, &bound, nullptr, {}});
    flags.Number({.name = std::move(name), .value = "N", .help = std::move(help), .group = group},
                 numbers_.back().given);
  };
  if (spec_.kind == master::JobKind::kTrain) {
    flags.Text({.name = "--shuffle",
                .value = "HOW",
                .help = "What has another order in each epoch (tasks)",
                .one_of = {"none", "tasks", "records"},
                .group = group},
               spec_.shuffle);
    flags.Texts({.name = "--training-data",
                 .value = "PATH",
                 .help = StrCat("Files, globs or a folder", together),
                 .group = group},
                training_);
  }
  if (spec_.kind != master::JobKind::kPredict) {
    flags.Texts({.name = "--validation-data",
                 .value = "PATH",
                 .help = "What is evaluated on, likewise",
                 .group = group},
                validation_);
  } else {
    flags.Texts({.name = "--prediction-data",
                 .value = "PATH",
                 .help = StrCat("Files, globs or a folder", together),
                 .group = group},
                prediction_);
  }
  flags.Text(
      {.name = "--data-reader",
       .value = "NAME",
       .help = "The model's function that makes a reader of each PATH, whatever that is (record files)",
       .group = group},
      spec_.data_reader);
  const std::string unseen = "How many there are, where only workers see them (the reader is asked)";
  if (spec_.kind == master::JobKind::kTrain) number("--training-records", unseen, spec_.training_records);
  if (spec_.kind != master::JobKind::kPredict) {
    number("--validation-records", unseen, spec_.validation_records);
  } else {
    number("--prediction-records", unseen, spec_.prediction_records);
  }
  flags.Text({.name = "--data-format",
              .value = "FORMAT",
              .help = "auto, recordio, csv or idx (auto)",
              .one_of = {"auto", "recordio", "csv", "idx"},
              .group = group},
             spec_.data_format);
  flags.Switch({.name = "--skip-header", .help = "The first line of each CSV file is none", .group = group},
               spec_.skip_header);
  number("--minibatch", "Records that are computed at once (64)", spec_.minibatch);
  number("--minibatches-per-task", "Minibatches that a worker is given at once (8)",
         spec_.minibatches_per_task);
  if (spec_.kind == master::JobKind::kTrain) {
    number("--epochs", "How often all records are used (1)", spec_.epochs);
    number("--max-steps", "Stop after so many versions of the model", spec_.max_steps);
    numbers_.push_back({"--seed", nullptr, nullptr, {}});
    flags.Number({.name = "--seed",
                  .value = "N",
                  .help = "Of the order of records and of first values (1)",
                  .group = group},
                 numbers_.back().given);
    flags.Switch({.name = "--overlap-epochs",
                  .help = "Begin an epoch while the last tasks of the one before are under way",
                  .group = group},
                 spec_.overlap_epochs);
  }
  numbers_.push_back({"--task-failures", nullptr, &spec_.most_failures, {}});
  flags.Number({.name = "--task-failures",
                .value = "N",
                .help = "How often one task may fail by itself before the job does (3)",
                .group = group},
               numbers_.back().given);
}

void ElasticFlags::DeclareLearning(Flags& flags) {
  const std::string group = "Learning";
  const auto small = [&](std::string name, std::string help, int& bound) {
    numbers_.push_back({name, nullptr, &bound, {}});
    flags.Number({.name = std::move(name), .value = "N", .help = std::move(help), .group = group},
                 numbers_.back().given);
  };
  small("--grads-to-wait", "So many gradients make one step (1)", spec_.grads_to_wait);
  numbers_.push_back({"--staleness", &spec_.staleness, nullptr, {}});
  flags.Number({.name = "--staleness",
                .value = "N",
                .help = "How many versions a gradient may be behind (0)",
                .group = group},
               numbers_.back().given);
  flags.Switch(
      {.name = "--async", .help = "Each gradient is used when it comes, however old it is", .group = group},
      spec_.async);
  flags.Switch({.name = "--modulate-rate",
                .help = "With --async: the older a gradient, the smaller the step",
                .group = group},
               spec_.modulate_rate);
  small("--pull-every", "With --async: minibatches between two looks at the model (1)", spec_.pull_every);
  flags.Text(
      {.name = "--on-nonfinite",
       .value = "WHAT",
       .help = "What to do when a loss or a variable becomes NaN or infinite: fail, warn or skip (fail)",
       .one_of = {"fail", "warn", "skip"},
       .group = group},
      on_nonfinite_);
  small("--pservers", "So many processes keep the model, in parts, instead of the master (0)",
        spec_.pservers);
  flags.Text({.name = "--pserver-cpu",
              .value = "AMOUNT",
              .help = "What a pserver asks for, as 1 or 500m",
              .group = group},
             spec_.pserver_pod.cpu);
  flags.Text({.name = "--pserver-memory",
              .value = "AMOUNT",
              .help = "Likewise, as 512Mi; also the most it gets",
              .group = group},
             spec_.pserver_pod.memory);
  flags.Text({.name = "--pserver-priority",
              .value = "CLASS",
              .help = "The priority class of pservers",
              .group = group},
             spec_.pserver_pod.priority_class);
}

void ElasticFlags::DeclareResults(Flags& flags) {
  const std::string group = "Evaluation, checkpoints, results";
  const auto number = [&](std::string name, std::string help, std::int64_t& bound) {
    numbers_.push_back({name, &bound, nullptr, {}});
    flags.Number({.name = std::move(name), .value = "N", .help = std::move(help), .group = group},
                 numbers_.back().given);
  };
  const auto time = [&](std::string name, std::string help, absl::Duration& bound) {
    times_.push_back({&bound, {}});
    flags.Duration({.name = std::move(name), .value = "TIME", .help = std::move(help), .group = group},
                   times_.back().given);
  };
  if (spec_.kind == master::JobKind::kTrain) {
    number("--evaluation-steps", "Versions between two evaluations (only at the end)",
           spec_.evaluation_steps);
    time("--evaluation-every", "Time between two evaluations", spec_.evaluation_every);
    time("--evaluation-delay", "Before the first evaluation", spec_.evaluation_delay);
    flags.Text({.name = "--checkpoint-dir",
                .value = "DIR",
                .help = "Folder of checkpoints, below the storage (the job's own)",
                .group = group},
               spec_.checkpoint_dir);
    number("--checkpoint-steps", "Versions between two checkpoints", spec_.checkpoint_steps);
    time("--checkpoint-every", "Time between two checkpoints (2s; 0: by steps alone)",
         spec_.checkpoint_every);
    number("--keep-checkpoints", "How many are kept (3; 0: all)", spec_.keep_checkpoints);
  }
  flags.Text({.name = "--output",
              .value = "DIR",
              .help = spec_.kind == master::JobKind::kPredict
                          ? "Folder of the predictions, below the storage"
                          : "Folder of the trained model and its figures, below the storage",
              .group = group},
             spec_.output);
  if (spec_.kind == master::JobKind::kPredict)
    flags.Text({.name = "--writer",
                .value = "NAME",
                .help = "The model's function that writes predictions (a RecordIO file for each task)",
                .group = group},
               spec_.writer);
}

void ElasticFlags::DeclareWorkers(Flags& flags) {
  const std::string group = "Workers";
  const auto small = [&](std::string name, std::string help, int& bound) {
    numbers_.push_back({name, nullptr, &bound, {}});
    flags.Number({.name = std::move(name), .value = "N", .help = std::move(help), .group = group},
                 numbers_.back().given);
  };
  small("--workers", "How many to begin with (2)", spec_.workers);
  small("--min-workers", "The job waits for room for so many (1)", spec_.min_workers);
  small("--max-workers", "It takes room for so many, where there is some (--workers)", spec_.max_workers);
  small("--worker-restarts", "How often in a row a worker may fail by itself before the job does (10)",
        spec_.most_restarts);
  small("--threads", "Threads inside one operator (1)", spec_.threads);
  flags.Text({.name = "--worker-cpu",
              .value = "AMOUNT",
              .help = "What a worker asks for, as 1 or 500m",
              .group = group},
             spec_.worker_pod.cpu);
  flags.Text({.name = "--worker-memory",
              .value = "AMOUNT",
              .help = "Likewise, as 512Mi; also the most it gets",
              .group = group},
             spec_.worker_pod.memory);
  flags.Text({.name = "--worker-gpu", .value = "N", .help = "Likewise", .group = group},
             spec_.worker_pod.gpu);
  flags.Text({.name = "--worker-priority",
              .value = "CLASS",
              .help = "The priority class of workers",
              .group = group},
             spec_.worker_pod.priority_class);
  flags.Texts({.name = "--env",
               .value = "NAME=VALUE",
               .help = "A variable of workers' environment; may be repeated",
               .group = group},
              env_);
}

void ElasticFlags::DeclarePlace(Flags& flags) {
  const std::string group = "Cluster";
  flags.Text({.name = "--name",
              .value = "NAME",
              .help = "The job's (the model's, and some letters)",
              .group = group},
             spec_.name);
  DeclareCluster(flags, cluster_);
  DeclarePods(flags, cluster_);
  flags.Text({.name = "--image-pull-policy",
              .value = "POLICY",
              .help = "Always, IfNotPresent or Never",
              .group = group},
             image_pull_policy_);
  flags.Text({.name = "--store",
              .value = "URL",
              .help = "Where the task queue is kept, as etcd://HOST:PORT (the storage)",
              .group = group},
             store_);
  flags.Text({.name = "--service-account",
              .value = "NAME",
              .help = "Of the master, which makes pods",
              .group = group},
             service_account_);
  flags.Text({.name = "--master-cpu", .value = "AMOUNT", .help = "What the master asks for", .group = group},
             spec_.master_pod.cpu);
  flags.Text({.name = "--master-memory", .value = "AMOUNT", .help = "Likewise", .group = group},
             spec_.master_pod.memory);
  flags.Text(
      {.name = "--master-priority", .value = "CLASS", .help = "The master's priority class", .group = group},
      spec_.master_pod.priority_class);
  flags.Text({.name = "--python",
              .value = "FILE",
              .help = "The interpreter of models in Python (/usr/bin/python3)",
              .group = group},
             python_);
}

absl::Status ElasticFlags::TakeNumbers() {
  bool most = false;
  for (const Whole& number : numbers_) {
    if (!number.given) continue;
    if (number.flag == "--max-workers") most = true;
    if (number.flag == "--seed") spec_.seed = static_cast<std::uint64_t>(*number.given);
    if (number.bound != nullptr) *number.bound = *number.given;
    if (number.small == nullptr) continue;
    if (!std::in_range<int>(*number.given))
      return UsageError(StrCat(number.flag, ": ", *number.given, " is too much"));
    *number.small = static_cast<int>(*number.given);
  }
  if (!most) spec_.max_workers = spec_.workers;
  spec_.min_workers = std::min(spec_.min_workers, std::max(spec_.workers, 1));
  for (const Time& time : times_) {
    if (time.given) *time.bound = *time.given;
  }
  return absl::OkStatus();
}

absl::Status ElasticFlags::TakeModel(client::ElasticSettings& settings) {
  TY_ASSIGN_OR_RETURN(std::string text, ReadFile(model_, kMostModelBytes));
  if (!model_.ends_with(".py")) {
    const auto programs = master::DecodePrograms(text);
    if (!programs.ok()) return Annotate(programs.status(), StrCat("--model ", model_));
    spec_.program = EncodeBase64(text);
    return absl::OkStatus();
  }
  spec_.model = AbsolutePath(model_);
  TY_ASSIGN_OR_RETURN(const CompiledModel compiled, CompileModel(python_, model_, spec_));
  if (compiled.program.empty()) {
    settings.model_text = std::move(text);
  } else {
    spec_.program = EncodeBase64(compiled.program);
  }
  for (const auto& [found, told] : {std::pair(compiled.training_records, &spec_.training_records),
                                    std::pair(compiled.validation_records, &spec_.validation_records),
                                    std::pair(compiled.prediction_records, &spec_.prediction_records)}) {
    if (*told == 0) *told = found;
  }
  return absl::OkStatus();
}

void ElasticFlags::TakeData() {
  if (!spec_.data_reader.empty()) spec_.folder = AbsolutePath(".");
  for (const auto& [given, sources] :
       {std::pair(&training_, &spec_.training_data), std::pair(&validation_, &spec_.validation_data),
        std::pair(&prediction_, &spec_.prediction_data)}) {
    for (const std::string& source : *given)
      sources->push_back(spec_.data_reader.empty() ? AbsolutePaths(source) : source);
  }
}

// What a program reads by itself, where no flag says otherwise. Without a reader it has no use for records.
absl::Status ElasticFlags::TakeDataOfProgram() {
  if (spec_.program.empty()) return absl::OkStatus();
  TY_ASSIGN_OR_RETURN(const std::string bytes, DecodeBase64(spec_.program));
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, master::DecodePrograms(bytes));
  const auto& ops = programs.main.main().ops;
  if (std::ranges::find(ops, "read", &graph::Op::type) == ops.end())
    return absl::InvalidArgumentError(
        StrCat("the model ", model_, " has no read(): workers are not fed, they read their records"));
  if (!spec_.training_data.empty() || spec_.kind != master::JobKind::kTrain) return absl::OkStatus();
  for (const graph::Op& op : ops) {
    if (op.type != "read") continue;
    for (const std::string& source : op.StringList("sources"))
      spec_.training_data.push_back(AbsolutePaths(source));
    if (spec_.data_format == "auto") spec_.data_format = op.String("format");
    spec_.skip_header |= op.Bool("skip_header");
  }
  return absl::OkStatus();
}

absl::Status ElasticFlags::CheckWithoutModel() {
  if (model_.empty()) return UsageError("--model is missing: a file of Python, or a program that was saved");
  if (spec_.name.empty()) spec_.name = NameOfModel(model_);
  if (const std::string_view problem = kube::FindDns1123SubdomainProblem(spec_.name);
      !problem.empty() || spec_.name.size() > 50)
    return UsageError(StrCat("--name: '", Escaped(spec_.name),
                             "' cannot be a job's: use up to 50 small letters, digits and '-'"));
  for (master::PodSpec* const pod : {&spec_.worker_pod, &spec_.pserver_pod, &spec_.master_pod}) {
    const auto checked = client::CheckResource({.cpu = pod->cpu, .gpu = pod->gpu, .memory = pod->memory});
    if (!checked.ok()) return UsageError(Message(checked.status()));
    pod->cpu = checked->cpu;
    pod->gpu = checked->gpu;
    pod->memory = checked->memory;
  }
  master::JobSpec rest = spec_;
  rest.model = model_;
  // A program may name its data itself.
  if (rest.kind == master::JobKind::kTrain && rest.training_data.empty()) rest.training_data = {"its own"};
  // And its reader is asked later how many records there are.
  for (std::int64_t* const records :
       {&rest.training_records, &rest.validation_records, &rest.prediction_records}) {
    if (!rest.data_reader.empty() && *records == 0) *records = 1;
  }
  const absl::Status valid = master::Validate(rest);
  return valid.ok() ? valid : UsageError(Message(valid));
}

absl::StatusOr<client::ElasticSettings> ElasticFlags::Settings() {
  client::ElasticSettings settings;
  TY_RETURN_IF_ERROR(TakeNumbers());
  TakeData();
  spec_.on_nonfinite = graph::ParseOnNonFinite(on_nonfinite_).value_or(spec_.on_nonfinite);
  TY_ASSIGN_OR_RETURN(spec_.params, ParsePairs("--param", params_));
  TY_ASSIGN_OR_RETURN(settings.env, ParsePairs("--env", env_));
  // Before the model is looked at, which takes its time, and may stumble over the same mistakes.
  TY_RETURN_IF_ERROR(CheckWithoutModel());
  TY_RETURN_IF_ERROR(TakeModel(settings));
  TY_RETURN_IF_ERROR(TakeDataOfProgram());
  if (const absl::Status valid = master::Validate(spec_); !valid.ok()) return UsageError(Message(valid));
  settings.spec = spec_;
  settings.store_url = store_;
  settings.python = python_;
  settings.python_path = PackageFolder();
  settings.service_account = service_account_;
  settings.image_pull_policy = image_pull_policy_;
  return settings;
}

}  // namespace trainyard::cli
