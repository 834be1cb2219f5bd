// Choosing objects: by labels ("a=b,c in (x,y),!d") and by fields ("status.phase!=Running"). What a client
// sends, what the embedded server parses, and what both match by.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/document.h"

namespace trainyard::kube {

// The value of a label or field; null if the object has none of that key.
using Lookup = absl::FunctionRef<std::optional<std::string_view>(std::string_view key)>;

// What one label must be.
struct LabelRequirement {
  enum class Operator : std::uint8_t {
    kEquals,
    kNotEquals,
    kIn,
    kNotIn,
    kExists,
    kDoesNotExist,
    kGreaterThan,
    kLessThan,
  };
  std::string key;
  Operator op = Operator::kExists;
  // Sorted, each once. One for kEquals, kNotEquals, kGreaterThan and kLessThan; none for kExists and
  // kDoesNotExist.
  std::vector<std::string> values;

  // kNotEquals and kNotIn hold for an object without the label. kGreaterThan and kLessThan compare whole
  // numbers, and do not hold for what is none.
  bool Matches(Lookup labels) const;
  std::string Print() const;
  auto operator<=>(const LabelRequirement&) const = default;
};

// Requirements that must all hold.
class LabelSelector {
 public:
  // Matches every object.
  LabelSelector() = default;
  // Requires what cannot be, so that it also prints as a text that matches nothing.
  static LabelSelector Nothing();

  // "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b)", "a", "!a", "a>1", "a<1", with commas between; an
  // empty text matches all. InvalidArgument names the part that is wrong.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);
  // A LabelSelector object: matchLabels and matchExpressions. An empty one matches all, null matches nothing.
  // InvalidArgument names the field that is wrong.
  static absl::StatusOr<LabelSelector> FromDocument(const Document& selector);
  static absl::StatusOr<LabelSelector> FromRequirements(std::vector<LabelRequirement> requirements);

  bool Matches(Lookup labels) const;
  // Matches the labels of an object's metadata; null stands for none.
  bool Matches(const Object* labels) const;
  bool MatchesAll() const { return requirements_.empty(); }
  // In the syntax that Parse() takes, by key.
  std::string Print() const;

  const std::vector<LabelRequirement>& requirements() const { return requirements_; }
  bool operator==(const LabelSelector&) const = default;

 private:
  std::vector<LabelRequirement> requirements_;  // by key
};

// What one field must or must not be. A field that an object does not have is "".
struct FieldRequirement {
  std::string field;
  bool equal = true;
  std::string value;
  bool operator==(const FieldRequirement&) const = default;
};

// Requirements that must all hold. Which fields may be asked for is for the server to say.
class FieldSelector {
 public:
  FieldSelector() = default;
  // "metadata.name=x", "a==b", "a!=b", with commas between; in a value '\', ',' and '=' are written with a
  // '\' before them. InvalidArgument names the part that is wrong.
  static absl::StatusOr<FieldSelector> Parse(std::string_view text);

  bool Matches(Lookup fields) const;
  bool MatchesAll() const { return requirements_.empty(); }
  // The value that the field must have, if it must have one.
  std::optional<std::string_view> RequiredValue(std::string_view field) const;
  std::string Print() const;

  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  bool operator==(const FieldSelector&) const = default;

 private:
  std::vector<FieldRequirement> requirements_;
};

}  // namespace trainyard::kube
