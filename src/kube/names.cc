#include "kube/names.h"

#include <algorithm>

namespace trainyard::kube {
namespace {

constexpr std::string_view kDns1123Label =
    "must be lower-case letters, digits and '-', and begin and end with a letter or digit";
constexpr std::string_view kDns1123Subdomain =
    "must be lower-case letters, digits, '-' and '.', and each part between dots must begin and end with a "
    "letter or digit";
constexpr std::string_view kDns1035Label =
    "must be lower-case letters, digits and '-', begin with a letter and end with a letter or digit";
constexpr std::string_view kLabelValue =
    "must be empty, or letters, digits, '-', '_' and '.', and begin and end with a letter or digit";
constexpr std::string_view kTooLong63 = "must be no more than 63 characters";
constexpr std::string_view kTooLong253 = "must be no more than 253 characters";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsLowerOrDigit(char c) { return IsLower(c) || IsDigit(c); }
bool IsLetterOrDigit(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsDnsLabel(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsPlainName(std::string_view text) {
  return !text.empty() && IsLetterOrDigit(text.front()) && IsLetterOrDigit(text.back()) &&
         std::ranges::all_of(text,
                             [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

std::string_view FindDns1123LabelProblem(std::string_view name) {
  if (name.size() > kMaxDnsLabel) return kTooLong63;
  return IsDnsLabel(name) ? "" : kDns1123Label;
}

std::string_view FindDns1123SubdomainProblem(std::string_view name) {
  if (name.size() > kMaxDnsSubdomain) return kTooLong253;
  return IsDnsSubdomain(name) ? "" : kDns1123Subdomain;
}

std::string_view FindDns1035LabelProblem(std::string_view name) {
  if (name.size() > kMaxDnsLabel) return kTooLong63;
  return IsDnsLabel(name) && IsLower(name.front()) ? "" : kDns1035Label;
}

std::string_view FindQualifiedNameProblem(std::string_view name) {
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = name.substr(0, slash);
    name.remove_prefix(slash + 1);
    if (name.find('/') != std::string_view::npos) return "must have at most one '/'";
    if (prefix.size() > kMaxDnsSubdomain) return "must have no more than 253 characters before its '/'";
    if (!IsDnsSubdomain(prefix)) return "must have a DNS subdomain such as 'example.com' before its '/'";
  }
  if (name.empty()) return "must have a name, as in 'name' or 'example.com/name'";
  if (name.size() > kMaxLabelValue) return "must have a name of no more than 63 characters";
  if (!IsPlainName(name)) {
    return "must have a name of letters, digits, '-', '_' and '.' that begins and ends with a letter or "
           "digit";
  }
  return "";
}

std::string_view FindLabelValueProblem(std::string_view value) {
  if (value.size() > kMaxLabelValue) return kTooLong63;
  return value.empty() || IsPlainName(value) ? "" : kLabelValue;
}

}  // namespace trainyard::kube
