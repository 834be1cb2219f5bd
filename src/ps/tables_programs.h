// Two programs and a head in one large value, so that nobody reads parts of two puts:
//
//   {"version":1,...,"startup_bytes":N,"main_bytes":M}\n | startup program | main program
//
// It begins with JSON for people who look at the first chunk.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "base/ids.h"
#include "graph/build/builder.h"
#include "kv/store.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {

absl::Status PutPrograms(kv::Store& store, IdSource& ids, const std::string& key, const Object& head,
                         const graph::Programs& programs);

// None: there is no such key. `read_head` reads its own fields. What is read has passed graph::Decode() and
// graph::CheckProgram(); else it is an InvalidArgument that names the key.
absl::StatusOr<std::optional<graph::Programs>> GetPrograms(
    kv::Store& store, const std::string& key, const std::function<void(ObjectReader&)>& read_head);

}  // namespace trainyard::ps
