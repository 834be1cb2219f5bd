// The OpenAPI documents of a server: what `kubectl explain` shows, and what kubectl checks manifests against
// before it sends them. Pure functions of the kinds that are served; the caller keeps their results until the
// kinds change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {

// One collection that the server has.
struct ServedKind {
  std::string group;
  std::string version;
  std::string kind;
  std::string list_kind;  // kind + "List", if empty
  std::string plural;
  bool namespaced = true;
  SchemaPtr schema;
  std::vector<std::string> verbs;  // get, list, create, update, patch, delete, deletecollection; empty: all
  std::vector<std::string> subresources;  // status, scale, binding, eviction, log, ...
};

// /openapi/v2 as JSON.
Document BuildOpenApiV2(const std::vector<ServedKind>& kinds);
// The same in protobuf, which kubectl before 1.27 asks for with
// "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf".
std::string EncodeOpenApiV2(const Document& document);

// One document of /openapi/v3.
struct OpenApiV3Document {
  std::string path;  // "api/v1", "apis/coordination.k8s.io/v1": served below /openapi/v3/
  std::string json;
  std::string hash;  // changes with the text
};
// One for each group and version, in the order of their paths.
std::vector<OpenApiV3Document> BuildOpenApiV3(const std::vector<ServedKind>& kinds);
// /openapi/v3 itself: where the others are. Clients keep them by these addresses, which have the hash.
std::string PrintOpenApiV3Index(const std::vector<OpenApiV3Document>& documents);

}  // namespace trainyard::apiserver
