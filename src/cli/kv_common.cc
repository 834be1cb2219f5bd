#include "cli/kv_common.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/dump.h"
#include "ps/origin.h"
#include "ps/tables.h"

namespace trainyard::cli {
namespace {

std::string DefaultUrl() {
  const char* home = std::getenv("TRAINYARD_HOME");
  return home != nullptr && *home != '\0' ? StrCat("embedded:", home, "/store")
                                          : "embedded:~/.trainyard/store";
}

constexpr std::string_view kJobs = "trainyard/jobs/";
constexpr std::string_view kChunk = "/.chunk/";

void AppendMap(std::string& out, std::string_view title, const std::map<std::string, std::string>& graphs) {
  if (graphs.empty()) return;
  StrAppend(out, title, "\n");
  for (const auto& [variable, graph] : graphs) StrAppend(out, "  ", variable, "  ", graph, "\n");
}

// The programs that a key of a graph job holds; nothing if it holds something else.
absl::StatusOr<std::optional<std::string>> ProgramsAt(kv::Store& store, std::string_view key) {
  if (!key.starts_with(kJobs)) return std::nullopt;
  const std::vector<std::string_view> parts = Split(key.substr(kJobs.size()), '/');
  if (parts.size() < 3) return std::nullopt;
  const ps::JobKeys keys{StrCat(parts[0], "/", parts[1])};
  if (key == keys.Program()) {
    TY_ASSIGN_OR_RETURN(const graph::Origin origin, ps::GetOrigin(store, keys));
    return StrCat(Print(origin.programs.startup), Print(origin.programs.main));
  }
  if (parts.size() != 4 || key != keys.Desc(parts[3])) return std::nullopt;
  TY_ASSIGN_OR_RETURN(const graph::Graph graph, ps::GetGraph(store, keys, parts[3]));
  return TextOf(graph);
}

}  // namespace

void StoreFlag::Declare(Flags& flags) {
  flags.Text({.name = "--store",
              .value = "URL",
              .help = "embedded:PATH, etcd://HOST:PORT[,HOST:PORT][?user=…&ca=…] or etcds://… "
                      "(embedded:$TRAINYARD_HOME/store)",
              .everywhere = true},
             url_);
}

absl::StatusOr<std::unique_ptr<kv::Store>> StoreFlag::Open(kv::IfMissing if_missing) const {
  auto store = kv::OpenStore(url_.empty() ? DefaultUrl() : url_, if_missing);
  return absl::IsInvalidArgument(store.status()) ? UsageError(Message(store.status())) : std::move(store);
}

std::string ToJson(const kv::KeyValue& kv) {
  JsonObject json;
  const auto add = [&](const char* name, const std::string& text) {
    if (IsUtf8(text)) {
      json.Add(name, std::string_view(text));
    } else {
      json.Add(StrCat(name, "_base64"), std::string_view(absl::Base64Escape(text)));
    }
  };
  add("key", kv.key);
  add("value", kv.value);
  json.Add("create_revision", kv.create_revision)
      .Add("mod_revision", kv.mod_revision)
      .Add("version", kv.version);
  if (kv.lease != kv::kNoLease) json.Add("lease", kv.lease);
  return json.Str();
}

std::string Quoted(std::string_view key) { return StrCat("'", Escaped(key), "'"); }

absl::Status Print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) return ErrnoStatus(errno, "cannot write to standard output");
  return absl::OkStatus();
}

std::string TextOf(const graph::Graph& graph) {
  std::string out = StrCat("graph ", graph.id, " ", Name(graph.mode));
  for (const auto& [name, amount] :
       {std::pair("cpu", &graph.resource.cpu), std::pair("gpu", &graph.resource.gpu),
        std::pair("mem", &graph.resource.memory)}) {
    if (!amount->empty()) StrAppend(out, " ", name, "=", *amount);
  }
  out += "\n";
  AppendMap(out, "sends to", graph.send_var_graph_map);
  AppendMap(out, "receives from", graph.recv_var_graph_map);
  StrAppend(out, Print(graph.startup), Print(graph.main));
  return out;
}

std::string Shown(std::string_view text) {
  const bool control =
      std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
  return control || !IsUtf8(text) ? Escaped(text) : std::string(text);
}

absl::StatusOr<std::string> TextOf(kv::Store& store, const kv::KeyValue& kv) {
  if (kv.key.starts_with(kJobs) && kv.key.find(kChunk) != std::string::npos) return std::string();
  absl::StatusOr<std::optional<std::string>> programs = ProgramsAt(store, kv.key);
  // Somebody may look at it because it is damaged.
  const std::string value = !programs.ok() ? StrCat("(", Message(programs.status()), ")\n")
                            : *programs    ? **std::move(programs)
                                           : StrCat(Shown(kv.value), "\n");
  std::string out = StrCat(Escaped(kv.key), "\n");
  for (const std::string_view line : Split(std::string_view(value), '\n')) {
    if (!line.empty()) StrAppend(out, "  ", line, "\n");
  }
  return out;
}

}  // namespace trainyard::cli
