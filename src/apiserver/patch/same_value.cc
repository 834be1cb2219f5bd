#include "apiserver/patch/same_value.h"

namespace trainyard::apiserver {
namespace {

bool SameNumber(const Document& a, const Document& b) {
  if (!a.is_double() && !b.is_double()) return a == b;
  return a.to_number<double>() == b.to_number<double>();
}

bool SameArray(const Array& a, const Array& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SameValue(a[i], b[i])) return false;
  }
  return true;
}

bool SameObject(const Object& a, const Object& b) {
  if (a.size() != b.size()) return false;
  auto twin = b.begin();
  for (const auto& member : a) {
    // Mostly one is a copy of the other, with the keys in the same order.
    const Document* other = twin->key() == member.key() ? &twin->value() : b.if_contains(member.key());
    if (other == nullptr || !SameValue(member.value(), *other)) return false;
    ++twin;
  }
  return true;
}

}  // namespace

bool SameValue(const Document& a, const Document& b) {
  if (a.is_number() && b.is_number()) return SameNumber(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case boost::json::kind::object:
      return SameObject(a.get_object(), b.get_object());
    case boost::json::kind::array:
      return SameArray(a.get_array(), b.get_array());
    case boost::json::kind::string:
      return a.get_string() == b.get_string();
    case boost::json::kind::bool_:
      return a.get_bool() == b.get_bool();
    case boost::json::kind::null:
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return true;
  }
  return false;
}

}  // namespace trainyard::apiserver
