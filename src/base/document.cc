// Looking into documents and printing them; document_parse.cc reads them.
#include "base/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"

namespace trainyard {
namespace {

// Boost's own printing of numbers is 5E-1 for a half. This is as others do: 0.5, 1e-7, 1e+21.
void AppendNumber(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  if (number == 0) {  // also -0, which would come back as a whole number without its sign
    out += '0';
    return;
  }
  std::array<char, 64> buffer{};
  const double magnitude = std::abs(number);
  const bool plain = magnitude >= 1e-6 && magnitude < 1e21;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format).ptr;
  const std::string_view digits(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t exponent = digits.find('e');
  if (exponent != std::string_view::npos && digits[exponent + 2] == '0') {
    StrAppend(out, digits.substr(0, exponent + 2), digits.substr(exponent + 3));
  } else {
    out += digits;
  }
}

// A text that a document holds is UTF-8 already: only what JSON must have escaped is looked for.
void AppendText(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, from, at - from);
    from = at + 1;
    switch (byte) {
      case '"':
      case '\\':
        StrAppend(out, '\\', text[at]);
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        StrAppend(out, "\\u00", kHex[byte >> 4], kHex[byte & 15]);
        break;
    }
  }
  out.append(text, from);
  out += '"';
}

template <typename List, typename Append>
void AppendList(std::string& out, char begin, const List& list, char end, const Append& append) {
  out += begin;
  bool first = true;
  for (const auto& part : list) {
    if (!first) out += ',';
    first = false;
    append(part);
  }
  out += end;
}

template <typename Node>
Node* Walk(Node* node, Path path) {
  for (const std::string_view key : path) {
    auto* object = node->if_object();
    if (object == nullptr) return nullptr;
    node = object->if_contains(key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

template <typename Node, typename ObjectType>
Node* WalkFrom(ObjectType& object, Path path) {
  if (path.size() == 0) return nullptr;
  const std::string_view first = *path.begin();
  Node* node = object.if_contains(first);
  for (const auto* key = path.begin() + 1; node != nullptr && key != path.end(); ++key)
    node = Walk(node, {*key});
  return node;
}

}  // namespace

void AppendJson(std::string& out, const Document& document) {
  switch (document.kind()) {
    case boost::json::kind::null:
      out += "null";
      break;
    case boost::json::kind::bool_:
      out += document.get_bool() ? "true" : "false";
      break;
    case boost::json::kind::int64:
      StrAppend(out, document.get_int64());
      break;
    case boost::json::kind::uint64:
      StrAppend(out, document.get_uint64());
      break;
    case boost::json::kind::double_:
      AppendNumber(out, document.get_double());
      break;
    case boost::json::kind::string:
      AppendText(out, Text(document));
      break;
    case boost::json::kind::array:
      AppendList(out, '[', document.get_array(), ']',
                 [&](const Document& element) { AppendJson(out, element); });
      break;
    case boost::json::kind::object:
      AppendList(out, '{', document.get_object(), '}', [&](const auto& member) {
        AppendText(out, Key(member));
        out += ':';
        AppendJson(out, member.value());
      });
      break;
  }
}

std::string PrintJson(const Document& document) {
  std::string out;
  AppendJson(out, document);
  return out;
}

std::size_t EstimateSize(const Document& document, std::size_t most) {
  std::size_t size = 8;
  if (document.is_string()) return size + document.get_string().size();
  if (const Array* array = document.if_array()) {
    for (const Document& item : *array) {
      size += EstimateSize(item, most);
      if (size > most) break;
    }
  } else if (const Object* object = document.if_object()) {
    for (const auto& member : *object) {
      size += 4 + member.key().size() + EstimateSize(member.value(), most);
      if (size > most) break;
    }
  }
  return size;
}

const Document* Find(const Document& document, Path path) { return Walk(&document, path); }
Document* Find(Document& document, Path path) { return Walk(&document, path); }
const Document* Find(const Object& object, Path path) { return WalkFrom<const Document>(object, path); }
Document* Find(Object& object, Path path) { return WalkFrom<Document>(object, path); }

std::string_view StringAt(const Document& document, Path path, std::string_view otherwise) {
  const Document* found = Find(document, path);
  return found != nullptr && found->is_string() ? Text(found->get_string()) : otherwise;
}

std::optional<std::int64_t> IntAt(const Document& document, Path path) {
  const Document* found = Find(document, path);
  if (found == nullptr) return std::nullopt;
  if (found->is_int64()) return found->get_int64();
  if (found->is_uint64() && found->get_uint64() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return static_cast<std::int64_t>(found->get_uint64());
  }
  return std::nullopt;
}

Document NumberDocument(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

std::optional<double> NumberOf(const Document& value) {
  if (value.is_number()) return value.to_number<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (Text(value) == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (Text(value) == "inf") return kInfinity;
  if (Text(value) == "-inf") return -kInfinity;
  return std::nullopt;
}

std::optional<double> NumberAt(const Document& document, Path path) {
  const Document* const found = Find(document, path);
  return found == nullptr ? std::nullopt : NumberOf(*found);
}

bool BoolAt(const Document& document, Path path, bool otherwise) {
  const Document* found = Find(document, path);
  return found != nullptr && found->is_bool() ? found->get_bool() : otherwise;
}

const Object* ObjectAt(const Document& document, Path path) {
  const Document* found = Find(document, path);
  return found != nullptr ? found->if_object() : nullptr;
}

const Array* ArrayAt(const Document& document, Path path) {
  const Document* found = Find(document, path);
  return found != nullptr ? found->if_array() : nullptr;
}

Object* ObjectAt(Document& document, Path path) {
  Document* found = Find(document, path);
  return found != nullptr ? found->if_object() : nullptr;
}

Array* ArrayAt(Document& document, Path path) {
  Document* found = Find(document, path);
  return found != nullptr ? found->if_array() : nullptr;
}

Object& MakeObjectAt(Document& document, Path path) {
  Document* node = &document;
  if (!node->is_object()) node->emplace_object();
  for (const std::string_view key : path) {
    node = &node->get_object()[key];
    if (!node->is_object()) node->emplace_object();
  }
  return node->get_object();
}

bool Remove(Object& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  object.stable_erase(found);
  return true;
}

void RemoveIf(Object& object,
              absl::FunctionRef<bool(std::string_view key, const Document& value)> is_removed) {
  const auto removed = [&](const auto& member) { return is_removed(Key(member), member.value()); };
  if (std::ranges::none_of(object, removed)) return;
  Object kept(object.storage());
  kept.reserve(object.size());
  for (auto& member : object) {
    if (!removed(member)) kept.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(kept);
}

}  // namespace trainyard
