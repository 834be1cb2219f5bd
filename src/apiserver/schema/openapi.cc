#include "apiserver/schema/openapi.h"

#include <map>
#include <set>

#include "apiserver/schema/kind_table.h"
#include "apiserver/schema/openapi_paths.h"
#include "apiserver/schema/print.h"
#include "base/crc32c.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kGvk = "x-kubernetes-group-version-kind";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::string_view kPatch = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

Object Gvk(std::string_view group, std::string_view version, std::string_view kind) {
  return {{"group", group}, {"kind", kind}, {"version", version}};
}

Object TextSchema(std::string_view description) { return {{"description", description}, {"type", "string"}}; }

// Builds one document: the operations of some kinds and the definitions that they lead to.
class OpenApiWriter {
 public:
  explicit OpenApiWriter(OpenApiVersion version) : version_(version), v2_(version == OpenApiVersion::kV2) {}

  void Add(const ServedKind& kind) {
    const std::string name = DefinitionName(kind);
    AddKind(name, kind);
    AddList(name, kind);
    for (const ApiOperation& operation : OperationsOf(kind)) AddOperation(operation);
  }

  Document Finish() {
    AddReferenced();
    Object document;
    if (v2_) {
      document["swagger"] = "2.0";
    } else {
      document["openapi"] = "3.0.0";
    }
    document["info"] = Object{{"title", "Kubernetes"}, {"version", "v1.30.0"}};
    document["paths"] = std::move(paths_);
    if (v2_) {
      document["definitions"] = std::move(definitions_);
    } else {
      document["components"] = Object{{"schemas", std::move(definitions_)}};
    }
    return document;
  }

 private:
  Object Reference(std::string_view name) {
    referenced_.emplace(name);
    return {{"$ref", StrCat(v2_ ? "#/definitions/" : "#/components/schemas/", name)}};
  }

  Object Print(const Schema& schema) { return SchemaPrinter(version_, &referenced_).Print(schema); }

  void AddKind(const std::string& name, const ServedKind& kind) {
    if (definitions_.contains(name)) return;
    Object definition;
    // Old kubectl takes an object for closed that has any property, even where unknown fields are kept.
    if (!kind.schema || (v2_ && kind.schema->preserve_unknown)) {
      definition["type"] = "object";
    } else {
      definition = Print(*kind.schema);
    }
    definition[kGvk] = Array{Gvk(kind.group, kind.version, kind.kind)};
    definitions_[name] = std::move(definition);
  }

  void AddList(const std::string& name, const ServedKind& kind) {
    const std::string list = kind.list_kind.empty() ? kind.kind + "List" : kind.list_kind;
    Object definition;
    definition["description"] = StrCat("A list of objects of kind ", kind.kind, ".");
    definition["type"] = "object";
    definition["required"] = Array{"items"};
    Object& properties = definition["properties"].emplace_object();
    properties["apiVersion"] = TextSchema("Group and version of the kind.");
    properties["kind"] = TextSchema("Which kind of list this is.");
    properties["metadata"] = Reference(kListMeta);
    properties["items"] =
        Object{{"description", "The objects."}, {"type", "array"}, {"items", Reference(name)}};
    definition[kGvk] = Array{Gvk(kind.group, kind.version, list)};
    definitions_[name + "List"] = std::move(definition);
  }

  void AddOperation(const ApiOperation& operation) {
    Document& slot = paths_[operation.path];
    if (!slot.is_object()) {
      slot.emplace_object();
      AddPathParameters(operation.path, slot.get_object());
    }
    Object out;
    out["description"] = operation.about;
    out["operationId"] = operation.id;
    const bool patch = operation.method == "patch";
    const Array types = patch
                            ? Array{"application/json-patch+json", "application/merge-patch+json",
                                    "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
                            : Array{"application/json", "application/yaml"};
    if (v2_) {
      out["consumes"] = types;
      out["produces"] = Array{"application/json", "application/yaml"};
      out["schemes"] = Array{"https"};
    }
    AddParameters(operation, types, out);
    AddAnswers(operation, out);
    out["x-kubernetes-action"] = operation.action;
    out[kGvk] = Gvk(operation.group, operation.version, operation.kind);
    slot.get_object()[operation.method] = std::move(out);
  }

  Object Typed(std::string_view type) const {
    Object schema{{"type", type}, {"uniqueItems", true}};
    return v2_ ? schema : Object{{"schema", std::move(schema)}};
  }

  void AddPathParameters(std::string_view path, Object& item) const {
    Array& list = item["parameters"].emplace_array();
    const auto add = [&](std::string_view name, std::string_view in, std::string_view about) {
      Object parameter = Typed("string");
      parameter["name"] = name;
      parameter["in"] = in;
      parameter["description"] = about;
      if (in == "path") parameter["required"] = true;
      list.push_back(std::move(parameter));
    };
    if (path.find("{name}") != std::string_view::npos) add("name", "path", "Name of the object.");
    if (path.find("{namespace}") != std::string_view::npos)
      add("namespace", "path", "Namespace of the object.");
    add("pretty", "query", "Print for people to read.");
  }

  void AddParameters(const ApiOperation& operation, const Array& types, Object& out) {
    Array parameters;
    const bool optional = operation.method == "delete";
    if (!operation.body.empty() && v2_) {
      Object body{{"name", "body"}, {"in", "body"}, {"schema", Reference(operation.body)}};
      if (!optional) body["required"] = true;
      parameters.push_back(std::move(body));
    }
    for (const std::string_view query : operation.queries) {
      Object parameter = Typed(TypeOfQuery(query));
      parameter["name"] = query;
      parameter["in"] = "query";
      parameter["description"] = DescribeQuery(query);
      parameters.push_back(std::move(parameter));
    }
    if (!parameters.empty()) out["parameters"] = std::move(parameters);
    if (operation.body.empty() || v2_) return;
    Object content;
    for (const Document& type : types) content[Text(type)] = Object{{"schema", Reference(operation.body)}};
    out["requestBody"] = Object{{"content", std::move(content)}};
    if (!optional) out["requestBody"].get_object()["required"] = true;
  }

  void AddAnswers(const ApiOperation& operation, Object& out) {
    Object& answers = out["responses"].emplace_object();
    const auto add = [&](std::string_view code, std::string_view about) {
      const Object schema =
          operation.answer.empty() ? Object{{"type", "string"}} : Reference(operation.answer);
      Object answer{{"description", about}};
      if (v2_) {
        answer["schema"] = schema;
      } else {
        const std::string_view type = operation.answer.empty() ? "text/plain" : "application/json";
        answer["content"] = Object{{type, Object{{"schema", schema}}}};
      }
      answers[code] = std::move(answer);
    };
    add("200", "OK");
    if (operation.method == "post" || operation.method == "put") add("201", "Created");
    answers["401"] = Object{{"description", "Unauthorized"}};
  }

  // The definitions that others refer to, and those that these refer to.
  void AddReferenced() {
    while (true) {
      std::set<std::string> names;
      names.swap(referenced_);
      bool added = false;
      for (const std::string& name : names) {
        if (definitions_.contains(name)) continue;
        added = true;
        definitions_[name] = Define(name);
      }
      if (!added) return;
    }
  }

  Object Define(const std::string& name) {
    if (name == kPatch) return {{"description", "A change of a part of an object."}, {"type", "object"}};
    const SchemaPtr schema = BuiltInKinds().FindType(name);
    if (!schema) return {{"type", "object"}};
    Object definition = Print(*schema);
    for (const KindInfo& kind : BuiltInKinds().kinds()) {
      if (kind.schema->name == name) definition[kGvk] = Array{Gvk(kind.group, kind.version, kind.kind)};
    }
    return definition;
  }

  OpenApiVersion version_;
  bool v2_;
  Object paths_;
  Object definitions_;
  std::set<std::string> referenced_;
};

}  // namespace

Document BuildOpenApiV2(const std::vector<ServedKind>& kinds) {
  OpenApiWriter writer(OpenApiVersion::kV2);
  for (const ServedKind& kind : kinds) writer.Add(kind);
  return writer.Finish();
}

std::vector<OpenApiV3Document> BuildOpenApiV3(const std::vector<ServedKind>& kinds) {
  std::map<std::string, OpenApiWriter> writers;
  for (const ServedKind& kind : kinds) {
    const std::string path = GroupVersionPath(kind.group, kind.version);
    writers.try_emplace(path, OpenApiVersion::kV3).first->second.Add(kind);
  }
  std::vector<OpenApiV3Document> documents;
  for (auto& [path, writer] : writers) {
    OpenApiV3Document document{.path = path, .json = PrintJson(writer.Finish())};
    document.hash =
        StrCat(Hex32(Crc32c(document.json)), Hex32(static_cast<std::uint32_t>(document.json.size())));
    documents.push_back(std::move(document));
  }
  return documents;
}

std::string PrintOpenApiV3Index(const std::vector<OpenApiV3Document>& documents) {
  Object paths;
  for (const OpenApiV3Document& document : documents) {
    paths[document.path] =
        Object{{"serverRelativeURL", StrCat("/openapi/v3/", document.path, "?hash=", document.hash)}};
  }
  return PrintJson(Object{{"paths", std::move(paths)}});
}

}  // namespace trainyard::apiserver
