#include "apiserver/schema/openapi_paths.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

struct QueryParameter {
  std::string_view name;
  std::string_view type;
  std::string_view about;
};
constexpr std::array<QueryParameter, 15> kQueries = {{
    {"dryRun", "string", "All: check the request, but change nothing."},
    {"fieldManager", "string", "Who makes the change; owns the fields that it sets."},
    {"fieldValidation", "string", "What happens to unknown and repeated fields: Ignore, Warn or Strict."},
    {"force", "boolean", "Take fields over from their owners. For apply."},
    {"gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once."},
    {"orphanDependents", "boolean", "Superseded by propagationPolicy."},
    {"propagationPolicy", "string",
     "What becomes of what belongs to the object: Orphan, Background or Foreground."},
    {"allowWatchBookmarks", "boolean", "Send events that only say how far the watch has come."},
    {"continue", "string", "Where the page of the list begins."},
    {"fieldSelector", "string", "Only objects whose fields have these values."},
    {"labelSelector", "string", "Only objects that have these labels."},
    {"limit", "integer", "How many objects a page of the list has at most."},
    {"resourceVersion", "string", "How new the answer has to be, or where the watch begins."},
    {"timeoutSeconds", "integer", "When the list or watch ends."},
    {"watch", "boolean", "Go on to send what changes."},
}};

const std::vector<std::string_view> kListQueries = {"allowWatchBookmarks", "continue", "fieldSelector",
                                                    "labelSelector",       "limit",    "resourceVersion",
                                                    "timeoutSeconds",      "watch"};
const std::vector<std::string_view> kWriteQueries = {"dryRun", "fieldManager", "fieldValidation"};
const std::vector<std::string_view> kPatchQueries = {"dryRun", "fieldManager", "fieldValidation", "force"};
const std::vector<std::string_view> kDeleteQueries = {"dryRun", "gracePeriodSeconds", "orphanDependents",
                                                      "propagationPolicy"};

std::string Capitalized(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

// "CoreV1", "CoordinationV1", "ExampleComV1".
std::string GroupVersionWord(const ServedKind& kind) {
  if (kind.group.empty()) return StrCat("Core", Capitalized(kind.version));
  std::string_view group = kind.group;
  if (group.ends_with(".k8s.io")) group.remove_suffix(7);
  std::string out;
  for (const std::string_view part : Split(group, '.')) out += Capitalized(part);
  return out + Capitalized(kind.version);
}

class Builder {
 public:
  explicit Builder(const ServedKind& kind) : kind_(kind), definition_(DefinitionName(kind)) {}

  std::vector<ApiOperation> Build() {
    const std::string root = StrCat("/", GroupVersionPath(kind_.group, kind_.version));
    const std::string collection =
        StrCat(root, kind_.namespaced ? "/namespaces/{namespace}/" : "/", kind_.plural);
    if (kind_.namespaced && Has("list")) {
      Add({.path = StrCat(root, "/", kind_.plural),
           .method = "get",
           .action = "list",
           .id = "ForAllNamespaces",
           .about = "list objects of kind ",
           .answer = List(),
           .queries = kListQueries});
    }
    AddCollection(collection);
    AddObject(collection + "/{name}");
    for (const std::string& part : kind_.subresources)
      AddSubresource(StrCat(collection, "/{name}/", part), part);
    return std::move(operations_);
  }

 private:
  bool Has(std::string_view verb) const {
    return kind_.verbs.empty() || std::ranges::find(kind_.verbs, verb) != kind_.verbs.end();
  }
  std::string List() const { return definition_ + "List"; }

  // Completes what is the same for all of them. `id` is what comes behind the kind, `about` before it.
  void Add(ApiOperation operation) {
    const std::string_view spaced =
        kind_.namespaced && operation.id != "ForAllNamespaces" ? "Namespaced" : "";
    operation.id = StrCat(VerbOf(operation), GroupVersionWord(kind_), spaced, kind_.kind, operation.id);
    operation.about += kind_.kind;
    if (operation.kind.empty()) {
      operation.group = kind_.group;
      operation.version = kind_.version;
      operation.kind = kind_.kind;
    }
    operations_.push_back(std::move(operation));
  }

  static std::string_view VerbOf(const ApiOperation& operation) {
    if (operation.action == "get") return "read";
    if (operation.action == "put") return "replace";
    if (operation.action == "post") return "create";
    if (operation.action == "deletecollection") return "deleteCollection";
    return operation.action;
  }

  void AddCollection(const std::string& path) {
    if (Has("list")) {
      Add({.path = path,
           .method = "get",
           .action = "list",
           .about = "list objects of kind ",
           .answer = List(),
           .queries = kListQueries});
    }
    if (Has("create")) {
      Add({.path = path,
           .method = "post",
           .action = "post",
           .about = "create an object of kind ",
           .body = definition_,
           .answer = definition_,
           .queries = kWriteQueries});
    }
    if (Has("deletecollection")) {
      std::vector<std::string_view> queries = kDeleteQueries;
      queries.insert(queries.end(), {"fieldSelector", "labelSelector", "limit", "continue"});
      Add({.path = path,
           .method = "delete",
           .action = "deletecollection",
           .about = "delete objects of kind ",
           .body = StrCat(kMeta, "DeleteOptions"),
           .answer = StrCat(kMeta, "Status"),
           .queries = queries});
    }
  }

  void AddObject(const std::string& path) {
    if (Has("get")) {
      Add({.path = path,
           .method = "get",
           .action = "get",
           .about = "read an object of kind ",
           .answer = definition_});
    }
    if (Has("update")) {
      Add({.path = path,
           .method = "put",
           .action = "put",
           .about = "replace an object of kind ",
           .body = definition_,
           .answer = definition_,
           .queries = kWriteQueries});
    }
    if (Has("patch")) {
      Add({.path = path,
           .method = "patch",
           .action = "patch",
           .about = "change a part of an object of kind ",
           .body = StrCat(kMeta, "Patch"),
           .answer = definition_,
           .queries = kPatchQueries});
    }
    if (Has("delete")) {
      Add({.path = path,
           .method = "delete",
           .action = "delete",
           .about = "delete an object of kind ",
           .body = StrCat(kMeta, "DeleteOptions"),
           .answer = StrCat(kMeta, "Status"),
           .queries = kDeleteQueries});
    }
  }

  void AddSubresource(const std::string& path, const std::string& part) {
    const std::string id = Capitalized(part);
    const auto about = [&](std::string_view what) {
      return StrCat(what, " ", part, " of an object of kind ");
    };
    if (part == "binding" || part == "eviction" || part == "token") {
      ApiOperation operation{.path = path,
                             .method = "post",
                             .action = "post",
                             .id = id,
                             .about = about("create"),
                             .queries = {"dryRun", "fieldManager", "fieldValidation"}};
      operation.version = "v1";
      operation.group = part == "eviction" ? "policy" : part == "token" ? "authentication.k8s.io" : "";
      operation.kind = part == "eviction" ? "Eviction" : part == "token" ? "TokenRequest" : "Binding";
      operation.body = part == "eviction" ? "io.k8s.api.policy.v1.Eviction"
                       : part == "token"  ? "io.k8s.api.authentication.v1.TokenRequest"
                                          : "io.k8s.api.core.v1.Binding";
      operation.answer = operation.body;
      Add(std::move(operation));
    } else if (part == "status" || part == "scale" || part == "ephemeralcontainers" || part == "finalize") {
      AddPart(path, part, id);
    } else {
      Add({.path = path,
           .method = "get",
           .action = part == "log" ? "get" : "connect",
           .id = id,
           .about = about("read")});
    }
  }

  void AddPart(const std::string& path, const std::string& part, const std::string& id) {
    const bool scale = part == "scale";
    const std::string definition = scale ? "io.k8s.api.autoscaling.v1.Scale" : definition_;
    const auto add = [&](std::string_view method, std::string_view body,
                         std::vector<std::string_view> queries) {
      ApiOperation operation{.path = path,
                             .method = std::string(method),
                             .action = std::string(method),
                             .id = id,
                             .about = StrCat(method, " ", part, " of an object of kind "),
                             .body = std::string(body),
                             .answer = definition,
                             .queries = std::move(queries)};
      if (scale) {
        operation.group = "autoscaling";
        operation.version = "v1";
        operation.kind = "Scale";
      }
      Add(std::move(operation));
    };
    if (part != "finalize") add("get", "", {});
    add("put", definition, kWriteQueries);
    if (part != "finalize") add("patch", StrCat(kMeta, "Patch"), kPatchQueries);
  }

  const ServedKind& kind_;
  std::string definition_;
  std::vector<ApiOperation> operations_;
};

}  // namespace

std::string DefinitionName(const ServedKind& kind) {
  if (kind.schema && !kind.schema->name.empty()) return kind.schema->name;
  std::string name;
  const std::vector<std::string_view> parts = Split(std::string_view(kind.group), '.');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) StrAppend(name, *part, ".");
  return StrCat(name, kind.version, ".", kind.kind);
}

std::string GroupVersionPath(std::string_view group, std::string_view version) {
  return group.empty() ? StrCat("api/", version) : StrCat("apis/", group, "/", version);
}

std::vector<ApiOperation> OperationsOf(const ServedKind& kind) { return Builder(kind).Build(); }

std::string_view DescribeQuery(std::string_view name) {
  const auto* found = std::ranges::find(kQueries, name, &QueryParameter::name);
  return found == kQueries.end() ? "" : found->about;
}

std::string_view TypeOfQuery(std::string_view name) {
  const auto* found = std::ranges::find(kQueries, name, &QueryParameter::name);
  return found == kQueries.end() ? "string" : found->type;
}

}  // namespace trainyard::apiserver
