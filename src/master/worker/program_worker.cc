#include "master/worker/program_worker.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "data/recordio/writer.h"
#include "graph/exec/executor.h"
#include "graph/pass/halves.h"
#include "master/data.h"
#include "master/spec.h"
#include "ps/record_sources.h"

namespace trainyard::master {
namespace {

using graph::Tensor;
using Tensors = std::vector<Tensor>;

// The program's own reader with the job's files.
absl::StatusOr<graph::Op> ReaderOf(const graph::Program& main, const DataSources& sources,
                                   const JobSpec& job) {
  const auto& ops = main.main().ops;
  const auto found = std::ranges::find(ops, "read", &graph::Op::type);
  if (found == ops.end())
    return absl::InvalidArgumentError(StrCat("program ", main.id, " reads no records: build it with read()"));
  graph::Op read = *found;
  graph::Strings named;
  for (const std::string& source : sources) {
    TY_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(source));
    std::string list;
    for (const std::string& file : files) StrAppend(list, list.empty() ? "" : ",", file);
    named.push_back(std::move(list));
  }
  read.attrs["sources"] = std::move(named);
  if (job.data_format != "auto") read.attrs["format"] = job.data_format;
  if (job.skip_header) read.attrs["skip_header"] = true;
  return read;
}

class ProgramWorker {
 public:
  explicit ProgramWorker(WorkerTrainer& trainer) : trainer_(trainer), job_(trainer.job()) {}

  absl::Status Prepare() {
    TY_ASSIGN_OR_RETURN(const std::string bytes, DecodeBase64(job_.program));
    TY_ASSIGN_OR_RETURN(const graph::Programs programs, DecodePrograms(bytes));
    TY_ASSIGN_OR_RETURN(halves_, graph::CutInHalves(programs.main));
    for (const auto& [kind, data] : {std::pair(tasks::Kind::kTraining, &job_.training_data),
                                     std::pair(tasks::Kind::kEvaluation, &job_.validation_data),
                                     std::pair(tasks::Kind::kPrediction, &job_.prediction_data)}) {
      if (data->empty()) continue;
      TY_ASSIGN_OR_RETURN(const graph::Op read, ReaderOf(programs.main, *data, job_));
      TY_ASSIGN_OR_RETURN(sources_[kind], ps::RecordSources::Open(read));
      fields_ = read.Out("Out");
    }
    FindOutputs(programs.main);
    const graph::ExecutorOptions executing{.threads = job_.threads};
    graph::Program compute = halves_.compute;
    std::erase_if(compute.main().ops,
                  [](const graph::Op& op) { return op.type == "read" || op.type == "output"; });
    seed_ = compute.seed;
    TY_ASSIGN_OR_RETURN(compute_, graph::PreparedBlock::Make(compute, 0, scope_, executing));
    TY_ASSIGN_OR_RETURN(
        test_, graph::PreparedBlock::Make(graph::CloneForTest(programs.main), 0, frozen_scope_, executing));
    return absl::OkStatus();
  }

  // On the trainer's own thread.
  absl::StatusOr<std::shared_ptr<void>> Load(const tasks::Task& task, tasks::Range range) {
    ps::RecordSources& source = *sources_.at(task.kind);
    std::vector<ps::RecordSources::Row> rows;
    for (const std::int64_t number : NumbersOf(job_, task, range, source.count()))
      rows.push_back({.number = number, .row = static_cast<std::int64_t>(rows.size())});
    auto batch = std::make_shared<Tensors>();
    TY_RETURN_IF_ERROR(source.Read(rows, *batch));
    return std::static_pointer_cast<void>(std::move(batch));
  }

  absl::Status Run() {
    for (;;) {
      const absl::StatusOr<Batch> batch = trainer_.Next();
      if (absl::IsOutOfRange(batch.status())) return absl::OkStatus();
      if (!batch.ok()) return batch.status();
      const absl::Status done = batch->task.kind == tasks::Kind::kTraining ? Train(*batch) : Look(*batch);
      // What is wrong with the records or the numbers is the task's; what is wrong with the line is ours.
      if (absl::IsInvalidArgument(done) || absl::IsDataLoss(done) || absl::IsNotFound(done)) {
        trainer_.Fail(batch->task, std::string(Message(done)));
      } else if (!done.ok()) {
        return done;
      }
    }
  }

 private:
  // What `output` names, or else the loss.
  void FindOutputs(const graph::Program& main) {
    for (const graph::Op& op : main.main().ops) {
      if (op.type == "output") outputs_.insert(outputs_.end(), op.In("X").begin(), op.In("X").end());
    }
    if (outputs_.empty() && !halves_.loss.empty()) outputs_.push_back(halves_.loss);
    if (const auto named = job_.params.find("outputs"); named != job_.params.end()) {
      outputs_.clear();
      for (const std::string_view name : Split(std::string_view(named->second), ','))
        outputs_.emplace_back(name);
    }
  }

  void Take(PulledModel model, graph::Scope& scope) {
    for (auto& [name, value] : model.values) scope.Put(name, std::get<Tensor>(std::move(value)));
  }

  absl::Status Feed(graph::PreparedBlock& block, const Batch& batch) {
    const auto& tensors = *static_cast<const Tensors*>(batch.content.get());
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (block.Find(fields_[i]) == nullptr) continue;  // a field that this half does not use
      TY_RETURN_IF_ERROR(block.Feed(fields_[i], tensors[i]));
    }
    return absl::OkStatus();
  }

  absl::Status TakeNewest() {
    TY_ASSIGN_OR_RETURN(PulledModel model, trainer_.Pull(-1));
    generation_ = model.generation;
    version_ = model.version;
    Take(std::move(model), scope_);
    return absl::OkStatus();
  }

  absl::Status Train(const Batch& batch) {
    for (;;) {
      if (version_ < 0) TY_RETURN_IF_ERROR(TakeNewest());
      TY_RETURN_IF_ERROR(Feed(*compute_, batch));
      // Masks depend on the records, not on who has them or when.
      graph::Services services{.seed = seed_, .step = (batch.task.epoch << 32) + batch.records.begin};
      TY_RETURN_IF_ERROR(compute_->Run(services));
      WorkerTrainer::Gradient gradient{.generation = generation_, .version = version_};
      gradient.pull = !job_.async || ++since_pull_ >= job_.pull_every;
      if (gradient.pull) since_pull_ = 0;
      for (const std::string& name : halves_.sent)
        gradient.values.emplace_back(name, compute_->Find(name)->value);
      if (!halves_.loss.empty()) {
        TY_ASSIGN_OR_RETURN(const Tensor loss, compute_->Fetch(halves_.loss));
        gradient.loss = *loss.data<float>();
      }
      TY_ASSIGN_OR_RETURN(PushResult result, trainer_.Push(batch, std::move(gradient)));
      if (result.model) {
        generation_ = result.model->generation;
        version_ = result.model->version;
        Take(*std::move(result.model), scope_);
      } else if (result.verdict != PushVerdict::kAccepted) {
        version_ = -1;
      }
      if (result.verdict == PushVerdict::kAccepted) return absl::OkStatus();
      if (result.verdict == PushVerdict::kLost) {
        trainer_.Drop(batch.task);
        return absl::OkStatus();
      }
    }
  }

  // Evaluates or predicts.
  absl::Status Look(const Batch& batch) {
    const bool predicts = batch.task.kind == tasks::Kind::kPrediction;
    const std::int64_t version = predicts ? -1 : batch.task.version;
    if (frozen_version_ != version || frozen_version_ < 0) {
      absl::StatusOr<PulledModel> model = trainer_.Pull(version);
      if (absl::IsAborted(model.status())) {
        trainer_.Return(batch.task);
        return absl::OkStatus();
      }
      TY_RETURN_IF_ERROR(model);
      if (!predicts || frozen_version_ != model->version) Take(*std::move(model), frozen_scope_);
      frozen_version_ = version;
    }
    if (looking_ != batch.task.id) {
      looking_ = batch.task.id;
      sums_.clear();
      records_ = 0;
      rows_.clear();
    }
    TY_RETURN_IF_ERROR(Feed(*test_, batch));
    graph::Services services{.seed = seed_};
    TY_RETURN_IF_ERROR(test_->Run(services));
    TY_RETURN_IF_ERROR(predicts ? Keep(batch) : Sum(batch));
    if (!batch.last) return absl::OkStatus();
    if (predicts) TY_RETURN_IF_ERROR(WriteRows(batch.task));
    std::vector<tasks::Metric> metrics;
    metrics.reserve(sums_.size());
    for (const auto& [name, sum] : sums_) metrics.push_back({name, sum / static_cast<double>(records_)});
    trainer_.Finish(batch.task, std::move(metrics));
    return absl::OkStatus();
  }

  absl::Status Sum(const Batch& batch) {
    for (const std::string& name : outputs_) {
      const absl::StatusOr<Tensor> value = test_->Fetch(name);
      if (!value.ok() || value->type() != graph::DataType::kFloat32 || value->count() != 1) continue;
      sums_[name] += static_cast<double>(*value->data<float>()) * static_cast<double>(batch.records.size());
    }
    records_ += batch.records.size();
    return absl::OkStatus();
  }

  // A record for each row: the values of all outputs, one behind the other.
  absl::Status Keep(const Batch& batch) {
    const std::int64_t count = batch.records.size();
    const std::size_t first = rows_.size();
    rows_.resize(first + static_cast<std::size_t>(count));
    for (const std::string& name : outputs_) {
      TY_ASSIGN_OR_RETURN(const Tensor value, test_->Fetch(name));
      if (value.dims().rank() == 0 || value.dims()[0] != count) continue;
      const std::size_t width = value.bytes() / static_cast<std::size_t>(count);
      for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row)
        rows_[first + row].append(static_cast<const char*>(value.raw()) + row * width, width);
    }
    return absl::OkStatus();
  }

  // Whoever does the task again writes the same file.
  absl::Status WriteRows(const tasks::Task& task) {
    std::error_code error;
    std::filesystem::create_directories(job_.output, error);
    const std::string path = PredictionFile(job_, task);
    TY_ASSIGN_OR_RETURN(const auto writer, data::RecordIoWriter::Create(path));
    for (const std::string& row : rows_) TY_RETURN_IF_ERROR(writer->Write(row));
    return writer->Close();
  }

  WorkerTrainer& trainer_;
  const JobSpec& job_;
  graph::Halves halves_;
  std::uint64_t seed_ = 0;
  std::vector<std::string> fields_;   // that are read
  std::vector<std::string> outputs_;  // that are of interest
  std::map<tasks::Kind, std::unique_ptr<ps::RecordSources>> sources_;
  graph::Scope scope_;
  graph::Scope frozen_scope_;
  std::unique_ptr<graph::PreparedBlock> compute_;
  std::unique_ptr<graph::PreparedBlock> test_;
  std::int64_t generation_ = 0;
  std::int64_t version_ = -1;
  int since_pull_ = 0;
  std::int64_t frozen_version_ = -2;
  tasks::TaskId looking_ = 0;
  std::map<std::string, double> sums_;
  std::int64_t records_ = 0;
  std::vector<std::string> rows_;
};

}  // namespace

absl::Status RunProgramWorker(const WorkerOptions& options,
                              const std::function<void(std::function<void()> stop)>& on_running) {
  std::optional<ProgramWorker>
      worker;  // outlives the trainer, whose thread loads batches until it is destroyed
  WorkerOptions connecting = options;
  connecting.on_running = on_running;
  const absl::StatusOr<std::unique_ptr<WorkerTrainer>> connected = WorkerTrainer::Connect(connecting);
  if (absl::IsOutOfRange(connected.status())) return absl::OkStatus();  // the job is over
  TY_RETURN_IF_ERROR(connected);
  WorkerTrainer* const trainer = connected->get();
  worker.emplace(*trainer);
  TY_RETURN_IF_ERROR(worker->Prepare());
  on_running([trainer] { trainer->Stop(); });
  trainer->Start([&](const tasks::Task& task, tasks::Range range) { return worker->Load(task, range); });
  const absl::Status ended = worker->Run();
  on_running([] {});
  trainer->Stop();
  return ended;
}

}  // namespace trainyard::master
