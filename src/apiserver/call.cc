#include "apiserver/call.h"

#include <algorithm>
#include <initializer_list>

#include "apiserver/errors.h"
#include "apiserver/schema/protobuf.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMaxManagerName = 128;
constexpr std::size_t kMaxWarning = 256;  // bytes
constexpr std::size_t kMaxWarnings = 4096;
constexpr std::string_view kReadable =
    "application/json, application/yaml, application/json;as=Table;g=meta.k8s.io;v=v1";

// "application/json;as=Table;v=v1;g=meta.k8s.io" by its parts.
struct MediaType {
  std::string_view type;
  std::string_view as;
  std::string_view group;
  std::string_view version;
};

MediaType ParseMediaType(std::string_view text) {
  MediaType media;
  bool first = true;
  for (const std::string_view raw : Split(text, ';')) {
    const std::string_view part = Trimmed(raw);
    if (first) {
      media.type = part;
    } else if (part.starts_with("as=")) {
      media.as = part.substr(3);
    } else if (part.starts_with("g=")) {
      media.group = part.substr(2);
    } else if (part.starts_with("v=")) {
      media.version = part.substr(2);
    }
    first = false;
  }
  return media;
}

}  // namespace

kube::Response Call::Head(int code) const {
  kube::Response response{.code = code};
  // As Kubernetes bounds them: clients read no more of an answer's head.
  std::size_t left = kMaxWarnings;
  for (const std::string& warning : warnings) {
    std::string shown = Shortened(Escaped(warning), kMaxWarning);
    if (shown.size() > left) break;
    left -= shown.size();
    response.headers.emplace_back("Warning", StrCat("299 - \"", shown, "\""));
  }
  return response;
}

void Call::Fail(const kube::ApiError& error) {
  kube::Response response = kube::ToResponse(error);
  for (auto& header : Head(error.code).headers) response.headers.push_back(std::move(header));
  responder->Send(std::move(response));
}

void Call::Fail(const absl::Status& status) { Fail(FromStatus(status)); }

void Call::Send(int code, std::string body) {
  kube::Response response = Head(code);
  response.body = std::move(body);
  responder->Send(std::move(response));
}

absl::StatusOr<OutputFormat> Negotiate(std::string_view accept, const Query& query) {
  OutputFormat format;
  if (const std::string_view include = query.Get("includeObject"); !include.empty()) {
    if (include != "None" && include != "Metadata" && include != "Object") {
      return kube::ToStatus(BadRequest("includeObject must be None, Metadata or Object"));
    }
    format.include_object = include;
  }
  if (accept.empty()) return format;
  for (const std::string_view choice : Split(accept, ',')) {
    const MediaType media = ParseMediaType(Trimmed(choice));
    const bool json =
        media.type == "application/json" || media.type == "*/*" || media.type == "application/*";
    if (!json) continue;
    if (media.as.empty()) return format;
    if (media.group != "meta.k8s.io" || (media.version != "v1" && media.version != "v1beta1")) continue;
    format.version = media.version;
    if (media.as == "Table") {
      format.kind = OutputFormat::Kind::kTable;
      return format;
    }
    if (media.as == "PartialObjectMetadata" || media.as == "PartialObjectMetadataList") {
      format.kind = OutputFormat::Kind::kMetadata;
      return format;
    }
  }
  return kube::ToStatus(NotAcceptable(kReadable));
}

absl::StatusOr<Document> DecodeBody(const kube::Request& request) {
  const std::string_view type = ParseMediaType(request.content_type).type;
  if (type.empty() || type == "application/json" || type.ends_with("+json")) return ParseJson(request.body);
  if (type == "application/vnd.kubernetes.protobuf") {
    auto decoded = DecodeProtobuf(request.body);
    if (!absl::IsUnimplemented(decoded.status())) return decoded;
    return kube::ToStatus(kube::ApiError{
        .code = 415, .reason = "UnsupportedMediaType", .message = std::string(Message(decoded.status()))});
  }
  if (type != "application/yaml" && !type.ends_with("+yaml")) {
    return kube::ToStatus(UnsupportedMediaType(
        type, "application/json, application/yaml, application/vnd.kubernetes.protobuf"));
  }
  TY_ASSIGN_OR_RETURN(std::vector<Document> documents, ParseJsonOrYaml(request.body));
  if (documents.size() != 1) {
    return absl::InvalidArgumentError(StrCat("the body must be one document, not ", documents.size()));
  }
  return std::move(documents.front());
}

std::string ManagerName(const Call& call) {
  std::string_view name = call.query().Get("fieldManager");
  if (name.empty()) {
    name = call.in.user_agent;
    name = name.substr(0, name.find('/'));
  }
  std::string printable;
  for (const char c : name.substr(0, kMaxManagerName)) {
    if (c >= ' ' && c <= '~') printable += c;
  }
  return printable.empty() ? "unknown" : printable;
}

absl::Status CheckParameters(const Query& query) {
  const auto one_of = [&query](std::string_view name, std::initializer_list<std::string_view> allowed) {
    if (!query.Has(name) || std::ranges::find(allowed, query.Get(name)) != allowed.end())
      return absl::OkStatus();
    std::string list;
    for (const std::string_view value : allowed)
      StrAppend(list, list.empty() || value.empty() ? "" : ", ", value);
    return kube::ToStatus(BadRequest(StrCat(name, " is '", Escaped(query.Get(name)), "'; it can be ", list)));
  };
  TY_RETURN_IF_ERROR(one_of("dryRun", {"All"}));
  for (const std::string_view flag : {"force", "watch", "sendInitialEvents", "allowWatchBookmarks", "follow",
                                      "previous", "timestamps", "orphanDependents"}) {
    TY_RETURN_IF_ERROR(one_of(flag, {"", "true", "false", "True", "False", "1", "0"}));
  }
  TY_RETURN_IF_ERROR(one_of("fieldValidation", {"", "Ignore", "Warn", "Strict"}));
  const std::string_view manager = query.Get("fieldManager");
  const bool printable = std::ranges::all_of(manager, [](char c) { return c >= ' ' && c <= '~'; });
  if (manager.size() <= kMaxManagerName && printable) return absl::OkStatus();
  return kube::ToStatus(BadRequest(
      StrCat("fieldManager must be at most ", kMaxManagerName, " characters that can be printed")));
}

}  // namespace trainyard::apiserver
