// Workers of elastic jobs for Python: the line to the master and the reading of records. Whatever may wait
// does so without the interpreter's lock.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "casters.h"
#include "data/recordio/writer.h"
#include "graph/ir/codec.h"
#include "graph/pass/halves.h"
#include "master/data.h"
#include "master/worker/read_desk.h"
#include "master/worker/trainer.h"
#include "module.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using master::Batch;
using master::NamedValues;
using master::PulledModel;

using Records = std::vector<std::vector<std::string>>;  // of each source
using Arrays = std::map<std::string, py::array>;

NamedValues ValuesOf(const Arrays& arrays) {
  NamedValues values;
  for (const auto& [name, array] : arrays) {
    graph::Tensor tensor;
    ViewOf(array).CopyTo(tensor);
    values.emplace_back(name, std::move(tensor));
  }
  return values;
}

// Generation, version, values.
using ModelTuple = std::tuple<std::int64_t, std::int64_t, Arrays>;
ModelTuple TupleOf(PulledModel model) {
  Arrays arrays;
  for (auto& [name, value] : model.values)
    arrays.emplace(name, ArrayOf(std::get<graph::Tensor>(std::move(value))));
  return {model.generation, model.version, std::move(arrays)};
}

class ElasticWorker {
 public:
  ElasticWorker(std::string master, std::string token, int index, std::string pod, double patience) {
    const py::gil_scoped_release unlocked;
    trainer_ = Take(master::WorkerTrainer::Connect({.master = std::move(master),
                                                    .token = std::move(token),
                                                    .index = index,
                                                    .pod = std::move(pod),
                                                    .patience = absl::Seconds(patience)}));
  }
  ~ElasticWorker() {
    const py::gil_scoped_release unlocked;
    trainer_->Stop();  // first: what is not read now is given back, and has not failed
    desk_->Close();
    trainer_.reset();
  }

  std::string Job() const { return master::Print(trainer_->job()); }
  int index() const { return trainer_->index(); }

  void Start() {
    const py::gil_scoped_release unlocked;
    const master::JobSpec& job = trainer_->job();
    if (!job.data_reader.empty()) {
      trainer_->Start([this](const tasks::Task& task, tasks::Range range) { return AskFor(task, range); });
      return;
    }
    const data::OpenOptions options = Take(master::DataOptionsOf(job));
    for (const tasks::Kind kind :
         {tasks::Kind::kTraining, tasks::Kind::kEvaluation, tasks::Kind::kPrediction}) {
      const master::DataSources& sources = master::SourcesOf(job, kind);
      if (!sources.empty()) readers_[kind] = Take(master::RecordReader::Open(sources, options));
    }
    trainer_->Start([this](const tasks::Task& task, tasks::Range range) { return Load(task, range); });
  }

  // Of a job whose model reads its data: ticket, kind, the records' numbers, and tickets whose records nobody
  // needs.
  using ReadTuple =
      std::tuple<master::ReadTicket, std::string, std::vector<std::int64_t>, std::vector<master::ReadTicket>>;
  std::optional<ReadTuple> NextRead() {
    const py::gil_scoped_release unlocked;
    std::optional<master::ReadRequest> request = desk_->Next();
    if (!request) return std::nullopt;
    return ReadTuple{request->ticket, std::string(tasks::Name(request->kind)), std::move(request->numbers),
                     std::move(request->forgotten)};
  }
  void AnswerRead(master::ReadTicket ticket, const std::string& error) {
    const py::gil_scoped_release unlocked;
    desk_->Answer(ticket, error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error));
  }
  static master::ReadTicket TicketOf(const Batch& batch) {
    return *static_cast<const master::ReadTicket*>(batch.content.get());
  }

  std::shared_ptr<Batch> Next() {
    const py::gil_scoped_release unlocked;
    absl::StatusOr<Batch> batch = trainer_->Next();
    if (absl::IsOutOfRange(batch.status()) || absl::IsCancelled(batch.status())) return nullptr;
    return std::make_shared<Batch>(Take(std::move(batch)));
  }

  void Offer(const Arrays& arrays, const std::vector<std::string>& learn, const graph::Optimizer& optimizer) {
    NamedValues values = ValuesOf(arrays);
    const py::gil_scoped_release unlocked;
    std::vector<graph::Learnt> variables;
    for (const auto& [name, value] : values) {
      variables.push_back({.name = name,
                           .dims = std::get<graph::Tensor>(value).dims(),
                           .learns = std::ranges::find(learn, name) != learn.end()});
    }
    const graph::Programs programs = Take(graph::MakeUpdate(variables, optimizer));
    Check(trainer_->Offer(std::move(values), graph::Encode(programs.main), graph::Encode(programs.startup)));
  }

  // Nothing: that version is gone.
  std::optional<ModelTuple> Pull(std::int64_t version) {
    absl::StatusOr<PulledModel> model = absl::UnknownError("");
    {
      const py::gil_scoped_release unlocked;
      model = trainer_->Pull(version);
    }
    if (absl::IsAborted(model.status())) return std::nullopt;
    return TupleOf(Take(std::move(model)));
  }

  using PushTuple = std::tuple<std::string, std::int64_t, std::optional<ModelTuple>>;
  PushTuple Push(const Batch& batch, std::pair<std::int64_t, std::int64_t> computed_with, double loss,
                 bool pull, const Arrays& gradients) {
    master::WorkerTrainer::Gradient gradient{.generation = computed_with.first,
                                             .version = computed_with.second,
                                             .loss = loss,
                                             .pull = pull,
                                             .values = ValuesOf(gradients)};
    absl::StatusOr<master::PushResult> pushed = absl::UnknownError("");
    {
      const py::gil_scoped_release unlocked;
      pushed = trainer_->Push(batch, std::move(gradient));
    }
    master::PushResult result = Take(std::move(pushed));
    std::optional<ModelTuple> model;
    if (result.model) model = TupleOf(*std::move(result.model));
    const char* const verdict = result.verdict == master::PushVerdict::kAccepted ? "accepted"
                                : result.verdict == master::PushVerdict::kStale  ? "stale"
                                                                                 : "lost";
    return {verdict, result.version, std::move(model)};
  }

  void Finish(const Batch& batch, const std::map<std::string, double>& metrics) {
    std::vector<tasks::Metric> list;
    for (const auto& [name, value] : metrics) list.push_back({name, value});
    const py::gil_scoped_release unlocked;
    trainer_->Finish(batch.task, std::move(list));
  }
  void Fail(const Batch& batch, const std::string& error) {
    const py::gil_scoped_release unlocked;
    trainer_->Fail(batch.task, error);
  }
  void GiveBack(const Batch& batch) {
    const py::gil_scoped_release unlocked;
    trainer_->Return(batch.task);
  }
  void Drop(const Batch& batch) {
    const py::gil_scoped_release unlocked;
    trainer_->Drop(batch.task);
  }
  void Stop() {
    const py::gil_scoped_release unlocked;
    trainer_->Stop();
    desk_->Close();
  }
  std::string PredictionFile(const Batch& batch) const {
    return master::PredictionFile(trainer_->job(), batch.task);
  }

 private:
  absl::StatusOr<std::shared_ptr<void>> Load(const tasks::Task& task, tasks::Range range) {
    master::RecordReader& reader = *readers_.at(task.kind);
    absl::StatusOr<Records> records =
        reader.Read(master::NumbersOf(trainer_->job(), task, range, reader.count()));
    if (!records.ok()) return records.status();
    return std::static_pointer_cast<void>(std::make_shared<Records>(*std::move(records)));
  }

  absl::StatusOr<std::shared_ptr<void>> AskFor(const tasks::Task& task, tasks::Range range) {
    const master::JobSpec& job = trainer_->job();
    const absl::StatusOr<std::int64_t> count = master::CountRecordsOf(job, task.kind);
    if (!count.ok()) return count.status();
    absl::StatusOr<std::shared_ptr<const master::ReadTicket>> ticket =
        desk_->Ask(task.kind, master::NumbersOf(job, task, range, *count));
    if (!ticket.ok()) return ticket.status();
    return std::static_pointer_cast<void>(std::const_pointer_cast<master::ReadTicket>(*std::move(ticket)));
  }

  std::map<tasks::Kind, std::unique_ptr<master::RecordReader>> readers_;
  const std::shared_ptr<master::ReadDesk> desk_ = master::ReadDesk::Open();
  std::unique_ptr<master::WorkerTrainer> trainer_;
};

// The records of the first source, or of all of them as tuples.
py::list RecordsOf(const Batch& batch) {
  const auto& records = *static_cast<const Records*>(batch.content.get());
  py::list list;
  for (std::size_t i = 0; i < records.front().size(); ++i) {
    if (records.size() == 1) {
      list.append(py::bytes(records.front()[i]));
      continue;
    }
    py::tuple together(records.size());
    for (std::size_t source = 0; source < records.size(); ++source)
      together[source] = py::bytes(records[source][i]);
    list.append(std::move(together));
  }
  return list;
}

void WriteRecords(const std::string& path, const std::vector<std::string>& records) {
  const py::gil_scoped_release unlocked;
  const auto writer = Take(data::RecordIoWriter::Create(path));
  for (const std::string& record : records) Check(writer->Write(record));
  Check(writer->Close());
}

}  // namespace

void AddElastic(py::module_& module) {
  py::class_<Batch, std::shared_ptr<Batch>>(module, "ElasticBatch")
      .def_property_readonly("task", [](const Batch& batch) { return batch.task.id; })
      .def_property_readonly("kind",
                             [](const Batch& batch) { return std::string(tasks::Name(batch.task.kind)); })
      .def_property_readonly("epoch", [](const Batch& batch) { return batch.task.epoch; })
      .def_property_readonly("version", [](const Batch& batch) { return batch.task.version; })
      .def_property_readonly("first", [](const Batch& batch) { return batch.records.begin; })
      .def_property_readonly("count", [](const Batch& batch) { return batch.records.size(); })
      .def_property_readonly("last", [](const Batch& batch) { return batch.last; })
      .def("describe", [](const Batch& batch) { return tasks::Describe(batch.task); })
      .def("records", &RecordsOf);
  py::class_<ElasticWorker>(module, "ElasticWorker")
      .def(py::init<std::string, std::string, int, std::string, double>())
      .def_property_readonly("job", &ElasticWorker::Job)
      .def_property_readonly("index", &ElasticWorker::index)
      .def("start", &ElasticWorker::Start)
      .def("next", &ElasticWorker::Next)
      .def("next_read", &ElasticWorker::NextRead)
      .def("answer_read", &ElasticWorker::AnswerRead)
      .def_static("ticket", &ElasticWorker::TicketOf)
      .def("offer", &ElasticWorker::Offer)
      .def("pull", &ElasticWorker::Pull)
      .def("push", &ElasticWorker::Push)
      .def("finish", &ElasticWorker::Finish)
      .def("fail", &ElasticWorker::Fail)
      .def("give_back", &ElasticWorker::GiveBack)
      .def("drop", &ElasticWorker::Drop)
      .def("stop", &ElasticWorker::Stop)
      .def("prediction_file", &ElasticWorker::PredictionFile);
  module.def("write_records", &WriteRecords);
}

}  // namespace trainyard::python
