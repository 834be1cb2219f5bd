#include <cmath>
#include <unordered_set>

#include "apiserver/schema/field_error.h"
#include "apiserver/schema/formats.h"
#include "apiserver/schema/schema.h"
#include "base/text.h"
#include "kube/quantity.h"
#include "re2/re2.h"

namespace trainyard::apiserver {

std::string_view TypeName(SchemaType type) {
  switch (type) {
    case SchemaType::kAny:
      return "any";
    case SchemaType::kObject:
      return "object";
    case SchemaType::kArray:
      return "array";
    case SchemaType::kString:
      return "string";
    case SchemaType::kInteger:
      return "integer";
    case SchemaType::kNumber:
      return "number";
    case SchemaType::kBoolean:
      return "boolean";
    case SchemaType::kIntOrString:
      return "integer,string";
  }
  return "";
}

namespace {

std::string_view TypeName(const Document& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "";
}

// 3.0 is a whole number, as in JSON Schema.
bool IsInteger(const Document& value) {
  return value.is_int64() || value.is_uint64() ||
         (value.is_double() && std::trunc(value.get_double()) == value.get_double());
}

double ToDouble(const Document& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return value.get_double();
}

bool IsOfType(SchemaType type, const Document& value) {
  switch (type) {
    case SchemaType::kAny:
      return true;
    case SchemaType::kObject:
      return value.is_object();
    case SchemaType::kArray:
      return value.is_array();
    case SchemaType::kString:
      return value.is_string();
    case SchemaType::kInteger:
      return IsInteger(value);
    case SchemaType::kNumber:
      return value.is_number();
    case SchemaType::kBoolean:
      return value.is_bool();
    case SchemaType::kIntOrString:
      return value.is_string() || IsInteger(value);
  }
  return false;
}

bool FitsIn(std::string_view format, const Document& value) {
  if (format == "quantity") return kube::Quantity::Parse(PrintJson(value)).ok();
  if (format == "int32" || format == "int-or-string") return std::abs(ToDouble(value) + 0.5) <= 2147483648.0;
  if (format == "int64") return value.is_int64() || std::abs(ToDouble(value)) < 9223372036854775808.0;
  return true;
}

bool IsSame(const Document& a, const Document& b) {
  if (a.is_number() && b.is_number()) return a == b || ToDouble(a) == ToDouble(b);
  return a == b;
}

// As JSON Schema counts: characters, not bytes.
std::int64_t CountCharacters(std::string_view text) {
  std::int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

// The same text for the same value, whatever the order of its keys.
std::string Canonical(const Document& value) {
  const auto* object = value.if_object();
  if (object == nullptr) return PrintJson(value);
  std::map<std::string_view, const Document*> members;
  for (const auto& member : *object) members.emplace(Key(member), &member.value());
  std::string out;
  for (const auto& [key, below] : members) StrAppend(out, key.size(), ':', key, Canonical(*below), ',');
  return out;
}

class Checker {
 public:
  explicit Checker(Causes& causes) : causes_(causes) {}

  void Check(const Schema& schema, const Document& value, const FieldPath& path) {
    if (causes_.full() || schema.recursive) return;
    if (value.is_null() && (schema.nullable || schema.type == SchemaType::kAny)) return;
    if (!IsOfType(schema.type, value)) {
      // "cpu: 1" is a quantity as well as "cpu: '1'".
      const bool quantity = value.is_number() && schema.format == "quantity";
      if (!quantity) Mistyped(schema, value, path);
      return;
    }
    CheckAlternatives(schema, value, path);
    if (value.is_string()) {
      CheckText(schema, value, path);
    } else if (value.is_number()) {
      CheckNumber(schema, value, path);
    } else if (value.is_array()) {
      CheckArray(schema, value.get_array(), path);
    } else if (value.is_object()) {
      CheckObject(schema, value.get_object(), path);
    }
    if (!schema.one_of_values.empty()) CheckOneOf(schema, value, path);
  }

 private:
  void Mistyped(const Schema& schema, const Document& value, const FieldPath& path) {
    const std::string_view is = TypeName(value);
    const std::string detail =
        StrCat(path.Str(), " in body must be of type ", TypeName(schema.type), ": \"", is, '"');
    causes_.TypeInvalid(path, value.is_primitive() && !value.is_null() ? value : Document(is), detail);
  }

  template <typename... Pieces>
  void Invalid(const FieldPath& path, const Document& value, const Pieces&... pieces) {
    causes_.Invalid(path, value, StrCat(path.Str(), " in body ", pieces...));
  }

  void CheckText(const Schema& schema, const Document& value, const FieldPath& path) {
    const std::string_view text = Text(value);
    if (schema.min_length || schema.max_length) {
      const std::int64_t length = CountCharacters(text);
      if (schema.max_length && length > *schema.max_length)
        causes_.TooLong(path, StrCat("may not be longer than ", *schema.max_length));
      if (schema.min_length && length < *schema.min_length)
        Invalid(path, value, "should be at least ", *schema.min_length, " chars long");
    }
    if (schema.regex && !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *schema.regex))
      Invalid(path, value, "should match '", schema.pattern, "'");
    if (schema.format.empty()) return;
    if (schema.format == "quantity") {
      if (!kube::Quantity::Parse(text).ok())
        causes_.Invalid(path, value, "must be a quantity, as 100m, 2, 1.5Gi or 3e6");
    } else if (!MatchesFormat(schema.format, text)) {
      causes_.TypeInvalid(path, value,
                          StrCat(path.Str(), " in body must be of type ", schema.format, ": ", Shown(value)));
    }
  }

  void CheckNumber(const Schema& schema, const Document& value, const FieldPath& path) {
    if (!schema.format.empty() && !FitsIn(schema.format, value)) {
      return causes_.TypeInvalid(path, value, StrCat(path.Str(), " in body must be of type ", schema.format));
    }
    if (!schema.minimum && !schema.maximum && !schema.multiple_of) return;
    const double number = ToDouble(value);
    if (schema.minimum &&
        (number < *schema.minimum || (schema.exclusive_minimum && number == *schema.minimum)))
      Invalid(path, value, "should be greater than ", schema.exclusive_minimum ? "" : "or equal to ",
              Shown(*schema.minimum));
    if (schema.maximum &&
        (number > *schema.maximum || (schema.exclusive_maximum && number == *schema.maximum)))
      Invalid(path, value, "should be less than ", schema.exclusive_maximum ? "" : "or equal to ",
              Shown(*schema.maximum));
    if (schema.multiple_of) {
      const double times = number / *schema.multiple_of;
      if (std::abs(times - std::round(times)) > 1e-9 * std::max(1.0, std::abs(times)))
        Invalid(path, value, "should be a multiple of ", Shown(*schema.multiple_of));
    }
  }

  void CheckArray(const Schema& schema, const Array& array, const FieldPath& path) {
    if (schema.items) {
      for (std::size_t i = 0; i < array.size() && !causes_.full(); ++i)
        Check(*schema.items, array[i], path.Index(i));
    }
    const auto size = static_cast<std::int64_t>(array.size());
    if (schema.min_items && size < *schema.min_items)
      Invalid(path, size, "should have at least ", *schema.min_items, " items");
    if (schema.max_items && size > *schema.max_items) causes_.TooMany(path, array.size(), *schema.max_items);
    if (schema.unique_items || (schema.unique_keys && schema.list_type != ListType::kAtomic))
      CheckUnique(schema, array, path);
  }

  void CheckUnique(const Schema& schema, const Array& array, const FieldPath& path) {
    std::unordered_set<std::string> seen;
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (schema.list_type != ListType::kMap) {
        if (!seen.insert(Canonical(array[i])).second) causes_.Duplicate(path.Index(i), array[i]);
        continue;
      }
      if (!array[i].is_object()) continue;
      Document keys(boost::json::object_kind);
      for (const std::string& key : schema.list_keys) {
        if (const Document* value = Find(array[i], {key})) keys.get_object().emplace(key, *value);
      }
      if (!seen.insert(Canonical(keys)).second) causes_.Duplicate(path.Index(i), keys);
    }
  }

  void CheckObject(const Schema& schema, const Object& object, const FieldPath& path) {
    const auto size = static_cast<std::int64_t>(object.size());
    if (schema.min_properties && size < *schema.min_properties)
      Invalid(path, size, "should have at least ", *schema.min_properties, " properties");
    if (schema.max_properties && size > *schema.max_properties)
      causes_.TooMany(path, object.size(), *schema.max_properties);
    for (const auto& member : object) {
      if (causes_.full()) return;
      const auto property = schema.properties.find(Key(member));
      const Schema* below =
          property != schema.properties.end() ? property->second.get() : schema.additional.get();
      if (below != nullptr) Check(*below, member.value(), path.Child(Key(member)));
    }
    for (const std::string& key : schema.required) {
      if (!object.contains(key)) causes_.Required(path.Child(key));
    }
  }

  void CheckOneOf(const Schema& schema, const Document& value, const FieldPath& path) {
    for (const Document& one : schema.one_of_values) {
      if (IsSame(one, value)) return;
    }
    std::vector<std::string> supported;
    supported.reserve(schema.one_of_values.size());
    for (const Document& one : schema.one_of_values)
      supported.push_back(one.is_string() ? std::string(Text(one)) : PrintJson(one));
    causes_.NotSupported(path, value, supported);
  }

  // What is wrong with the value by one alternative; none: it accepts it.
  static std::vector<kube::Cause> Probe(const Schema& schema, const Document& value, const FieldPath& path) {
    Causes probe(4);
    Checker(probe).Check(schema, value, path);
    return std::move(probe).Take();
  }

  void CheckAlternatives(const Schema& schema, const Document& value, const FieldPath& path) {
    for (const SchemaPtr& each : schema.all_of) Check(*each, value, path);
    if (!schema.any_of.empty() && CountAccepting(schema.any_of, value, path) == 0) {
      causes_.Invalid(path, Document(""),
                      StrCat('"', path.Str(), "\" must validate at least one schema (anyOf)"));
      causes_.Append(std::move(nearest_));
    }
    if (!schema.one_of.empty()) {
      const std::size_t accepting = CountAccepting(schema.one_of, value, path);
      if (accepting != 1) {
        causes_.Invalid(path, Document(""),
                        StrCat('"', path.Str(), "\" must validate one and only one schema (oneOf). ",
                               accepting == 0 ? std::string("Found none valid")
                                              : StrCat("Found ", accepting, " valid alternatives")));
        causes_.Append(std::move(nearest_));
      }
    }
    if (schema.negated && Probe(*schema.negated, value, path).empty())
      causes_.Invalid(path, Document(""), StrCat('"', path.Str(), "\" must not validate the schema (not)"));
  }

  // How many of the alternatives accept the value. If none does, `nearest_` has what is wrong by the one that
  // has the least to say: that explains most.
  std::size_t CountAccepting(const std::vector<SchemaPtr>& alternatives, const Document& value,
                             const FieldPath& path) {
    std::size_t accepting = 0;
    nearest_.clear();
    for (const SchemaPtr& each : alternatives) {
      std::vector<kube::Cause> found = Probe(*each, value, path);
      if (found.empty()) {
        ++accepting;
      } else if (nearest_.empty() || found.size() < nearest_.size()) {
        nearest_ = std::move(found);
      }
    }
    if (accepting > 0) nearest_.clear();
    return accepting;
  }

  Causes& causes_;
  std::vector<kube::Cause> nearest_;
};

}  // namespace

std::vector<kube::Cause> Validate(const Schema& schema, const Document& value, std::size_t most) {
  Causes causes(most);
  const FieldPath root;
  Checker(causes).Check(schema, value, root);
  return std::move(causes).Take();
}

}  // namespace trainyard::apiserver
