// The part of JSONPath that printer columns and scale paths use: .a.b, ['a'], [0], [*], [?(@.type=="Ready")].
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard::apiserver {

class JsonPath {
 public:
  // With or without the leading '$' and the braces of kubectl. InvalidArgument: what is wrong and where.
  static absl::StatusOr<JsonPath> Parse(std::string_view text);

  // All that it leads to, in order.
  std::vector<const Document*> FindAll(const Document& document) const;
  // The first of them; null if there is none.
  const Document* FindFirst(const Document& document) const;

 private:
  struct Child {
    std::string key;
  };
  struct Index {
    std::ptrdiff_t index;  // from the end if negative
  };
  struct Every {};
  // Items whose value at `path` equals, or does not equal, `value`; without a value: which have it.
  struct Filter {
    std::vector<std::string> path;
    enum class Relation { kExists, kEqual, kNotEqual } relation = Relation::kExists;
    Document value;
  };
  using Step = std::variant<Child, Index, Every, Filter>;

  class Parser;
  static void Walk(const Step& step, const Document& from, std::vector<const Document*>& to);

  std::vector<Step> steps_;
};

}  // namespace trainyard::apiserver
