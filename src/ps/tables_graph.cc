// Whole graphs in the store.
#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "ps/tables.h"
#include "ps/tables_programs.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {
namespace {

using graph::GraphRole;
using Names = std::map<std::string, std::string>;

constexpr std::int64_t kGraphPage = 1000;  // keys of one answer

constexpr std::pair<std::string_view, GraphRole> kRoles[] = {{"trainer", GraphRole::kTrainer},
                                                             {"pserver", GraphRole::kPserver}};

Object ToJson(const Names& names) {
  Object object;
  for (const auto& [variable, id] : names) object[variable] = id;
  return object;
}

Names ReadNames(ObjectReader& reader, std::string_view name) {
  Names names;
  for (const auto& member : reader.Map(name)) {
    const std::string_view id = Text(member.value());
    if (!graph::IsName(Key(member)) || !ParseGraphId(id)) {
      reader.Fail(name, "has an entry that is not of a variable and a graph");
      return {};
    }
    names.emplace(Key(member), id);
  }
  return names;
}

graph::Resource ReadResource(ObjectReader& reader, std::string_view name) {
  ObjectReader inner(reader.Any(name));
  graph::Resource resource{
      .cpu = inner.Text("cpu"), .gpu = inner.Text("gpu"), .memory = inner.Text("memory")};
  reader.Fail(name, inner.Finish());
  return resource;
}

Object HeadOf(const graph::Graph& graph) {
  return {{"id", graph.id},
          {"role", Name(graph.role)},
          {"index", graph.index},
          {"mode", Name(graph.mode)},
          {"resource",
           {{"cpu", graph.resource.cpu}, {"gpu", graph.resource.gpu}, {"memory", graph.resource.memory}}},
          {"send_var_graph_map", ToJson(graph.send_var_graph_map)},
          {"recv_var_graph_map", ToJson(graph.recv_var_graph_map)},
          {"pservers", graph.cut.pservers},
          {"slots", graph.cut.slots}};
}

// All but the programs.
graph::Graph ReadHead(ObjectReader& reader, std::string_view id) {
  graph::Graph graph;
  graph.id = reader.Text("id");
  graph.role = reader.OneOf<GraphRole>("role", kRoles);
  graph.index = static_cast<int>(reader.Int("index", 0, INT32_MAX));
  graph.mode = reader.OneOf<graph::SyncMode>("mode", kSyncModes);
  graph.resource = ReadResource(reader, "resource");
  graph.send_var_graph_map = ReadNames(reader, "send_var_graph_map");
  graph.recv_var_graph_map = ReadNames(reader, "recv_var_graph_map");
  graph.cut = {.pservers = static_cast<int>(reader.Int("pservers", 1, INT32_MAX)),
               .slots = static_cast<int>(reader.Int("slots", 1, INT32_MAX))};
  if (graph::GraphId(graph.role, graph.index) != graph.id)
    reader.Fail("id", "is not that of its role and index");
  if (graph.id != id) reader.Fail("id", StrCat("is that of the graph ", Shortened(Escaped(graph.id), 64)));
  return graph;
}

}  // namespace

std::optional<GraphName> ParseGraphId(std::string_view id) {
  for (const auto& [word, role] : kRoles) {
    if (!id.starts_with(word)) continue;
    const auto index = ParseNumber<int>(id.substr(std::min(id.size(), word.size() + 1)));
    if (index && *index >= 0 && graph::GraphId(role, *index) == id) return GraphName{role, *index};
  }
  return std::nullopt;
}

absl::Status PutGraph(kv::Store& store, IdSource& ids, const JobKeys& keys, const graph::Graph& graph) {
  if (graph::GraphId(graph.role, graph.index) != graph.id) {
    return absl::InvalidArgumentError(
        StrCat("graph ", graph.id, " is called otherwise than its role and index"));
  }
  return PutPrograms(store, ids, keys.Desc(graph.id), HeadOf(graph), {graph.startup, graph.main});
}

absl::StatusOr<graph::Graph> GetGraph(kv::Store& store, const JobKeys& keys, std::string_view id) {
  graph::Graph graph;
  TY_ASSIGN_OR_RETURN(
      std::optional<graph::Programs> programs,
      GetPrograms(store, keys.Desc(id), [&](ObjectReader& reader) { graph = ReadHead(reader, id); }));
  if (!programs) {
    return absl::NotFoundError(StrCat("job ", keys.job, " has no graph ", id, " in ", store.Url()));
  }
  graph.startup = std::move(programs->startup);
  graph.main = std::move(programs->main);
  return graph;
}

absl::StatusOr<std::vector<std::string>> ListGraphs(kv::Store& store, const JobKeys& keys) {
  const std::string prefix = keys.Desc("");
  kv::RangeRequest request{.range = kv::KeyRange::Prefix(prefix), .limit = kGraphPage, .keys_only = true};
  std::vector<GraphName> names;
  while (true) {
    TY_ASSIGN_OR_RETURN(const kv::RangeResult page, store.Range(request));
    for (const kv::KeyValue& kv : page.kvs) {
      const std::string_view id = std::string_view(kv.key).substr(prefix.size());
      if (id.find('/') != std::string_view::npos) continue;  // a chunk
      const std::optional<GraphName> name = ParseGraphId(id);
      if (!name) return absl::InvalidArgumentError(StrCat(Escaped(kv.key), " is not the key of a graph"));
      names.push_back(*name);
    }
    if (!page.more) break;
    if (request.revision == 0) request.revision = page.revision;
    request.range.begin = page.kvs.back().key + '\0';
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> graphs;
  graphs.reserve(names.size());
  for (const GraphName& name : names) graphs.push_back(graph::GraphId(name.role, name.index));
  return graphs;
}

}  // namespace trainyard::ps
