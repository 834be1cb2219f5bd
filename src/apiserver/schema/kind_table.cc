#include "apiserver/schema/kind_table.h"

#include <algorithm>
#include <array>
#include <set>

#include "apiserver/schema/kinds_text.h"
#include "apiserver/schema/structural.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "embedded/kinds.h"

namespace trainyard::apiserver {
namespace {

struct Scalar {
  std::string_view word;  // in kinds files
  SchemaType type;
  std::string_view format;
  std::string_view name;  // in OpenAPI, if it has one there
  std::string_view description;
};
constexpr std::array<Scalar, 13> kScalars = {{
    {"string", SchemaType::kString, "", "", ""},
    {"bool", SchemaType::kBoolean, "", "", ""},
    {"int32", SchemaType::kInteger, "int32", "", ""},
    {"int64", SchemaType::kInteger, "int64", "", ""},
    {"number", SchemaType::kNumber, "double", "", ""},
    {"bytes", SchemaType::kString, "byte", "", ""},
    {"object", SchemaType::kObject, "", "", ""},
    {"any", SchemaType::kAny, "", "", ""},
    {"time", SchemaType::kString, "date-time", "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
     "A point of time as in RFC 3339, to the second."},
    {"microtime", SchemaType::kString, "date-time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
     "A point of time as in RFC 3339, to the microsecond."},
    {"quantity", SchemaType::kString, "quantity", "io.k8s.apimachinery.pkg.api.resource.Quantity",
     "An amount: a number with a unit, as 100m, 2, 1.5Gi or 3e6."},
    {"int-or-string", SchemaType::kIntOrString, "int-or-string",
     "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "A number, or a text such as the name of a port."},
    {"raw", SchemaType::kObject, "", "io.k8s.apimachinery.pkg.runtime.RawExtension",
     "An object of any kind."},
}};

std::shared_ptr<Schema> ToSchema(const Scalar& scalar) {
  auto schema = std::make_shared<Schema>();
  schema->type = scalar.type;
  schema->format = scalar.format;
  schema->name = scalar.name;
  schema->description = scalar.description;
  schema->preserve_unknown = scalar.type == SchemaType::kObject || scalar.type == SchemaType::kAny;
  return schema;
}

// Turns the texts of all files into schemas, each type once.
class Resolver {
 public:
  using Types = std::map<std::string, SchemaPtr, std::less<>>;

  absl::Status Add(std::vector<TypeText> texts) {
    for (TypeText& text : texts) {
      const std::string name = StrCat(text.package, ".", text.name);
      const auto [at, added] = texts_.emplace(name, std::move(text));
      if (!added) {
        return KindsError(at->second.file, at->second.line,
                          StrCat("'", name, "' is described a second time elsewhere"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<KindInfo>> Resolve() {
    for (const Scalar& scalar : kScalars) {
      if (!scalar.name.empty()) types_[std::string(scalar.name)] = ToSchema(scalar);
    }
    std::vector<KindInfo> kinds;
    for (const auto& [name, text] : texts_) {
      TY_ASSIGN_OR_RETURN(const SchemaPtr schema, Build(name, text));
      if (!text.kind) continue;
      kinds.push_back(*text.kind);
      kinds.back().schema = schema;
    }
    return kinds;
  }

  Types TakeTypes() { return std::move(types_); }

 private:
  absl::StatusOr<SchemaPtr> Build(const std::string& name, const TypeText& text) {
    if (const auto built = types_.find(name); built != types_.end()) return built->second;
    auto schema = std::make_shared<Schema>();
    schema->type = SchemaType::kObject;
    schema->name = name;
    if (!building_.insert(name).second) {
      schema->recursive = true;
      schema->preserve_unknown = true;
      return schema;
    }
    schema->description = text.description;
    schema->atomic_map = text.atomic;
    schema->preserve_unknown = text.keep;
    if (!text.like.empty()) {
      TY_ASSIGN_OR_RETURN(const SchemaPtr other, FindNamed(text.like, text, text.line));
      schema->properties = other->properties;
      schema->required = other->required;
      for (WireField wire : other->wire) {
        wire.path.insert(wire.path.begin(), text.like_wire.begin(), text.like_wire.end());
        schema->wire.push_back(std::move(wire));
      }
    }
    for (const FieldText& field : text.fields) {
      TY_ASSIGN_OR_RETURN(schema->properties[field.name], BuildField(field, text));
      if (field.required) schema->required.push_back(field.name);
      if (field.wire.empty()) continue;
      if (std::ranges::find(schema->wire, field.wire, &WireField::path) != schema->wire.end())
        return KindsError(text.file, field.line,
                          StrCat("field '", field.name, "' has the number of another"));
      schema->wire.push_back({.path = field.wire, .zero_counts = field.zero_counts, .property = field.name});
    }
    building_.erase(name);
    types_[name] = schema;
    return schema;
  }

  // Within its own package first, then wherever only one has the name.
  absl::StatusOr<SchemaPtr> FindNamed(std::string_view name, const TypeText& from, int line) {
    auto found = texts_.find(StrCat(from.package, ".", name));
    if (found == texts_.end()) {
      const auto matches = [&](const auto& entry) { return entry.second.name == name; };
      found = std::find_if(texts_.begin(), texts_.end(), matches);
      if (found == texts_.end()) return KindsError(from.file, line, StrCat("there is no type '", name, "'"));
      if (std::find_if(std::next(found), texts_.end(), matches) != texts_.end())
        return KindsError(from.file, line, StrCat("more than one package has a type '", name, "'"));
    }
    return Build(found->first, found->second);
  }

  absl::StatusOr<SchemaPtr> BuildType(std::string_view type, const FieldText& field, const TypeText& text) {
    if (type.starts_with("[]") || type.starts_with("{}")) {
      auto schema = std::make_shared<Schema>();
      const bool list = type[0] == '[';
      schema->type = list ? SchemaType::kArray : SchemaType::kObject;
      TY_ASSIGN_OR_RETURN((list ? schema->items : schema->additional),
                          BuildType(type.substr(2), field, text));
      return schema;
    }
    const auto* scalar = std::ranges::find(kScalars, type, &Scalar::word);
    if (scalar == kScalars.end()) return FindNamed(type, text, field.line);
    auto schema = ToSchema(*scalar);
    TY_RETURN_IF_ERROR(Restrict(field, text, *schema));
    return schema;
  }

  // What a field says of its values; of a list, of its items' values.
  static absl::Status Restrict(const FieldText& field, const TypeText& text, Schema& schema) {
    for (const std::string& one : field.one_of) schema.one_of_values.emplace_back(one);
    schema.minimum = field.minimum;
    schema.maximum = field.maximum;
    if (field.pattern.empty()) return absl::OkStatus();
    schema.pattern = field.pattern;
    auto regex = CompilePattern(field.pattern);
    if (!regex.ok())
      return KindsError(text.file, field.line, StrCat("the pattern ", Message(regex.status())));
    schema.regex = *std::move(regex);
    return absl::OkStatus();
  }

  absl::StatusOr<SchemaPtr> BuildField(const FieldText& field, const TypeText& text) {
    TY_ASSIGN_OR_RETURN(const SchemaPtr type, BuildType(field.type, field, text));
    auto schema = std::make_shared<Schema>(*type);
    if (!field.description.empty()) schema->description = field.description;
    schema->default_value = field.default_value;
    schema->zero_is_missing = field.zero_is_missing;
    schema->nullable = field.nullable;
    schema->atomic_map = schema->atomic_map || field.atomic;
    schema->retain_keys = field.retain_keys;
    if (field.set) {
      schema->list_type = ListType::kSet;
      schema->merge_primitives = !field.nomerge;
    }
    if (!field.keys.empty()) {
      schema->list_type = ListType::kMap;
      schema->list_keys = field.keys;
      if (!field.nomerge) schema->merge_key = field.keys[0];
    }
    TY_RETURN_IF_ERROR(Check(field, text, *schema));
    return schema;
  }

  static absl::Status Check(const FieldText& field, const TypeText& text, const Schema& schema) {
    const auto wrong = [&](std::string_view what) {
      return KindsError(text.file, field.line, StrCat("field '", field.name, "': ", what));
    };
    if ((field.set || !field.keys.empty()) && schema.type != SchemaType::kArray)
      return wrong("only a list has keys or is a set");
    for (const std::string& key : field.keys) {
      if (!schema.items->properties.contains(key))
        return wrong(StrCat("its items have no field '", key, "'"));
    }
    if (!schema.default_value) return absl::OkStatus();
    Document value = *schema.default_value;
    if (const auto unknown = Prune(schema, value); !unknown.empty())
      return wrong(StrCat("the default has the unknown field ", unknown[0]));
    // What is required may be missing in it: then it is the user who has to give it.
    for (const kube::Cause& cause : Validate(schema, value)) {
      if (cause.reason != "FieldValueRequired")
        return wrong(StrCat("the default does not validate: ", cause.message));
    }
    return absl::OkStatus();
  }

  std::map<std::string, TypeText, std::less<>> texts_;  // by whole name
  Types types_;
  std::set<std::string, std::less<>> building_;
};

}  // namespace

absl::StatusOr<KindTable> KindTable::Parse(const std::vector<KindsFile>& files) {
  Resolver resolver;
  for (const KindsFile& file : files) {
    TY_ASSIGN_OR_RETURN(std::vector<TypeText> texts, ParseKindsText(file));
    TY_RETURN_IF_ERROR(resolver.Add(std::move(texts)));
  }
  KindTable table;
  TY_ASSIGN_OR_RETURN(table.kinds_, resolver.Resolve());
  table.types_ = resolver.TakeTypes();
  return table;
}

const KindInfo* KindTable::Find(std::string_view group, std::string_view version,
                                std::string_view kind) const {
  const auto found = std::ranges::find_if(kinds_, [&](const KindInfo& info) {
    return info.kind == kind && info.group == group && info.version == version;
  });
  return found == kinds_.end() ? nullptr : &*found;
}

SchemaPtr KindTable::FindType(std::string_view name) const {
  if (const auto found = types_.find(name); found != types_.end()) return found->second;
  SchemaPtr match;
  for (const auto& [whole, schema] : types_) {
    if (!whole.ends_with(name) || whole.size() == name.size() || whole[whole.size() - name.size() - 1] != '.')
      continue;
    if (match) return nullptr;
    match = schema;
  }
  return match;
}

const KindTable& BuiltInKinds() {
  // Never destroyed: schemas are used until the very end of the process.
  static const KindTable& table = *[] {
    std::vector<KindsFile> files;
    for (const embedded::File& file : embedded::kinds()) files.push_back({file.name, file.bytes});
    auto parsed = KindTable::Parse(files);
    TY_CHECK(parsed.ok(), Message(parsed.status()));
    return new KindTable(*std::move(parsed));
  }();
  return table;
}

}  // namespace trainyard::apiserver
