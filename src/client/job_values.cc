// A graph job's variables from a folder and into one. They go by way of checkpoints: what an executor has is
// a layout of one graph with everything, and a job begins with that layout cut into its own.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "client/graph_job.h"
#include "graph/exec/executor.h"
#include "graph/exec/saved.h"
#include "ps/checkpoint.h"
#include "ps/lead.h"
#include "ps/origin.h"

namespace trainyard::client {
namespace {

std::vector<graph::Var> Persistables(const graph::Program& program) {
  std::vector<graph::Var> vars;
  for (const graph::Var& var : program.main().vars) {
    if (var.persistable) vars.push_back(var);
  }
  return vars;
}

// Whether a pserver has it: whatever an operator of the learning writes or reads, and parameters above all.
bool IsServed(const graph::Origin& origin, std::string_view name) {
  const std::vector<graph::Op>& ops = origin.programs.main.main().ops;
  return std::any_of(ops.begin(), ops.end(), [&](const graph::Op& op) {
    return (op.role == graph::Role::kOptimize || op.role == graph::Role::kSchedule) &&
           (op.Writes(name) || op.Reads(name));
  });
}

absl::Status Start(const graph::Programs& programs, graph::Scope& scope) {
  graph::Services services{.seed = programs.startup.seed};
  return graph::RunOnce(programs.startup, scope, services, {});
}

bool Same(const graph::Tensor& a, const graph::Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// The variables of a program as its startup and the folder give them. Those that nobody learns are no
// pserver's: each trainer gives them their initial value, and has no other.
absl::StatusOr<std::map<std::string, graph::Tensor>> ReadAll(const graph::Origin& origin,
                                                             const std::string& folder, bool allow_missing) {
  graph::Scope scope;
  TY_RETURN_IF_ERROR(Start(origin.programs, scope));
  std::map<std::string, graph::Tensor> fixed;
  for (const graph::Var& var : Persistables(origin.programs.main)) {
    const graph::Tensor* initial = scope.FindTensor(var.name);
    if (initial != nullptr && !IsServed(origin, var.name)) fixed.emplace(var.name, initial->Clone());
  }
  TY_RETURN_IF_ERROR(graph::LoadVariables(scope, folder, allow_missing));
  for (const auto& [name, initial] : fixed) {
    if (Same(*scope.FindTensor(name), initial)) continue;
    return absl::InvalidArgumentError(StrCat(
        "variable ", name, " is not learnt, so a job gives it its initial value and no other: initialise it ",
        "with the values that it is to have"));
  }
  std::map<std::string, graph::Tensor> values;
  for (const std::string& name : scope.Names()) {
    if (const graph::Tensor* tensor = scope.FindTensor(name)) values.emplace(name, tensor->Clone());
  }
  return values;
}

absl::StatusOr<ps::CheckpointData> ReadAt(const ps::GraphCheckpoints& pointers, std::int64_t step) {
  for (const ps::Checkpoint& checkpoint : pointers.kept) {
    if (checkpoint.step != step) continue;
    absl::StatusOr<ps::CheckpointData> data = ps::ReadCheckpoint(checkpoint);
    if (absl::IsNotFound(data.status()))
      return Annotate(data.status(), "this machine does not see the job's storage");
    return data;
  }
  return absl::NotFoundError(StrCat("the checkpoint of step ", step, " has just gone: try again"));
}

}  // namespace

absl::Status GraphJob::Load(const std::string& folder, bool allow_missing) {
  if (created_)
    return absl::FailedPreconditionError(
        StrCat("job ", name_, " has been started: values are loaded before that"));
  TY_RETURN_IF_ERROR(CheckComplete());
  TY_ASSIGN_OR_RETURN(const JobSettings settings, Settings());
  std::error_code unseen;
  if (!std::holds_alternative<SharedFolder>(settings.pods.storage) ||
      !std::filesystem::is_directory(MountPath(settings.pods.storage), unseen))
    return absl::FailedPreconditionError(
        StrCat("job ", name_, " keeps its checkpoints in ", Print(settings.pods.storage),
               ", which this machine does not see: values can be loaded only into a folder that it does"));
  const std::vector<graph::Graph>& pservers = PserverGraphs();
  const graph::Origin& origin = *pservers[0].origin;
  TY_ASSIGN_OR_RETURN(auto values, ReadAll(origin, folder, allow_missing));
  TY_RETURN_IF_ERROR(CreateOnce());
  TY_ASSIGN_OR_RETURN(const ps::StoredMeta stored, ps::GetMeta(store_, keys_));
  const ps::OldLayout whole{.mains = {origin.programs.main}, .data = {{.variables = std::move(values)}}};
  const std::vector<std::string> ids = ps::PserverIds(stored.meta.pservers);
  for (const graph::Graph& graph : pservers) {
    ps::CheckpointData data{.layout = stored.meta.layout};
    TY_ASSIGN_OR_RETURN(data.variables, ps::Recut(Persistables(graph.main), stored.meta.pservers, whole));
    if (graph.index == 0)
      data.extra = ps::Lead(stored.meta.mode, stored.meta.trainers, stored.meta.passes).Save();
    TY_ASSIGN_OR_RETURN(const ps::Checkpoint written,
                        ps::WriteCheckpoint(settings.checkpoints, graph.id, data));
    TY_RETURN_IF_ERROR(
        ps::PublishCheckpoint(store_, keys_, graph.id, {.checkpoint = written, .pservers = ids}));
  }
  ps::JobMeta meta = stored.meta;
  meta.rolled_back_to = 0;
  meta.rolled_back_in = meta.generation;
  return ps::PutMeta(store_, keys_, meta, stored.revision).status();
}

absl::StatusOr<std::int64_t> GraphJob::Save(const std::string& folder, std::optional<std::int64_t> wanted) {
  if (!created_)
    return absl::FailedPreconditionError(
        StrCat("job ", name_, " has not been started: there is nothing to save"));
  TY_ASSIGN_OR_RETURN(const ps::StoredMeta stored, ps::GetMeta(store_, keys_));
  const std::vector<std::string> ids = ps::PserverIds(stored.meta.pservers);
  TY_ASSIGN_OR_RETURN(const auto pointers, ps::GetCheckpoints(store_, keys_, ids));
  const absl::StatusOr<std::int64_t> step = ps::ChooseStepToSave(stored.meta, pointers, wanted);
  if (!step.ok()) return Annotate(step.status(), StrCat("job ", name_));
  ps::OldLayout old;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    TY_ASSIGN_OR_RETURN(ps::CheckpointData data, ReadAt(pointers[i], *step));
    TY_ASSIGN_OR_RETURN(graph::Graph graph, ps::TakeGraph(store_, keys_, stored.meta, ids[i]));
    old.data.push_back(std::move(data));
    old.mains.push_back(std::move(graph.main));
  }
  TY_ASSIGN_OR_RETURN(const graph::Origin origin, ps::GetOrigin(store_, keys_));
  graph::Scope scope;
  TY_RETURN_IF_ERROR(Start(origin.programs, scope));
  std::vector<graph::Var> served = Persistables(origin.programs.main);
  std::erase_if(served, [&](const graph::Var& var) { return !IsServed(origin, var.name); });
  TY_ASSIGN_OR_RETURN(auto values, ps::Recut(served, 1, old));
  for (auto& [name, tensor] : values) scope.Put(name, std::move(tensor));
  TY_RETURN_IF_ERROR(graph::SaveVariables(scope, folder));
  return *step;
}

}  // namespace trainyard::client
