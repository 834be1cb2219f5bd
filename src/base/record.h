// Structs as JSON objects, field by field. A struct has one function that visits its fields, which serves
// both directions:
//
//   ForEachField(spec, [&](const char* name, const auto& field) { object[name] = ToDocument(field); });
//   ForEachField(spec, [&](const char* name, auto& field) {
//     reader.Take(name, [&](const Document& value) { return FromDocument(value, field); });
//   });
//
// A type of its own field has overloads beside its ForEachField().
#pragma once

#include <concepts>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/document.h"

namespace trainyard {

Document ToDocument(const std::string& text);
Document ToDocument(absl::Duration time);
Document ToDocument(const std::vector<std::string>& list);
Document ToDocument(const std::map<std::string, std::string>& map);
template <std::integral T>
Document ToDocument(T value) {
  return Document(value);
}

// "" if the document is of the field's type, else what it must be: "a text".
std::string_view FromDocument(const Document& document, std::string& text);
std::string_view FromDocument(const Document& document, bool& value);
std::string_view FromDocument(const Document& document, absl::Duration& time);
std::string_view FromDocument(const Document& document, std::vector<std::string>& list);
std::string_view FromDocument(const Document& document, std::map<std::string, std::string>& map);
template <std::integral T>
  requires(!std::same_as<T, bool>)
std::string_view FromDocument(const Document& document, T& number) {
  constexpr std::string_view kWanted = "a whole number";
  if (document.is_uint64()) {
    number = static_cast<T>(document.get_uint64());
    return std::in_range<T>(document.get_uint64()) ? "" : kWanted;
  }
  if (!document.is_int64()) return kWanted;
  number = static_cast<T>(document.get_int64());
  return std::in_range<T>(document.get_int64()) ? "" : kWanted;
}

// Reads an object field by field. Remembers what was wrong first, and finds what no field has taken.
class RecordReader {
 public:
  // `what` the object is: "a task".
  RecordReader(const Document& document, std::string_view what);
  template <typename Read>
  void Take(const char* name, const Read& read) {
    known_.insert(name);
    const Document* const value = document_.is_object() ? document_.get_object().if_contains(name) : nullptr;
    if (value == nullptr) return;
    if (const std::string_view wanted = read(*value); !wanted.empty()) Wrong(name, wanted);
  }
  // InvalidArgument: "a task: workers must be a whole number", "a task has no field x".
  absl::Status End() const;

 private:
  void Wrong(std::string_view name, std::string_view wanted);

  const Document& document_;
  const std::string_view what_;
  std::string wrong_;
  std::set<std::string_view> known_;
};

}  // namespace trainyard
