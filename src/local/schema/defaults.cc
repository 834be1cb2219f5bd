#include "local/schema/schema.h"

namespace trainyard::local {
namespace {

// Defaults may stand in each item of a long list. Past this many values nothing more is filled in: what is
// that large is refused anyway, and must not take the machine's memory before that.
constexpr std::size_t kMostValues = 4'000'000;

std::size_t CountValues(const Document& value) {
  std::size_t count = 1;
  if (const auto* array = value.if_array()) {
    for (const Document& item : *array) count += CountValues(item);
  } else if (const auto* object = value.if_object()) {
    for (const auto& member : *object) count += CountValues(member.value());
  }
  return count;
}

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
    Object kept(object.storage());
    kept.reserve(object.size());
    for (auto& member : object) {
      const Schema* below = SchemaOf(schema, Key(member));
      if (below != nullptr && IsMissing(*below, member.value())) continue;
      kept.emplace(member.key(), std::move(member.value()));
    }
    object = std::move(kept);
  }

  bool PutAndFill(const Schema& schema, Document& value) {
    if (!schema.default_value || filled_ > kMostValues) return false;
    filled_ += CountValues(*schema.default_value);
    value = *schema.default_value;
    Fill(schema, value);
    return true;
  }

  std::size_t filled_ = 0;
};

}  // namespace

void ApplyDefaults(const Schema& schema, Document& value) { Defaulter().Fill(schema, value); }

}  // namespace trainyard::local
