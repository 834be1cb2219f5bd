// What a job's graphs are made of, in the store, and graphs made of it: so the job can have other trainers
// and pservers while it runs.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "graph/pass/transpile.h"
#include "kv/store.h"
#include "ps/tables.h"

namespace trainyard::ps {

// Both programs and the options.
absl::Status PutOrigin(kv::Store& store, IdSource& ids, const JobKeys& keys, const graph::Origin& origin);
// NotFound: the job has none, and stays as it is. What is read is checked as graphs are.
absl::StatusOr<graph::Origin> GetOrigin(kv::Store& store, const JobKeys& keys);

// The graph as it is under the job's cut: the one that is stored, or, where that is of another cut or
// missing, one made of the origin. Whoever changes a job puts its meta and its graphs one after the other and
// may die in between; this is right at any time.
absl::StatusOr<graph::Graph> TakeGraph(kv::Store& store, const JobKeys& keys, const JobMeta& meta,
                                       std::string_view id);

}  // namespace trainyard::ps
