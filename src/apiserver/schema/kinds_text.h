// The notation of kinds files as it is written: lines and their words, not yet resolved. See kind_table.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/schema/kind_table.h"
#include "base/document.h"

namespace trainyard::apiserver {

struct FieldText {
  int line = 0;
  std::string name;
  std::string type;  // "[]Container"
  WirePath wire;
  bool zero_counts = false;
  bool required = false;
  std::vector<std::string> keys;
  bool nomerge = false;
  bool set = false;
  bool atomic = false;
  bool retain_keys = false;
  bool nullable = false;
  std::optional<Document> default_value;
  bool zero_is_missing = false;
  std::vector<std::string> one_of;
  std::optional<double> minimum;
  std::optional<double> maximum;
  std::string pattern;
  std::string description;
};

struct TypeText {
  std::string_view file;
  int line = 0;
  std::string package;
  std::string name;
  std::string like;
  WirePath like_wire;
  bool atomic = false;
  bool keep = false;
  std::string description;
  std::optional<KindInfo> kind;  // of a `kind`; without its schema
  std::vector<FieldText> fields;
};

// InvalidArgument: "pod.kinds:12: what is wrong".
absl::StatusOr<std::vector<TypeText>> ParseKindsText(const KindsFile& file);

// That error.
absl::Status KindsError(std::string_view file, int line, std::string_view what);

}  // namespace trainyard::apiserver
