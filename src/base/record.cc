#include "base/record.h"

#include "base/text.h"

namespace trainyard {

Document ToDocument(const std::string& text) { return Document(text); }
Document ToDocument(absl::Duration time) { return Document(absl::FormatDuration(time)); }
Document ToDocument(const std::vector<std::string>& list) {
  Array array;
  for (const std::string& text : list) array.emplace_back(text);
  return array;
}
Document ToDocument(const std::map<std::string, std::string>& map) {
  Object object;
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

std::string_view FromDocument(const Document& document, std::string& text) {
  text = Text(document);
  return document.is_string() ? "" : "a text";
}
std::string_view FromDocument(const Document& document, bool& value) {
  if (document.is_bool()) value = document.get_bool();
  return document.is_bool() ? "" : "true or false";
}
std::string_view FromDocument(const Document& document, absl::Duration& time) {
  const bool good = document.is_string() && absl::ParseDuration(std::string(Text(document)), &time);
  return good ? "" : "a time as \"10s\"";
}
std::string_view FromDocument(const Document& document, std::vector<std::string>& list) {
  constexpr std::string_view kWanted = "a list of texts";
  if (!document.is_array()) return kWanted;
  list.clear();
  for (const Document& item : document.get_array()) {
    if (!item.is_string()) return kWanted;
    list.emplace_back(Text(item));
  }
  return "";
}
std::string_view FromDocument(const Document& document, std::map<std::string, std::string>& map) {
  constexpr std::string_view kWanted = "an object of texts";
  if (!document.is_object()) return kWanted;
  map.clear();
  for (const auto& member : document.get_object()) {
    if (!member.value().is_string()) return kWanted;
    map.emplace(Key(member), Text(member.value()));
  }
  return "";
}

RecordReader::RecordReader(const Document& document, std::string_view what)
    : document_(document), what_(what) {
  if (!document.is_object()) wrong_ = StrCat(what, " must be an object");
}

void RecordReader::Wrong(std::string_view name, std::string_view wanted) {
  if (wrong_.empty()) wrong_ = StrCat(what_, ": ", name, " must be ", wanted);
}

absl::Status RecordReader::End() const {
  if (!wrong_.empty()) return absl::InvalidArgumentError(wrong_);
  for (const auto& member : document_.get_object()) {
    if (!known_.contains(Key(member)))
      return absl::InvalidArgumentError(StrCat(what_, " has no field ", Shortened(Escaped(Key(member)), 64)));
  }
  return absl::OkStatus();
}

}  // namespace trainyard
