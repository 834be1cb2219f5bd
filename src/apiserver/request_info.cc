#include "apiserver/request_info.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// Of a namespace itself, not of what lies in it.
bool IsNamespaceSubresource(std::string_view part) { return part == "status" || part == "finalize"; }

absl::StatusOr<Verb> VerbOf(std::string_view method, const RequestInfo& info, const Query& query) {
  const bool collection = info.name.empty();
  if (method == "GET" || method == "HEAD") {
    if (query.Flag("watch") && info.subresource.empty()) return Verb::kWatch;
    return collection ? Verb::kList : Verb::kGet;
  }
  if (method == "POST" && (collection || !info.subresource.empty())) return Verb::kCreate;
  if (method == "PUT" && !collection) return Verb::kUpdate;
  if (method == "PATCH" && !collection) return Verb::kPatch;
  if (method == "DELETE") return collection ? Verb::kDeleteCollection : Verb::kDelete;
  return kube::ToStatus(MethodNotAllowed(method, info.plural));
}

}  // namespace

std::string_view PrintVerb(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
    case Verb::kDeleteCollection:
      return "deletecollection";
  }
  return "";
}

namespace {

// What stands in a URL becomes part of objects and of answers.
absl::StatusOr<std::string> DecodedText(std::string_view escaped, bool in_query) {
  TY_ASSIGN_OR_RETURN(std::string text, kube::PercentDecoded(escaped, in_query));
  if (!IsUtf8(text) || text.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(StrCat("the URL holds what is no text: ", Escaped(text)));
  return text;
}

}  // namespace

absl::StatusOr<Query> Query::Parse(std::string_view text) {
  Query query;
  if (text.empty()) return query;
  for (const std::string_view pair : Split(text, '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    TY_ASSIGN_OR_RETURN(std::string name, DecodedText(pair.substr(0, equals), true));
    std::string value;
    if (equals != std::string_view::npos) {
      TY_ASSIGN_OR_RETURN(value, DecodedText(pair.substr(equals + 1), true));
    }
    query.Set(std::move(name), std::move(value));
  }
  return query;
}

std::string_view Query::Get(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return "";
}

bool Query::Has(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& pair) { return pair.first == name; });
}

bool Query::Flag(std::string_view name) const {
  const std::string_view value = Get(name);
  return value == "true" || value == "1" || value == "True";
}

absl::StatusOr<std::optional<std::int64_t>> Query::Number(std::string_view name) const {
  const std::string_view text = Get(name);
  if (text.empty()) return std::nullopt;
  const auto number = ParseNumber<std::int64_t>(text);
  if (!number || *number < 0) {
    return kube::ToStatus(BadRequest(StrCat(
        "the parameter ", name, " must be a whole number that is not negative, not '", Escaped(text), "'")));
  }
  return number;
}

std::vector<std::string_view> Query::All(std::string_view name) const {
  std::vector<std::string_view> all;
  for (const auto& [key, value] : values_) {
    if (key == name) all.push_back(value);
  }
  return all;
}

void Query::Set(std::string name, std::string value) {
  values_.emplace_back(std::move(name), std::move(value));
}

absl::StatusOr<ParsedTarget> ParseTarget(std::string_view target) {
  ParsedTarget parsed;
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty()) continue;
    TY_ASSIGN_OR_RETURN(std::string decoded, DecodedText(part, false));
    StrAppend(parsed.path, "/", decoded);
    parsed.parts.push_back(std::move(decoded));
  }
  if (parsed.path.empty()) parsed.path = "/";
  if (mark != std::string_view::npos) {
    TY_ASSIGN_OR_RETURN(parsed.query, Query::Parse(target.substr(mark + 1)));
  }
  return parsed;
}

absl::StatusOr<std::optional<RequestInfo>> ParseResourceRequest(std::string_view method,
                                                                const ParsedTarget& target) {
  const std::vector<std::string>& parts = target.parts;
  RequestInfo info;
  std::size_t next = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    info.version = parts[1];
    next = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    info.group = parts[1];
    info.version = parts[2];
    next = 3;
  } else {
    return std::nullopt;
  }
  if (parts[next] == "namespaces" && parts.size() > next + 2 && !IsNamespaceSubresource(parts[next + 2])) {
    info.ns = parts[next + 1];
    next += 2;
  }
  info.plural = parts[next++];
  if (next < parts.size()) info.name = parts[next++];
  if (next < parts.size()) info.subresource = parts[next++];
  if (next < parts.size()) return kube::ToStatus(NoSuchPath(target.path));
  TY_ASSIGN_OR_RETURN(info.verb, VerbOf(method, info, target.query));
  return info;
}

}  // namespace trainyard::apiserver
