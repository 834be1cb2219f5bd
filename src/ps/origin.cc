#include "ps/origin.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "ps/tables_programs.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {
namespace {

using graph::Dispatch;
using graph::SyncMode;

constexpr std::pair<std::string_view, Dispatch> kDispatches[] = {{"round_robin", Dispatch::kRoundRobin},
                                                                 {"hash", Dispatch::kHash}};

std::string_view WordOf(Dispatch dispatch) {
  return dispatch == Dispatch::kHash ? kDispatches[1].first : kDispatches[0].first;
}

graph::TranspileOptions ReadOptions(ObjectReader& reader) {
  const auto graphs = [&](std::string_view name, std::int64_t least) {
    return static_cast<int>(reader.Int(name, least, kMostGraphs));
  };
  return {.trainers = graphs("trainers", 1),
          .passes = reader.Int("passes", 1),
          .pservers = graphs("pservers", 1),
          .mode = reader.OneOf<SyncMode>("mode", kSyncModes),
          .slice = reader.Bool("slice"),
          .min_block_elements = reader.Int("min_block_elements", 1),
          .dispatch = reader.OneOf<Dispatch>("dispatch", kDispatches),
          .slots = graphs("slots", 0)};
}

}  // namespace

absl::Status PutOrigin(kv::Store& store, IdSource& ids, const JobKeys& keys, const graph::Origin& origin) {
  const graph::TranspileOptions& options = origin.options;
  const Object head{{"trainers", options.trainers},
                    {"passes", options.passes},
                    {"pservers", options.pservers},
                    {"mode", Name(options.mode)},
                    {"slice", options.slice},
                    {"min_block_elements", options.min_block_elements},
                    {"dispatch", WordOf(options.dispatch)},
                    {"slots", options.slots}};
  return PutPrograms(store, ids, keys.Program(), head, origin.programs);
}

absl::StatusOr<graph::Origin> GetOrigin(kv::Store& store, const JobKeys& keys) {
  graph::Origin origin;
  TY_ASSIGN_OR_RETURN(std::optional<graph::Programs> programs,
                      GetPrograms(store, keys.Program(),
                                  [&](ObjectReader& reader) { origin.options = ReadOptions(reader); }));
  if (!programs)
    return absl::NotFoundError(StrCat("job ", keys.job, " has no program in ", store.Url(),
                                      ": it was begun from graphs alone and keeps them"));
  origin.programs = *std::move(programs);
  return origin;
}

absl::StatusOr<graph::Graph> TakeGraph(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                       std::string_view id) {
  const std::optional<GraphName> name = ParseGraphId(id);
  if (!name) return absl::InvalidArgumentError(StrCat("\"", Shortened(Escaped(id), 64), "\" names no graph"));
  absl::StatusOr<graph::Graph> stored = GetGraph(store, keys, id);
  if (stored.ok() && stored->cut == meta.Cut()) return stored;
  if (!stored.ok() && !absl::IsNotFound(stored.status())) return stored;
  absl::StatusOr<graph::Origin> origin = GetOrigin(store, keys);
  if (absl::IsNotFound(origin.status()) && !stored.ok()) return stored;
  if (!origin.ok()) return origin.status();
  return graph::TranspileOne(*origin, meta.Cut(), name->role, name->index);
}

}  // namespace trainyard::ps
