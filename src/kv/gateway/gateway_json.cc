#include "kv/gateway/gateway_json.h"

#include <google/protobuf/util/json_util.h>

#include "base/check.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kMaxMessage = 300;  // of what is wrong with a text: it may quote the text

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view Reason(int http_code) {
  switch (http_code) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 429:
      return "Too Many Requests";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

absl::Status ParseJson(std::string_view text, google::protobuf::Message& message) {
  message.Clear();
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  if (text.empty()) return absl::OkStatus();
  if (text.front() != '{') return absl::InvalidArgumentError("the request is no JSON object");
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &message, options);
  if (parsed.ok()) return absl::OkStatus();
  const std::string_view why(parsed.message().data(), parsed.message().size());
  return absl::InvalidArgumentError(StrCat("the request is not what it should be: ",
                                           Shortened(why.substr(0, why.find('\n')), kMaxMessage)));
}

std::string PrintJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text, options);
  TY_CHECK(printed.ok(), "every message of etcd's has a form in JSON");
  return text;
}

absl::StatusOr<std::vector<std::string_view>> SplitObjects(std::string_view text) {
  std::vector<std::string_view> objects;
  std::size_t begin = 0;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"' && depth > 0) {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) begin = i;
    } else if ((c == '}' || c == ']') && depth > 0) {
      if (--depth == 0) objects.push_back(text.substr(begin, i + 1 - begin));
    } else if (depth == 0 && !IsSpace(c)) {
      return absl::InvalidArgumentError("the request is no JSON object");
    }
  }
  if (depth > 0) return absl::InvalidArgumentError("the request ends in the middle of a JSON object");
  return objects;
}

int HttpCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kCancelled:
      return 408;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

std::string PrintError(const absl::Status& status) {
  return JsonObject()
      .Add("error", Message(status))
      .Add("message", Message(status))
      .Add("code", static_cast<std::int64_t>(status.code()))
      .Str();
}

std::string PrintStreamError(const absl::Status& status) {
  const int http_code = HttpCode(status.code());
  const std::string error = JsonObject()
                                .Add("grpc_code", static_cast<std::int64_t>(status.code()))
                                .Add("http_code", static_cast<std::int64_t>(http_code))
                                .Add("message", Message(status))
                                .Add("http_status", Reason(http_code))
                                .Str();
  return JsonObject().AddRaw("error", error).Str() + "\n";
}

}  // namespace trainyard::kv
