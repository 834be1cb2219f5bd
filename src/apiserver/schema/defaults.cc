#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {
namespace {

// Defaults may stand in each item of a long list. More of them than this, printed, makes an object too large
// to store, and must not take the machine's memory before it is refused.
constexpr std::size_t kMostFilledBytes = std::size_t{8} << 20;

bool IsMissing(const Schema& schema, const Document& value) {
  if (value.is_null()) return !schema.nullable;
  if (!schema.zero_is_missing) return false;
  return (value.is_string() && value.get_string().empty()) || (value.is_int64() && value.get_int64() == 0);
}

class Defaulter {
 public:
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

  bool fits() const { return filled_ <= kMostFilledBytes; }

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
    if (!schema.default_value || !fits()) return false;
    filled_ += EstimateSize(*schema.default_value, kMostFilledBytes);
    value = *schema.default_value;
    Fill(schema, value);
    return true;
  }

  std::size_t filled_ = 0;
};

}  // namespace

bool ApplyDefaults(const Schema& schema, Document& value) {
  Defaulter defaulter;
  defaulter.Fill(schema, value);
  return defaulter.fits();
}

}  // namespace trainyard::apiserver
