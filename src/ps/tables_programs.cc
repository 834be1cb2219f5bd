#include "ps/tables_programs.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/codec.h"
#include "graph/op/check.h"
#include "kv/large_value.h"

namespace trainyard::ps {
namespace {

constexpr std::int64_t kProgramVersion = 1;

absl::StatusOr<graph::Program> ReadProgram(std::string_view bytes, std::string_view which) {
  absl::StatusOr<graph::Program> program = graph::Decode(bytes);
  if (program.ok()) program = graph::CheckProgram(*std::move(program));
  if (!program.ok()) return Annotate(program.status(), StrCat("the ", which, " program"));
  return program;
}

absl::StatusOr<graph::Programs> ReadWhole(std::string_view value,
                                          const std::function<void(ObjectReader&)>& read_head) {
  const std::size_t line = value.find('\n');
  if (line == std::string_view::npos) return absl::InvalidArgumentError("these are no programs");
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(value.substr(0, line)));
  ObjectReader reader(document);
  reader.Int("version", kProgramVersion, kProgramVersion);
  constexpr auto kMost = static_cast<std::int64_t>(graph::kMaxProgramBytes);
  const auto startup_bytes = static_cast<std::size_t>(reader.Int("startup_bytes", 0, kMost));
  const auto main_bytes = static_cast<std::size_t>(reader.Int("main_bytes", 0, kMost));
  read_head(reader);
  TY_RETURN_IF_ERROR(reader.Finish());
  const std::string_view bytes = value.substr(line + 1);
  if (bytes.size() != startup_bytes + main_bytes) {
    return absl::InvalidArgumentError(
        StrCat("its programs have ", bytes.size(), " bytes and must have ", startup_bytes + main_bytes));
  }
  graph::Programs programs;
  TY_ASSIGN_OR_RETURN(programs.startup, ReadProgram(bytes.substr(0, startup_bytes), "startup"));
  TY_ASSIGN_OR_RETURN(programs.main, ReadProgram(bytes.substr(startup_bytes), "main"));
  return programs;
}

}  // namespace

absl::Status PutPrograms(kv::Store& store, IdSource& ids, const std::string& key, const Object& head,
                         const graph::Programs& programs) {
  const std::string startup = graph::Encode(programs.startup);
  const std::string main = graph::Encode(programs.main);
  Object whole{{"version", kProgramVersion}};
  whole.insert(head.begin(), head.end());
  whole["startup_bytes"] = startup.size();
  whole["main_bytes"] = main.size();
  return kv::PutLarge(store, ids, key, StrCat(PrintJson(whole), "\n", startup, main)).status();
}

absl::StatusOr<std::optional<graph::Programs>> GetPrograms(
    kv::Store& store, const std::string& key, const std::function<void(ObjectReader&)>& read_head) {
  TY_ASSIGN_OR_RETURN(const std::optional<kv::LargeValue> stored, kv::GetLarge(store, key));
  if (!stored) return std::nullopt;
  absl::StatusOr<graph::Programs> programs = ReadWhole(stored->value, read_head);
  if (!programs.ok()) return Annotate(programs.status(), key);
  return *std::move(programs);
}

}  // namespace trainyard::ps
