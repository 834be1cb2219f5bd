#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {
namespace {

bool IsMissing(const Schema& schema, const Document& value) {
  if (value.is_null()) return !schema.nullable;
  if (!schema.zero_is_missing) return false;
  return (value.is_string() && value.get_string().empty()) || (value.is_int64() && value.get_int64() == 0);
}

class Defaulter {
 public:
  explicit Defaulter(Budget& budget) : budget_(budget) {}

  void Fill(const Schema& schema, Document& value) {
    if (auto* object = value.if_object()) {
      FillObject(schema, *object);
    } else if (auto* array = value.if_array(); array != nullptr && schema.items) {
      for (Document& item : *array) {
        if (!(item.is_null() && !schema.items->nullable && PutAndFill(*schema.items, item)))
          Fill(*schema.items, item);
      }
    }
  }

 private:
  static const Schema* SchemaOf(const Schema& schema, std::string_view key) {
    const auto property = schema.properties.find(key);
    return property != schema.properties.end() ? property->second.get() : schema.additional.get();
  }

  void FillObject(const Schema& schema, Object& object) {
    bool has_missing = false;
    for (auto& member : object) {
      const Schema* below = SchemaOf(schema, Key(member));
      if (below == nullptr) continue;
      if (!member.value().is_primitive()) {
        Fill(*below, member.value());
      } else if (IsMissing(*below, member.value()) && !PutAndFill(*below, member.value())) {
        has_missing = true;
      }
    }
    if (has_missing) DropMissing(schema, object);
    for (const auto& [key, below] : schema.properties) {
      if (!below->default_value || object.contains(key)) continue;
      Document filled;
      if (PutAndFill(*below, filled)) object.emplace(key, std::move(filled));
    }
  }

  static void DropMissing(const Schema& schema, Object& object) {
    RemoveIf(object, [&](std::string_view key, const Document& value) {
      const Schema* below = SchemaOf(schema, key);
      return below != nullptr && IsMissing(*below, value);
    });
  }

  bool PutAndFill(const Schema& schema, Document& value) {
    if (!schema.default_value || budget_.overdrawn() || !budget_.Take(*schema.default_value)) return false;
    value = *schema.default_value;
    Fill(schema, value);
    return true;
  }

  Budget& budget_;
};

}  // namespace

bool ApplyDefaults(const Schema& schema, Document& value, Budget& budget) {
  Defaulter(budget).Fill(schema, value);
  return !budget.overdrawn();
}

}  // namespace trainyard::apiserver
