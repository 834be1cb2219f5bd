// Tables of rows: looking rows up by their ids, and dealing ids and rows out to the shards of a table.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/sparse.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

using Ids = absl::Span<const std::int64_t>;

constexpr std::int64_t kNoPadding = -1;

// Ids of rows of a table with `height` rows, or the padding id, which is no row.
absl::Status CheckIds(Ids ids, std::int64_t height, std::int64_t padding) {
  for (const std::int64_t id : ids) {
    if ((id < 0 || id >= height) && (id != padding || padding < 0)) {
      return absl::InvalidArgumentError(
          StrCat("id ", id, " is not a row of the table, which has ", height, " rows"));
    }
  }
  return absl::OkStatus();
}

absl::Status CopyRows(const Tensor& table, Ids ids, std::int64_t padding, Tensor& out) {
  TY_RETURN_IF_ERROR(CheckIds(ids, table.dims()[0], padding));
  const std::int64_t width = table.dims()[1];
  const float* from = table.data<float>();
  float* to = out.data<float>();
  const std::int64_t grain = kGrain / std::max<std::int64_t>(1, width) + 1;
  ParallelFor(static_cast<std::int64_t>(ids.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t id = ids[static_cast<std::size_t>(i)];
      if (id == padding) {
        std::fill_n(to + i * width, width, 0.0F);
      } else {
        std::copy_n(from + id * width, width, to + i * width);
      }
    }
  });
  return absl::OkStatus();
}

// A padding_idx below 0 stands for none.
std::int64_t PaddingOf(const Op& op) { return std::max(kNoPadding, op.Int("padding_idx", kNoPadding)); }

absl::Status Lookup(OpRun& run) {
  return CopyRows(run.In("W"), run.In("Ids").span<std::int64_t>(), PaddingOf(run.op()), run.Out("Out"));
}

TY_VECTOR void AddRow(std::int64_t width, const float* from, float* to) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < width; ++i) to[i] += from[i];
}

// The gradient's rows under their numbers; those of the padding id are left out.
void GatherGradient(Ids ids, std::int64_t padding, const Tensor& from, SparseRows& to) {
  const std::int64_t width = from.dims()[1];
  to.rows.clear();
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(to.rows),
               [&](std::int64_t id) { return id != padding; });
  to.value.Resize(DataType::kFloat32, {static_cast<std::int64_t>(to.rows.size()), width});
  float* next = to.value.data<float>();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == padding) continue;
    next = std::copy_n(from.data<float>() + static_cast<std::int64_t>(i) * width, width, next);
  }
}

absl::Status LookupGradient(OpRun& run) {
  if (!run.HasOut("W@GRAD")) return absl::OkStatus();
  const Tensor& table = run.In("W");
  const Tensor& from = run.In("Out@GRAD");
  const Ids ids = run.In("Ids").span<std::int64_t>();
  const std::int64_t width = table.dims()[1];
  const std::int64_t padding = PaddingOf(run.op());
  TY_RETURN_IF_ERROR(CheckIds(ids, table.dims()[0], padding));
  if (run.IsSparseOut("W@GRAD")) {
    GatherGradient(ids, padding, from, run.OutRows("W@GRAD"));
    return absl::OkStatus();
  }
  float* to = run.Out("W@GRAD").data<float>();
  std::fill_n(to, table.count(), 0.0F);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == padding) continue;
    AddRow(width, from.data<float>() + static_cast<std::int64_t>(i) * width, to + ids[i] * width);
  }
  return absl::OkStatus();
}

// Of a table that is elsewhere.
absl::Status LookupRowsGradient(OpRun& run) {
  const Ids ids = run.In("Ids").span<std::int64_t>();
  const Tensor& from = run.In("Out@GRAD");
  if (from.dims()[0] != static_cast<std::int64_t>(ids.size()))
    return absl::InvalidArgumentError(StrCat("there are ", from.dims()[0], " rows for ", ids.size(), " ids"));
  TY_RETURN_IF_ERROR(CheckIds(ids, run.op().Int("height"), kNoPadding));
  GatherGradient(ids, kNoPadding, from, run.OutRows("W@GRAD"));
  return absl::OkStatus();
}

absl::Status LookupInShard(OpRun& run) {
  return CopyRows(run.In("W"), run.In("Ids").span<std::int64_t>(), kNoPadding, run.Out("Out"));
}

// ---- shards: row `id` of a table is row id / count of its shard id % count

absl::Status CheckNotNegative(Ids ids) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [](std::int64_t id) { return id < 0; });
  if (bad == ids.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("id ", *bad, " is below 0"));
}

absl::Status SplitDenseIds(OpRun& run) {
  const Ids ids = run.In("Ids").span<std::int64_t>();
  TY_RETURN_IF_ERROR(CheckNotNegative(ids));
  const std::int64_t shards = run.CountOut("Out");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(shards));
  for (const std::int64_t id : ids) ++counts[static_cast<std::size_t>(id % shards)];
  std::vector<std::int64_t*> next;
  for (int shard = 0; shard < shards; ++shard) {
    Tensor& out = run.Out("Out", shard);
    out.Resize(DataType::kInt64, {counts[static_cast<std::size_t>(shard)]});
    next.push_back(out.data<std::int64_t>());
  }
  for (const std::int64_t id : ids) *next[static_cast<std::size_t>(id % shards)]++ = id / shards;
  return absl::OkStatus();
}

// Which output a row goes to, and under which number.
struct Destination {
  std::size_t part;
  std::int64_t row;
};

// Deals rows out to the variables of "Out". `find` says where each goes.
template <typename Find>
absl::Status DealRows(OpRun& run, const SparseRows& from, Find find) {
  const std::int64_t width = WidthOf(from);
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(run.CountOut("Out")));
  std::vector<Destination> places;
  places.reserve(from.rows.size());
  for (const std::int64_t row : from.rows) {
    places.push_back(find(row));
    rows[places.back().part].push_back(places.back().row);
  }
  std::vector<float*> next;
  for (std::size_t part = 0; part < rows.size(); ++part) {
    SparseRows& out = run.OutRows("Out", static_cast<int>(part));
    out.rows = std::move(rows[part]);
    Dims dims = from.value.dims();
    dims[0] = static_cast<std::int64_t>(out.rows.size());
    out.value.Resize(DataType::kFloat32, std::move(dims));
    next.push_back(out.value.data<float>());
  }
  const float* row = from.value.data<float>();
  for (const Destination& place : places) {
    next[place.part] = std::copy_n(row, width, next[place.part]);
    row += width;
  }
  return absl::OkStatus();
}

absl::Status SplitIds(OpRun& run) {
  if (!run.IsSparse("Ids")) return SplitDenseIds(run);
  const SparseRows& from = run.InRows("Ids");
  TY_RETURN_IF_ERROR(CheckRows(from));
  const std::int64_t shards = run.CountOut("Out");
  return DealRows(run, from, [shards](std::int64_t row) {
    return Destination{.part = static_cast<std::size_t>(row % shards), .row = row / shards};
  });
}

// Sections lie one after the other.
absl::Status SplitSelectedRows(OpRun& run) {
  const SparseRows& from = run.InRows("X");
  TY_RETURN_IF_ERROR(CheckRows(from));
  std::vector<std::int64_t> ends;
  for (const std::int64_t section : run.op().IntList("height_sections"))
    ends.push_back((ends.empty() ? 0 : ends.back()) + section);
  const std::int64_t end = ends.empty() ? 0 : ends.back();
  for (const std::int64_t row : from.rows) {
    if (row >= end)
      return absl::InvalidArgumentError(StrCat("row ", row, " lies beyond the sections, which end at ", end));
  }
  return DealRows(run, from, [&](std::int64_t row) {
    const auto part =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), row) - ends.begin());
    return Destination{.part = part, .row = part == 0 ? row : row - ends[part - 1]};
  });
}

// One shard's rows, taken in order.
struct Taken {
  const float* next;
  std::int64_t left;
};

// Each shard's rows are in the order in which its ids appear among Ids, an id that comes twice included.
absl::Status MergeIds(OpRun& run) {
  const Ids ids = run.In("Ids").span<std::int64_t>();
  TY_RETURN_IF_ERROR(CheckNotNegative(ids));
  const std::int64_t width = run.Out("Out").dims()[1];
  const std::int64_t count = run.CountIn("X");
  std::vector<Taken> shards;
  for (int i = 0; i < count; ++i) {
    const Tensor& rows = run.In("X", i);
    if (rows.dims().rank() != 2 || rows.dims()[1] != width) {
      return absl::InvalidArgumentError(
          StrCat("the rows of shard ", i, " are ", Print(rows.dims()), " and must be ", width, " wide"));
    }
    shards.push_back({.next = rows.data<float>(), .left = rows.dims()[0]});
  }
  const auto wrong = [&](std::size_t shard) {
    const auto wanted = std::count_if(ids.begin(), ids.end(), [&](std::int64_t id) {
      return id % count == static_cast<std::int64_t>(shard);
    });
    return absl::InvalidArgumentError(StrCat("shard ", shard, " has ",
                                             run.In("X", static_cast<int>(shard)).dims()[0], " rows for ",
                                             wanted, " ids"));
  };
  float* out = run.Out("Out").data<float>();
  for (const std::int64_t id : ids) {
    const auto at = static_cast<std::size_t>(id % count);
    Taken& shard = shards[at];
    if (shard.left-- == 0) return wrong(at);
    out = std::copy_n(shard.next, width, out);
    shard.next += width;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].left != 0) return wrong(i);
  }
  return absl::OkStatus();
}

}  // namespace

void AddLookupKernels(KernelTable& table) {
  table.Add("lookup_table", Lookup);
  table.Add("lookup_table_grad", LookupGradient);
  table.Add("lookup_rows_grad", LookupRowsGradient);
  table.Add("lookup_sparse_table", LookupInShard);
  table.Add("split_ids", SplitIds);
  table.Add("merge_ids", MergeIds);
  table.Add("split_selected_rows", SplitSelectedRows);
}

}  // namespace trainyard::graph
