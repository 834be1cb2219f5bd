// What the kv commands share: which store, and how keys and values are shown.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command.h"
#include "graph/pass/transpile.h"
#include "kv/open.h"
#include "kv/store.h"

namespace trainyard::cli {

// --store, with its default.
class StoreFlag {
 public:
  void Declare(Flags& flags);
  absl::StatusOr<std::unique_ptr<kv::Store>> Open(kv::IfMissing if_missing = kv::IfMissing::kFail) const;

 private:
  std::string url_;
};

// One object; a value that is not UTF-8 is given as value_base64 instead.
std::string ToJson(const kv::KeyValue& kv);

// A key as it is shown in a message: 'name', with what is not printable escaped.
std::string Quoted(std::string_view key);

// Writes to standard output and fails if that fails (a full disk, a reader that went away).
absl::Status Print(std::string_view text);

// ---- Values of a store as people read them: programs of graph jobs as text, all else as it is.

// The text as it is if it is one line that can be printed, else escaped.
std::string Shown(std::string_view text);

// What a graph sends to whom and receives from whom, and its programs.
std::string TextOf(const graph::Graph& graph);

// The key on a line of its own, and its value below it. Empty: it is a part of a value that is shown with its
// first key.
absl::StatusOr<std::string> TextOf(kv::Store& store, const kv::KeyValue& kv);

}  // namespace trainyard::cli
