// Values of a store as people read them: programs of graph jobs as text, all else as it is.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/pass/transpile.h"
#include "kv/store.h"

namespace trainyard::cli {

// The text as it is if it is one line that can be printed, else escaped.
std::string Shown(std::string_view text);

// What a graph sends to whom and receives from whom, and its programs.
std::string TextOf(const graph::Graph& graph);

// The key on a line of its own, and its value below it. Empty: it is a part of a value that is shown with its
// first key.
absl::StatusOr<std::string> TextOf(kv::Store& store, const kv::KeyValue& kv);

}  // namespace trainyard::cli
