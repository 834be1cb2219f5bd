// Rules that parts of many kinds share.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string>

#include "apiserver/schema/rules/rules.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::apiserver {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsNameDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

std::string_view FindDataKeyProblem(std::string_view key) {
  if (key.size() > kube::kMaxDnsSubdomain) return "must be no more than 253 characters";
  if (key == "." || key.starts_with("..")) return "must not be '.' nor begin with '..'";
  const bool plain = !key.empty() && std::ranges::all_of(key, [](char c) {
    return IsNameLetter(c) || IsNameDigit(c) || c == '-' || c == '_' || c == '.';
  });
  return plain ? "" : "must be letters, digits, '-', '_' and '.'";
}

}  // namespace

std::string_view FindPortNameProblem(std::string_view name) {
  if (name.size() > 15) return "must be no more than 15 characters";
  const bool plain =
      !name.empty() && !name.starts_with('-') && !name.ends_with('-') &&
      name.find("--") == std::string_view::npos &&
      std::ranges::all_of(name, [](char c) { return IsLower(c) || IsNameDigit(c) || c == '-'; });
  if (!plain)
    return "must be lower-case letters, digits and single '-', and begin and end with a letter or digit";
  return std::ranges::any_of(name, IsLower) ? "" : "must have at least one letter";
}

std::string_view FindEnvNameProblem(std::string_view name) {
  if (name == "." || name.starts_with("..")) return "must not be '.' nor begin with '..'";
  const bool plain = !name.empty() && !IsNameDigit(name[0]) && std::ranges::all_of(name, [](char c) {
    return IsNameLetter(c) || IsNameDigit(c) || c == '-' || c == '_' || c == '.';
  });
  return plain ? "" : "must be letters, digits, '_', '-' and '.', and not begin with a digit";
}

bool IsIpAddress(std::string_view text) {
  std::array<unsigned char, 16> address{};
  const std::string copy(text.substr(0, INET6_ADDRSTRLEN));
  return text.size() < INET6_ADDRSTRLEN && (inet_pton(AF_INET, copy.c_str(), address.data()) == 1 ||
                                            inet_pton(AF_INET6, copy.c_str(), address.data()) == 1);
}

void CheckName(const Document& parent, std::string_view key, const FieldPath& path, NameProblem problem,
               Causes& causes) {
  const std::string_view name = StringAt(parent, {key});
  if (name.empty()) return;
  if (const std::string_view wrong = problem(name); !wrong.empty())
    causes.Invalid(path.Child(key), Document(name), wrong);
}

bool CheckGiven(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  if (!StringAt(parent, {key}).empty()) return true;
  causes.Required(path.Child(key));
  return false;
}

void CheckRange(const Document& parent, std::string_view key, const FieldPath& path, std::int64_t least,
                std::int64_t most, Causes& causes) {
  const auto number = IntAt(parent, {key});
  if (number && (*number < least || *number > most))
    causes.Invalid(path.Child(key), *number, StrCat("must be between ", least, " and ", most, ", inclusive"));
}

void CheckNotNegative(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const auto number = IntAt(parent, {key});
  if (number && *number < 0) causes.Invalid(path.Child(key), *number, "must be greater than or equal to 0");
}

void CheckLabels(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const Object* labels = ObjectAt(parent, {key});
  if (labels == nullptr) return;
  const FieldPath at = path.Child(key);
  for (const auto& label : *labels) {
    if (const auto wrong = kube::FindQualifiedNameProblem(Key(label)); !wrong.empty())
      causes.Invalid(at, Document(Key(label)), wrong);
    if (const auto wrong = kube::FindLabelValueProblem(Text(label.value())); !wrong.empty())
      causes.Invalid(at, label.value(), wrong);
  }
}

void CheckLabelSelector(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const Document* selector = Find(parent, {key});
  if (selector == nullptr) return;
  const FieldPath at = path.Child(key);
  CheckLabels(*selector, "matchLabels", at, causes);
  ForEachItem(*selector, "matchExpressions", at, [&](const Document& item, const FieldPath& below) {
    const std::string_view what = StringAt(item, {"operator"});
    const Array* values = ArrayAt(item, {"values"});
    const bool has_values = values != nullptr && !values->empty();
    if (what == "In" || what == "NotIn") {
      if (!has_values)
        causes.Required(below.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (what == "Exists" || what == "DoesNotExist") {
      if (has_values)
        causes.Forbidden(below.Child("values"),
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
      causes.NotSupported(below.Child("operator"), Document(what), {"In", "NotIn", "Exists", "DoesNotExist"});
    }
    if (CheckGiven(item, "key", below, causes))
      CheckName(item, "key", below, kube::FindQualifiedNameProblem, causes);
  });
}

void CheckPort(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  CheckRange(parent, key, path, 1, 65535, causes);
  CheckName(parent, key, path, FindPortNameProblem, causes);
}

void CheckDataKeys(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const Object* data = ObjectAt(parent, {key});
  if (data == nullptr) return;
  const FieldPath at = path.Child(key);
  for (const auto& member : *data) {
    if (const auto wrong = FindDataKeyProblem(Key(member)); !wrong.empty())
      causes.Invalid(at.Key(Key(member)), Document(Key(member)), wrong);
  }
}

void CheckInnerPath(const Document& parent, std::string_view key, const FieldPath& path, Causes& causes) {
  const std::string_view text = StringAt(parent, {key});
  if (text.starts_with('/')) causes.Invalid(path.Child(key), Document(text), "must be a relative path");
  if (std::ranges::count(Split(text, '/'), std::string_view("..")) > 0)
    causes.Invalid(path.Child(key), Document(text), "must not contain '..'");
}

}  // namespace trainyard::apiserver
