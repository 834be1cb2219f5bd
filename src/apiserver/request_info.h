// What a request asks for, read from its method, path and query. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/http.h"

namespace trainyard::apiserver {

enum class Verb { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete, kDeleteCollection };
std::string_view PrintVerb(Verb verb);  // as discovery and messages spell it: "deletecollection"

// The query's parameters; of one that is given twice, all are kept.
class Query {
 public:
  // InvalidArgument: a percent escape that is none.
  static absl::StatusOr<Query> Parse(std::string_view text);

  std::string_view Get(std::string_view name) const;  // the first; empty if there is none
  bool Has(std::string_view name) const;
  bool Flag(std::string_view name) const;  // true, or 1
  // Nothing if it is absent; InvalidArgument, naming the parameter, if it is no number or is negative.
  absl::StatusOr<std::optional<std::int64_t>> Number(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;
  void Set(std::string name, std::string value);

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// A request for objects of a resource.
struct RequestInfo {
  Verb verb = Verb::kGet;
  std::string group;
  std::string version;
  std::string plural;
  std::string ns;    // empty: of the cluster, or of all namespaces
  std::string name;  // empty: the collection
  std::string subresource;
};

// The parts of a path: "/apis/apps/v1" gives apis, apps, v1. Empty parts are left out.
struct ParsedTarget {
  std::string path;  // decoded, as it came
  std::vector<std::string> parts;
  Query query;
};
absl::StatusOr<ParsedTarget> ParseTarget(std::string_view target);

// Nothing: the path is not of a resource (discovery, versions, health). An ApiError 405 if the method means
// nothing there.
absl::StatusOr<std::optional<RequestInfo>> ParseResourceRequest(std::string_view method,
                                                                const ParsedTarget& target);

}  // namespace trainyard::apiserver
