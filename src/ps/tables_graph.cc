// Whole graphs in the store. One large value has all of a graph, so that nobody reads parts of two:
//
//   {"version":1,"id":"trainer-0",...,"startup_bytes":N,"main_bytes":M}\n | startup program | main program
//
// It begins with JSON for people who look at the first chunk.
#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"
#include "graph/ir/validate.h"
#include "graph/op/check.h"
#include "kv/large_value.h"
#include "ps/tables.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {
namespace {

using graph::GraphRole;
using Names = std::map<std::string, std::string>;

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kPage = 1000;  // keys of one answer

constexpr std::pair<std::string_view, GraphRole> kRoles[] = {{"trainer", GraphRole::kTrainer},
                                                             {"pserver", GraphRole::kPserver}};
constexpr std::pair<std::string_view, graph::SyncMode> kModes[] = {{"sync", graph::SyncMode::kSync},
                                                                   {"async", graph::SyncMode::kAsync}};

struct GraphName {
  GraphRole role = GraphRole::kTrainer;
  int index = 0;
  auto operator<=>(const GraphName&) const = default;
};

std::optional<GraphName> ParseGraphId(std::string_view id) {
  for (const auto& [word, role] : kRoles) {
    if (!id.starts_with(word)) continue;
    const auto index = ParseNumber<int>(id.substr(std::min(id.size(), word.size() + 1)));
    if (index && *index >= 0 && graph::GraphId(role, *index) == id) return GraphName{role, *index};
  }
  return std::nullopt;
}

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

std::string PrintHead(const graph::Graph& graph, std::size_t startup_bytes, std::size_t main_bytes) {
  return PrintJson(
      Object{{"version", kVersion},
             {"id", graph.id},
             {"role", Name(graph.role)},
             {"index", graph.index},
             {"mode", Name(graph.mode)},
             {"resource",
              {{"cpu", graph.resource.cpu}, {"gpu", graph.resource.gpu}, {"memory", graph.resource.memory}}},
             {"send_var_graph_map", ToJson(graph.send_var_graph_map)},
             {"recv_var_graph_map", ToJson(graph.recv_var_graph_map)},
             {"startup_bytes", startup_bytes},
             {"main_bytes", main_bytes}});
}

struct Head {
  graph::Graph graph;  // without its programs
  std::size_t startup_bytes = 0;
  std::size_t main_bytes = 0;
};

absl::StatusOr<Head> ReadHead(std::string_view text) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(text));
  ObjectReader reader(document);
  reader.Int("version", kVersion, kVersion);
  Head head;
  head.graph.id = reader.Text("id");
  head.graph.role = reader.OneOf<GraphRole>("role", kRoles);
  head.graph.index = static_cast<int>(reader.Int("index", 0, INT32_MAX));
  head.graph.mode = reader.OneOf<graph::SyncMode>("mode", kModes);
  head.graph.resource = ReadResource(reader, "resource");
  head.graph.send_var_graph_map = ReadNames(reader, "send_var_graph_map");
  head.graph.recv_var_graph_map = ReadNames(reader, "recv_var_graph_map");
  constexpr auto kMost = static_cast<std::int64_t>(graph::kMaxProgramBytes);
  head.startup_bytes = static_cast<std::size_t>(reader.Int("startup_bytes", 0, kMost));
  head.main_bytes = static_cast<std::size_t>(reader.Int("main_bytes", 0, kMost));
  if (graph::GraphId(head.graph.role, head.graph.index) != head.graph.id) {
    reader.Fail("id", "is not that of its role and index");
  }
  TY_RETURN_IF_ERROR(reader.Finish());
  return head;
}

absl::StatusOr<graph::Program> ReadProgram(std::string_view bytes, std::string_view which) {
  absl::StatusOr<graph::Program> program = graph::Decode(bytes);
  if (program.ok()) program = graph::CheckProgram(*std::move(program));
  if (!program.ok()) return Annotate(program.status(), StrCat("the ", which, " program"));
  return program;
}

absl::StatusOr<graph::Graph> ReadGraph(std::string_view value, std::string_view id) {
  const std::size_t line = value.find('\n');
  if (line == std::string_view::npos) return absl::InvalidArgumentError("it is no graph");
  TY_ASSIGN_OR_RETURN(Head head, ReadHead(value.substr(0, line)));
  if (head.graph.id != id) return absl::InvalidArgumentError(StrCat("it is the graph ", head.graph.id));
  const std::string_view programs = value.substr(line + 1);
  if (programs.size() != head.startup_bytes + head.main_bytes) {
    return absl::InvalidArgumentError(StrCat("its programs have ", programs.size(), " bytes and must have ",
                                             head.startup_bytes + head.main_bytes));
  }
  TY_ASSIGN_OR_RETURN(head.graph.startup, ReadProgram(programs.substr(0, head.startup_bytes), "startup"));
  TY_ASSIGN_OR_RETURN(head.graph.main, ReadProgram(programs.substr(head.startup_bytes), "main"));
  return std::move(head.graph);
}

}  // namespace

absl::Status PutGraph(kv::Store& store, IdSource& ids, const JobKeys& keys, const graph::Graph& graph) {
  if (graph::GraphId(graph.role, graph.index) != graph.id) {
    return absl::InvalidArgumentError(
        StrCat("graph ", graph.id, " is called otherwise than its role and index"));
  }
  const std::string startup = graph::Encode(graph.startup);
  const std::string main = graph::Encode(graph.main);
  const std::string value = StrCat(PrintHead(graph, startup.size(), main.size()), "\n", startup, main);
  return kv::PutLarge(store, ids, keys.Desc(graph.id), value).status();
}

absl::StatusOr<graph::Graph> GetGraph(kv::Store& store, const JobKeys& keys, std::string_view id) {
  const std::string key = keys.Desc(id);
  TY_ASSIGN_OR_RETURN(const std::optional<kv::LargeValue> stored, kv::GetLarge(store, key));
  if (!stored) {
    return absl::NotFoundError(StrCat("job ", keys.job, " has no graph ", id, " in ", store.Url()));
  }
  absl::StatusOr<graph::Graph> graph = ReadGraph(stored->value, id);
  if (!graph.ok()) return Annotate(graph.status(), key);
  return graph;
}

absl::StatusOr<std::vector<std::string>> ListGraphs(kv::Store& store, const JobKeys& keys) {
  const std::string prefix = keys.Desc("");
  kv::RangeRequest request{.range = kv::KeyRange::Prefix(prefix), .limit = kPage, .keys_only = true};
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
