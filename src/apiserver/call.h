// One request on its way through the API server, from its parsing to its answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/budget.h"
#include "apiserver/request_info.h"
#include "apiserver/resources.h"
#include "http/responder.h"
#include "kube/error.h"
#include "kube/http.h"

namespace trainyard::apiserver {

// How the answer is to look.
struct OutputFormat {
  enum class Kind { kObject, kTable, kMetadata };
  Kind kind = Kind::kObject;
  std::string version = "v1";               // of the Table or PartialObjectMetadata
  std::string include_object = "Metadata";  // in the rows of a Table
};

// A body or a stored object of more bytes takes long enough to decide that other requests would wait for it.
inline constexpr std::size_t kLargeBytes = std::size_t{64} << 10;

struct Call {
  http::ServerRequest in;
  ParsedTarget target;
  RequestInfo info;
  std::shared_ptr<const ResourceInfo> resource;
  const ServedVersion* version = nullptr;  // of `resource`
  OutputFormat format;
  std::vector<std::string> warnings;  // told in the answer's headers
  int attempts = 0;                   // of a write that met another one
  Budget budget;                      // of the present attempt
  bool large = false;                 // handled where it holds up nobody
  std::unique_ptr<http::Responder> responder;

  std::string ApiVersion() const { return resource->ApiVersion(version->name); }
  const Query& query() const { return target.query; }
  bool dry_run() const { return query().Has("dryRun"); }

  void Fail(const kube::ApiError& error);
  void Fail(const absl::Status& status);
  void Send(int code, std::string body);
  // Headers that every answer to this call has.
  kube::Response Head(int code) const;
};
using CallPtr = std::shared_ptr<Call>;

// What the client can read, by its Accept header; the first kind of ours that it names. NotAcceptable if
// none.
absl::StatusOr<OutputFormat> Negotiate(std::string_view accept, const Query& query);

// The body as a document: JSON, or YAML where the client says so. BadRequest with the reason, 415 for other
// types.
absl::StatusOr<Document> DecodeBody(const kube::Request& request);

// The name under which a client's changes are recorded: ?fieldManager=, or the first part of its User-Agent.
std::string ManagerName(const Call& call);

// An ApiError 400: a parameter has a value that it cannot have.
absl::Status CheckParameters(const Query& query);

}  // namespace trainyard::apiserver
