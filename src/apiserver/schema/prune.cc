#include "apiserver/schema/field_error.h"
#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {
namespace {

class Pruner {
 public:
  explicit Pruner(Budget& budget) : budget_(budget) {}

  void Walk(const Schema& schema, Document& value, const FieldPath& path) {
    if (schema.recursive) return;
    // An object or array where another type is expected is a matter for validation.
    const bool any = schema.type == SchemaType::kAny;
    if (auto* object = value.if_object()) {
      if (any || schema.type == SchemaType::kObject) WalkObject(schema, *object, path);
    } else if (auto* array = value.if_array()) {
      if (!schema.items || !(any || schema.type == SchemaType::kArray)) return;
      for (std::size_t i = 0; i < array->size(); ++i) Walk(*schema.items, (*array)[i], path.Index(i));
    }
  }

  std::vector<std::string> removed;

 private:
  // A long key may stand above many unknown ones, and in the path of each.
  void Name(const FieldPath& path) {
    if (!budget_.overdrawn() && budget_.Take(path.Size())) removed.push_back(path.Str());
  }

  void WalkObject(const Schema& schema, Object& object, const FieldPath& path) {
    bool unknown = false;
    for (auto& member : object) {
      const FieldPath at = path.Child(Key(member));
      const auto property = schema.properties.find(Key(member));
      if (property != schema.properties.end()) {
        if (!member.value().is_primitive()) Walk(*property->second, member.value(), at);
      } else if (schema.additional) {
        if (!member.value().is_primitive()) Walk(*schema.additional, member.value(), at);
      } else if (!schema.preserve_unknown) {
        unknown = true;
        Name(at);
      }
    }
    if (unknown) KeepKnown(schema, object);
  }

  static void KeepKnown(const Schema& schema, Object& object) {
    Object kept(object.storage());
    kept.reserve(object.size());
    for (auto& member : object) {
      if (schema.properties.contains(Key(member))) kept.emplace(member.key(), std::move(member.value()));
    }
    object = std::move(kept);
  }

  Budget& budget_;
};

}  // namespace

std::vector<std::string> Prune(const Schema& schema, Document& value, Budget& budget) {
  Pruner pruner(budget);
  const FieldPath root;
  pruner.Walk(schema, value, root);
  return std::move(pruner.removed);
}

}  // namespace trainyard::apiserver
