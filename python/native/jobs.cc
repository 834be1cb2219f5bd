// Graph jobs for Python. Whatever may wait for the network does so without the interpreter's lock.
#include <memory>
#include <optional>
#include <tuple>

#include "casters.h"
#include "client/graph_jobs.h"
#include "module.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using client::GraphJobs;
using client::Job;
using client::OutputStream;
using client::Workers;

using Unlocked = py::call_guard<py::gil_scoped_release>;

std::unique_ptr<GraphJobs> Open(std::string kubeconfig, std::string context, std::string ns,
                                std::string store, std::string storage, std::string image, double patience) {
  return Take(GraphJobs::Open({.kubeconfig = std::move(kubeconfig),
                               .context = std::move(context),
                               .ns = std::move(ns),
                               .store = std::move(store),
                               .storage = std::move(storage),
                               .image = std::move(image),
                               .patience = absl::Seconds(patience)}));
}

std::unique_ptr<Job> InitJob(GraphJobs& jobs, const std::string& name, bool foreground, double lease,
                             std::int64_t checkpoint_every, const std::string& on_nonfinite) {
  return Take(jobs.InitJob(
      name, {.run_type = foreground ? client::RunType::kForeground : client::RunType::kBackground,
             .lease = absl::Seconds(lease),
             .checkpoint_every = checkpoint_every,
             .on_nonfinite = graph::ParseOnNonFinite(on_nonfinite).value_or(graph::OnNonFinite::kFail)}));
}

Workers* AddWorkers(Job& job, const std::vector<std::shared_ptr<graph::Graph>>& graphs, std::string cpu,
                    std::string gpu, std::string mem, std::optional<int> least, std::optional<int> most,
                    std::optional<int> restart_limit, int threads) {
  std::vector<graph::Graph> all;
  for (const auto& graph : graphs) all.push_back(*graph);
  client::WorkersOptions options{
      .resource = {.cpu = std::move(cpu), .gpu = std::move(gpu), .memory = std::move(mem)},
      .restart_limit = restart_limit,
      .threads = threads};
  if (least || most) {
    const int begin = static_cast<int>(graphs.size());
    options.elastic = {.least = least.value_or(begin), .most = most.value_or(begin)};
  }
  return Take(job.AddWorkers(std::move(all), options));
}

// Graph, pass, step, seconds since the epoch, committed, name, dims, values.
using Value = std::tuple<std::string, std::int64_t, std::int64_t, double, bool, std::string, graph::Dims,
                         std::vector<double>>;

// Nothing: none came in time. EndOfPass: there are no more.
std::optional<Value> Next(OutputStream& outputs, double timeout) {
  absl::StatusOr<client::GraphOutput> next = outputs.Next(absl::Seconds(timeout));
  if (absl::IsDeadlineExceeded(next.status())) return std::nullopt;
  client::GraphOutput output = Take(std::move(next));
  return Value{std::move(output.graph),
               output.pass,
               output.step,
               absl::ToDoubleSeconds(output.time - absl::UnixEpoch()),
               output.committed,
               std::move(output.value.name),
               std::move(output.value.dims),
               std::move(output.value.values)};
}

using StatusTuple = std::tuple<std::string, std::string, std::string, int, int, std::int64_t>;
StatusTuple StatusOf(Job& job) {
  client::JobStatus status = Take(job.Status());
  return {std::string(client::Name(status.state)),
          std::move(status.reason),
          std::move(status.phase),
          status.trainers,
          status.pservers,
          status.steps};
}

// False: it is not over yet.
bool Wait(Job& job, double timeout) {
  absl::Status waited = job.Wait(absl::Seconds(timeout));
  if (absl::IsDeadlineExceeded(waited)) return false;
  Check(std::move(waited));
  return true;
}

}  // namespace

void AddJobs(py::module_& module) {
  py::class_<OutputStream>(module, "OutputStream").def("next", &Next, Unlocked());
  py::class_<Workers>(module, "Workers")
      .def_property_readonly("count", &Workers::count)
      .def(
          "start", [](Workers& workers) { Check(workers.Start()); }, Unlocked())
      .def(
          "get",
          [](Workers& workers, std::vector<std::string> names, bool uncommitted) {
            return Take(workers.Get(std::move(names), uncommitted));
          },
          Unlocked(), py::keep_alive<0, 1>())
      .def("scale", [](Workers& workers, int count) { Check(workers.Scale(count)); }, Unlocked());
  py::class_<Job>(module, "Job")
      .def("add_workers", &AddWorkers, py::return_value_policy::reference_internal)
      .def_property_readonly("trainers", &Job::trainers, py::return_value_policy::reference_internal)
      .def_property_readonly("pservers", &Job::pservers, py::return_value_policy::reference_internal)
      .def(
          "load",
          [](Job& job, const std::string& folder, bool allow_missing) {
            Check(job.Load(folder, allow_missing));
          },
          Unlocked())
      .def(
          "save",
          [](Job& job, const std::string& folder, std::optional<std::int64_t> step) {
            return Take(job.Save(folder, step));
          },
          Unlocked())
      .def("status", &StatusOf, Unlocked())
      .def("wait", &Wait, Unlocked())
      .def("let_go", &Job::LetGo, Unlocked())
      .def("stop", [](Job& job) { Check(job.Stop()); }, Unlocked());
  py::class_<GraphJobs>(module, "GraphJobs")
      .def(py::init(&Open), Unlocked())
      .def(
          "find", [](GraphJobs& jobs, const std::string& name) { return Take(jobs.Find(name)); }, Unlocked())
      .def(
          "kill", [](GraphJobs& jobs, const std::string& name) { Check(jobs.Kill(name)); }, Unlocked())
      .def("init_job", &InitJob, Unlocked(), py::keep_alive<0, 1>())
      .def(
          "attach", [](GraphJobs& jobs, const std::string& name) { return Take(jobs.Attach(name)); },
          Unlocked(), py::keep_alive<0, 1>());
}

}  // namespace trainyard::python
