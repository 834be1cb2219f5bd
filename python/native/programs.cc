// Programs and graphs for Python. They do not change once they are made, so Python objects share them.
#include <map>
#include <memory>

#include "casters.h"
#include "graph/ir/codec.h"
#include "graph/ir/dump.h"
#include "graph/pass/transpile.h"
#include "module.h"
#include "ps/job.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using namespace graph;

std::shared_ptr<Program> ProgramOf(const py::bytes& bytes) {
  return std::make_shared<Program>(Take(Decode(std::string_view(bytes))));
}

// What a variable of block 0 is: its name, its type as text, whether it is persistable, whether it is learnt.
using Declared = std::tuple<std::string, std::string, bool, bool>;
std::vector<Declared> Variables(const Program& program) {
  std::vector<Declared> declared;
  for (const Var& var : program.main().vars)
    declared.emplace_back(var.name, Print(var.type), var.persistable, var.parameter);
  return declared;
}

template <typename Named>
Named Parse(std::string_view what, const std::string& word, const std::map<std::string, Named>& known) {
  if (const auto found = known.find(word); found != known.end()) return found->second;
  std::string words;
  for (const auto& [name, unused] : known) StrAppend(words, words.empty() ? "" : " or ", name);
  Raise(absl::InvalidArgumentError(StrCat("there is no ", what, " \"", Escaped(word), "\": use ", words)));
}

TranspileOptions OptionsOf(int trainers, std::int64_t passes, int pservers, const std::string& mode,
                           bool slice, std::int64_t min_block_elements, const std::string& dispatch) {
  return {.trainers = trainers,
          .passes = passes,
          .pservers = pservers,
          .mode = Parse<SyncMode>("mode", mode, {{"async", SyncMode::kAsync}, {"sync", SyncMode::kSync}}),
          .slice = slice,
          .min_block_elements = min_block_elements,
          .dispatch = Parse<Dispatch>("dispatch", dispatch,
                                      {{"hash", Dispatch::kHash}, {"round_robin", Dispatch::kRoundRobin}})};
}

using SharedGraphs = std::vector<std::shared_ptr<Graph>>;
std::pair<SharedGraphs, SharedGraphs> TranspileBoth(const Program& main, const Program& startup,
                                                    const TranspileOptions& options) {
  Graphs graphs = Take(Transpile({.startup = startup, .main = main}, options));
  Take(ps::FindRead(graphs.trainers.front()));
  const auto share = [](std::vector<Graph>& all) {
    SharedGraphs shared;
    for (Graph& graph : all) shared.push_back(std::make_shared<Graph>(std::move(graph)));
    return shared;
  };
  return {share(graphs.trainers), share(graphs.pservers)};
}

void AddGraph(py::module_& module) {
  py::class_<Graph, std::shared_ptr<Graph>>(module, "Graph")
      .def_property_readonly("id", [](const Graph& graph) { return graph.id; })
      .def_property_readonly("role", [](const Graph& graph) { return Name(graph.role); })
      .def_property_readonly("index", [](const Graph& graph) { return graph.index; })
      .def_property_readonly("mode", [](const Graph& graph) { return Name(graph.mode); })
      .def_property_readonly("send_var_graph_map",
                             [](const Graph& graph) { return graph.send_var_graph_map; })
      .def_property_readonly("recv_var_graph_map",
                             [](const Graph& graph) { return graph.recv_var_graph_map; })
      .def_property_readonly(
          "main",
          [](const std::shared_ptr<Graph>& graph) { return std::shared_ptr<Program>(graph, &graph->main); })
      .def_property_readonly("startup", [](const std::shared_ptr<Graph>& graph) {
        return std::shared_ptr<Program>(graph, &graph->startup);
      });
}

}  // namespace

void AddPrograms(py::module_& module) {
  py::class_<Program, std::shared_ptr<Program>>(module, "Program")
      .def(py::init(&ProgramOf))
      .def_property_readonly("id", [](const Program& program) { return program.id; })
      .def_property_readonly("seed", [](const Program& program) { return program.seed; })
      .def_property_readonly("variables", &Variables)
      .def("text", [](const Program& program) { return Print(program); })
      .def("bytes", [](const Program& program) { return py::bytes(Encode(program)); })
      .def("equals", [](const Program& a, const Program& b) { return a == b; })
      .def("clone_for_test",
           [](const Program& program) { return std::make_shared<Program>(CloneForTest(program)); });
  AddGraph(module);
  py::class_<TranspileOptions>(module, "TranspileOptions").def(py::init(&OptionsOf));
  module.def("transpile", &TranspileBoth);
}

}  // namespace trainyard::python
