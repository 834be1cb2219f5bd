// JSON documents: parsed, looked into and printed. The library is Boost.JSON; objects keep the order of their
// keys.
//
// What a client sends is bounded before it is parsed (size) and while it is (depth), so that a hostile
// document costs no more than its bytes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "boost/json/array.hpp"
#include "boost/json/object.hpp"
#include "boost/json/value.hpp"

namespace trainyard {

using Document = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

inline constexpr std::size_t kMaxDocumentDepth = 128;

// InvalidArgument: what is wrong and at which line and column. Of a key that is given twice, the last counts.
absl::StatusOr<Document> ParseJson(std::string_view text);

// Without white space. Numbers that came in as whole numbers stay whole; 0.5 is 0.5.
std::string PrintJson(const Document& document);
void AppendJson(std::string& out, const Document& document);

// About what the document takes when printed. Stops counting above `most`.
std::size_t EstimateSize(const Document& document, std::size_t most);

using Path = std::initializer_list<std::string_view>;

// What stands at the path of keys, or null if a step of it is missing or is no object.
const Document* Find(const Document& document, Path path);
Document* Find(Document& document, Path path);
const Document* Find(const Object& object, Path path);
Document* Find(Object& object, Path path);

// A number; JSON has none for NaN and infinities: these are "nan", "inf" and "-inf".
Document NumberDocument(double number);

// The same, if it is of the kind; else nothing, or what stands in for it.
std::string_view StringAt(const Document& document, Path path, std::string_view otherwise = "");
std::optional<std::int64_t> IntAt(const Document& document, Path path);
bool BoolAt(const Document& document, Path path, bool otherwise = false);
// Also what NumberDocument() made of a number that is not finite.
std::optional<double> NumberAt(const Document& document, Path path);
std::optional<double> NumberOf(const Document& value);
const Object* ObjectAt(const Document& document, Path path);
const Array* ArrayAt(const Document& document, Path path);
Object* ObjectAt(Document& document, Path path);
Array* ArrayAt(Document& document, Path path);

// The object at the path, with every step made that is missing. A step that is something else is replaced.
Object& MakeObjectAt(Document& document, Path path);

// A text in std's type.
inline std::string_view Text(const boost::json::string& string) { return {string.data(), string.size()}; }
// The text of a document that is one, else "".
inline std::string_view Text(const Document& document) {
  return document.is_string() ? Text(document.get_string()) : std::string_view();
}
// Key of an object's member, in std's type.
inline std::string_view Key(const boost::json::key_value_pair& member) {
  return {member.key().data(), member.key().size()};
}

// Removes an object's key and keeps the order of the others; false if it was not there.
bool Remove(Object& object, std::string_view key);
// Removes all members that the predicate names, in one pass: removing them one by one is quadratic.
void RemoveIf(Object& object,
              absl::FunctionRef<bool(std::string_view key, const Document& value)> is_removed);

}  // namespace trainyard
