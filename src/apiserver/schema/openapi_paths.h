// What can be asked of a server about one kind, as the operations of an OpenAPI document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/schema/openapi.h"

namespace trainyard::apiserver {

// "#/definitions/..." of a kind: "io.k8s.api.core.v1.Pod", "com.example.v1.Foo".
std::string DefinitionName(const ServedKind& kind);
// "api/v1", "apis/coordination.k8s.io/v1".
std::string GroupVersionPath(std::string_view group, std::string_view version);

struct ApiOperation {
  std::string path;    // "/api/v1/namespaces/{namespace}/pods/{name}"
  std::string method;  // "get"
  std::string action;  // "list": x-kubernetes-action
  std::string id;      // "listCoreV1NamespacedPod"
  std::string about;   // a line of text
  std::string body;    // definition that is sent; empty: none
  std::string answer;  // definition that comes back; empty: a text
  std::string group;   // of what it deals with
  std::string version;
  std::string kind;
  std::vector<std::string_view> queries;  // names of parameters of the query
};

std::vector<ApiOperation> OperationsOf(const ServedKind& kind);

// What a parameter is for.
std::string_view DescribeQuery(std::string_view name);
// Its JSON type.
std::string_view TypeOfQuery(std::string_view name);

}  // namespace trainyard::apiserver
