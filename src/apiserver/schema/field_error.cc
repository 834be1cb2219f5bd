#include "apiserver/schema/field_error.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMostShown = 400;

std::string WithDetail(std::string message, std::string_view detail) {
  if (!detail.empty()) StrAppend(message, ": ", detail);
  return message;
}

}  // namespace

void FieldPath::AppendTo(std::string& out) const {
  if (parent_ != nullptr) parent_->AppendTo(out);
  switch (step_) {
    case Step::kRoot:
      break;
    case Step::kChild:
      if (!out.empty()) out += '.';
      out += name_;
      break;
    case Step::kIndex:
      StrAppend(out, '[', index_, ']');
      break;
    case Step::kKey:
      StrAppend(out, '[', name_, ']');
      break;
  }
}

std::size_t FieldPath::Size() const {
  constexpr std::size_t kIndex = 22;  // "[", digits, "]"
  const std::size_t own = step_ == Step::kIndex ? kIndex : step_ == Step::kRoot ? 0 : name_.size() + 2;
  return own + (parent_ != nullptr ? parent_->Size() : 0);
}

std::string FieldPath::Str() const {
  std::string out;
  AppendTo(out);
  return out;
}

std::string Shown(double number) {
  if (std::trunc(number) == number && std::abs(number) < 1e15)
    return StrCat(static_cast<std::int64_t>(number));
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string Shown(const Document& value) {
  if (value.is_double()) return Shown(value.get_double());
  return Shortened(value.is_string() ? StrCat('"', Escaped(Text(value)), '"') : PrintJson(value), kMostShown);
}

void Causes::Add(const FieldPath& path, std::string_view reason, std::string message) {
  if (full()) return;
  found_.push_back({.reason = std::string(reason), .field = path.Str(), .message = std::move(message)});
}

void Causes::Required(const FieldPath& path, std::string_view detail) {
  Add(path, "FieldValueRequired", WithDetail("Required value", detail));
}

void Causes::Invalid(const FieldPath& path, const Document& value, std::string_view detail) {
  Add(path, "FieldValueInvalid", WithDetail(StrCat("Invalid value: ", Shown(value)), detail));
}

void Causes::TypeInvalid(const FieldPath& path, const Document& value, std::string_view detail) {
  Add(path, "FieldValueTypeInvalid", WithDetail(StrCat("Invalid value: ", Shown(value)), detail));
}

void Causes::NotSupported(const FieldPath& path, const Document& value,
                          const std::vector<std::string>& supported) {
  std::string list;
  for (const std::string& one : supported)
    StrAppend(list, list.empty() ? "supported values: \"" : ", \"", one, '"');
  Add(path, "FieldValueNotSupported", WithDetail(StrCat("Unsupported value: ", Shown(value)), list));
}

void Causes::Duplicate(const FieldPath& path, const Document& value) {
  Add(path, "FieldValueDuplicate", StrCat("Duplicate value: ", Shown(value)));
}

void Causes::Forbidden(const FieldPath& path, std::string_view detail) {
  Add(path, "FieldValueForbidden", WithDetail("Forbidden", detail));
}

void Causes::TooLong(const FieldPath& path, std::string_view detail) {
  Add(path, "FieldValueTooLong", WithDetail("Too long", detail));
}

void Causes::TooMany(const FieldPath& path, std::size_t count, std::int64_t most) {
  Add(path, "FieldValueTooMany", StrCat("Too many: ", count, ": must have at most ", most, " items"));
}

void Causes::NotFound(const FieldPath& path, const Document& value) {
  Add(path, "FieldValueNotFound", StrCat("Not found: ", Shown(value)));
}

void Causes::Wrong(const FieldPath& path, std::string_view detail) {
  Add(path, "FieldValueInvalid", StrCat("Invalid value: ", detail));
}

void Causes::Append(std::vector<kube::Cause> causes) {
  for (kube::Cause& cause : causes) {
    if (full()) return;
    found_.push_back(std::move(cause));
  }
}

}  // namespace trainyard::apiserver
