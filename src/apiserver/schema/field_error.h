// Saying what is wrong with which field of an object, in the words that users of kubectl know.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "kube/error.h"

namespace trainyard::apiserver {

// Where in an object we are: "spec.containers[0].name". Linked on the stack from the inside outwards and
// printed only when something is wrong, so that walking a sound object costs no allocation. A child must not
// outlive its parent.
class FieldPath {
 public:
  FieldPath() = default;

  FieldPath Child(std::string_view name) const& { return {this, Step::kChild, name, 0}; }
  FieldPath Index(std::size_t index) const& { return {this, Step::kIndex, {}, index}; }
  // "[key]": of a map whose keys are not names of fields.
  FieldPath Key(std::string_view key) const& { return {this, Step::kKey, key, 0}; }
  FieldPath Child(std::string_view name) && = delete;
  FieldPath Index(std::size_t index) && = delete;
  FieldPath Key(std::string_view key) && = delete;

  std::string Str() const;
  // About how long Str() is, at least as long.
  std::size_t Size() const;

 private:
  enum class Step : std::uint8_t { kRoot, kChild, kIndex, kKey };
  FieldPath(const FieldPath* parent, Step step, std::string_view name, std::size_t index)
      : parent_(parent), step_(step), name_(name), index_(index) {}
  void AppendTo(std::string& out) const;

  const FieldPath* parent_ = nullptr;
  Step step_ = Step::kRoot;
  std::string_view name_;
  std::size_t index_ = 0;
};

// "x" in quotes, a number or boolean plain, anything else as JSON, cut short.
std::string Shown(const Document& value);
// As short as it can be written: 10, 0.5.
std::string Shown(double number);

// Collects causes, up to a bound.
class Causes {
 public:
  explicit Causes(std::size_t most) : most_(most) {}

  bool full() const { return found_.size() >= most_; }
  bool empty() const { return found_.empty(); }

  void Required(const FieldPath& path, std::string_view detail = "");
  void Invalid(const FieldPath& path, const Document& value, std::string_view detail);
  void TypeInvalid(const FieldPath& path, const Document& value, std::string_view detail);
  void NotSupported(const FieldPath& path, const Document& value, const std::vector<std::string>& supported);
  void Duplicate(const FieldPath& path, const Document& value);
  void Forbidden(const FieldPath& path, std::string_view detail);
  void TooLong(const FieldPath& path, std::string_view detail);
  void TooMany(const FieldPath& path, std::size_t count, std::int64_t most);
  void NotFound(const FieldPath& path, const Document& value);
  // Invalid, where the value would say nothing.
  void Wrong(const FieldPath& path, std::string_view detail);
  void Append(std::vector<kube::Cause> causes);

  std::vector<kube::Cause> Take() && { return std::move(found_); }

 private:
  void Add(const FieldPath& path, std::string_view reason, std::string message);

  std::size_t most_;
  std::vector<kube::Cause> found_;
};

}  // namespace trainyard::apiserver
