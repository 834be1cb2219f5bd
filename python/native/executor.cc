// The session for Python: arrays in, arrays out, and the interpreter's lock released in between.
#include "arrays.h"
#include "casters.h"
#include "module.h"
#include "session.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using namespace graph;

std::unique_ptr<Session> Make(int threads, bool check_finite) {
  if (threads < 1)
    Raise(absl::InvalidArgumentError(StrCat("executor: threads must be at least 1 and is ", threads)));
  return std::make_unique<Session>(ExecutorOptions{.threads = threads, .check_finite = check_finite});
}

// The arrays are the caller's, who keeps them until this has returned.
std::vector<py::array> Run(Session& session, const std::shared_ptr<Program>& program,
                           const std::vector<std::pair<std::string, py::array>>& feed,
                           const std::vector<std::string>& fetch) {
  Feeds feeds;
  for (const auto& [name, array] : feed) feeds.emplace_back(name, ViewOf(array));
  std::vector<Tensor> values = [&] {
    const py::gil_scoped_release released;
    return Take(session.Run(program, feeds, fetch));
  }();
  std::vector<py::array> arrays;
  for (Tensor& value : values) arrays.push_back(ArrayOf(std::move(value)));
  return arrays;
}

py::array Get(const Session& session, const std::string& name) {
  return ArrayOf([&] {
    const py::gil_scoped_release released;
    return Take(session.Get(name));
  }());
}

void Set(Session& session, const std::string& name, const py::array& array) {
  const ArrayView view = ViewOf(array);
  const py::gil_scoped_release released;
  Check(session.Set(name, view));
}

}  // namespace

void AddSession(py::module_& module) {
  using Released = py::call_guard<py::gil_scoped_release>;
  py::class_<Session>(module, "Session")
      .def(py::init(&Make))
      .def(
          "start",
          [](Session& session, const std::shared_ptr<Program>& startup) { Check(session.Start(*startup)); },
          Released())
      .def("run", &Run)
      .def("get", &Get)
      .def("set", &Set)
      .def("names", &Session::Names, Released())
      .def(
          "save", [](const Session& session, const std::string& folder) { Check(session.Save(folder)); },
          Released())
      .def(
          "load",
          [](Session& session, const std::string& folder, bool allow_missing) {
            Check(session.Load(folder, allow_missing));
          },
          Released());
}

}  // namespace trainyard::python
