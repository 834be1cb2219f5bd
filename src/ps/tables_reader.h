// Reads JSON objects of ours, every field of them: one that is missing, of another kind, out of bounds or
// unknown is an error that names it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/document.h"
#include "graph/ir/types.h"
#include "graph/pass/transpile.h"

namespace trainyard::ps {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMostGraphs = 100000;  // of one role
inline constexpr std::pair<std::string_view, graph::SyncMode> kSyncModes[] = {
    {"sync", graph::SyncMode::kSync}, {"async", graph::SyncMode::kAsync}};

// The first thing that is wrong is remembered; what is read after it is nothing, and Finish() tells. The
// document outlives its reader.
class ObjectReader {
 public:
  explicit ObjectReader(const Document& document);

  std::string Text(std::string_view name);
  std::int64_t Int(std::string_view name, std::int64_t least, std::int64_t most = kNoLimit);
  // Of a field that may be missing.
  std::optional<std::int64_t> OptionalInt(std::string_view name, std::int64_t least);
  bool Bool(std::string_view name);
  graph::Dims Dims(std::string_view name);
  const Array& List(std::string_view name);
  const Object& Map(std::string_view name);
  // Null: it is missing, and may be.
  const Document* Optional(std::string_view name) { return Find(name); }
  // Any value; null if it is missing.
  const Document& Any(std::string_view name);

  template <typename Value>
  Value OneOf(std::string_view name, std::span<const std::pair<std::string_view, Value>> words) {
    const std::string text = Text(name);
    for (const auto& [word, value] : words) {
      if (word == text) return value;
    }
    Fail(name, "is a word that is not known");
    return words.front().second;
  }

  // "NAME WHY", as in "step is negative".
  void Fail(std::string_view name, std::string_view why);
  // What a reader of a value within this one found.
  void Fail(std::string_view name, const absl::Status& status);
  // InvalidArgument: the first thing that was wrong, or a field that nobody asked for.
  absl::Status Finish() const;

 private:
  const Document* Find(std::string_view name);
  std::int64_t IntOf(const Document& value, std::string_view name, std::int64_t least, std::int64_t most);

  const Object* object_;
  std::set<std::string_view> asked_;
  absl::Status first_;
};

}  // namespace trainyard::ps
