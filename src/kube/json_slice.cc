#include "kube/json_slice.h"

#include <simdjson.h>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::kube {
namespace {

namespace ondemand = simdjson::ondemand;

// The parser reads a few bytes beyond the end of a text, and keeps memory for the largest that it has seen.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

absl::Status NotValid(std::string_view what, simdjson::error_code error) {
  return absl::InternalError(
      StrCat("the server sent ", what, " that cannot be read: ", simdjson::error_message(error)));
}

// What an object or array is written as, without the white space behind it.
simdjson::error_code CutOut(ondemand::value value, std::string& out) {
  std::string_view raw;
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    if (const auto error = object.raw_json().get(raw)) return error;
  } else if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    if (const auto error = array.raw_json().get(raw)) return error;
  } else {
    raw = value.raw_json_token();
  }
  while (!raw.empty() && static_cast<unsigned char>(raw.back()) <= ' ') raw.remove_suffix(1);
  out.assign(raw);
  return simdjson::SUCCESS;
}

// Texts only: a field that holds something else is as good as missing.
simdjson::error_code TakeText(ondemand::value value, std::string& out) {
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != ondemand::json_type::string) return simdjson::SUCCESS;
  std::string_view text;
  if (const auto error = value.get_string().get(text)) return error;
  out.assign(text);
  return simdjson::SUCCESS;
}

// Calls `visit(key, value)` for each member of an object.
template <typename Visit>
simdjson::error_code ForEachMember(ondemand::object& object, const Visit& visit) {
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return error;
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    if (const auto error = visit(key, field.value())) return error;
  }
  return simdjson::SUCCESS;
}

template <typename Visit>
simdjson::error_code ForEachMember(ondemand::value value, const Visit& visit) {
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != ondemand::json_type::object) return simdjson::SUCCESS;
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  return ForEachMember(object, visit);
}

// Begins to parse `json`, and gives it room for the padding.
simdjson::simdjson_result<ondemand::document> Parse(ondemand::parser& parser, std::string& json) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  return parser.iterate(json.data(), json.size(), json.capacity());
}

template <typename Visit>
simdjson::error_code VisitDocument(ondemand::parser& parser, std::string& json, const Visit& visit) {
  ondemand::document document;
  if (const auto error = Parse(parser, json).get(document)) return error;
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return error;
  return ForEachMember(object, visit);
}

// Calls `work` with a parser and a copy of the text. The many small texts share both in each thread.
template <typename Work>
simdjson::error_code WithParser(std::string_view json, const Work& work) {
  if (json.size() > kKeptBytes) {
    ondemand::parser parser;
    std::string copy(json);
    return work(parser, copy);
  }
  thread_local ondemand::parser parser;
  thread_local std::string copy;
  copy.assign(json);
  return work(parser, copy);
}

simdjson::error_code TakeItems(ondemand::value value, std::vector<std::string>& items) {
  bool none = false;
  if (const auto error = value.is_null().get(none)) return error;
  if (none) return simdjson::SUCCESS;
  ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  for (auto element : array) {
    ondemand::value item;
    if (const auto error = std::move(element).get(item)) return error;
    if (const auto error = CutOut(item, items.emplace_back())) return error;
  }
  return simdjson::SUCCESS;
}

}  // namespace

absl::StatusOr<ListPage> SliceList(std::string json) {
  ListPage page;
  ondemand::parser parser;
  const auto error = VisitDocument(parser, json, [&](std::string_view key, ondemand::value value) {
    if (key == "items") return TakeItems(value, page.items);
    if (key != "metadata") return simdjson::SUCCESS;
    return ForEachMember(value, [&](std::string_view name, ondemand::value text) {
      if (name == "resourceVersion") return TakeText(text, page.resource_version);
      if (name == "continue") return TakeText(text, page.continue_token);
      return simdjson::SUCCESS;
    });
  });
  if (error) return NotValid("a list", error);
  return page;
}

absl::StatusOr<EventSlice> SliceEvent(std::string_view json) {
  EventSlice event;
  const auto error = WithParser(json, [&](ondemand::parser& parser, std::string& copy) {
    return VisitDocument(parser, copy, [&](std::string_view key, ondemand::value value) {
      if (key == "type") return TakeText(value, event.type);
      if (key == "object") return CutOut(value, event.object);
      return simdjson::SUCCESS;
    });
  });
  if (error) return NotValid("a watch event", error);
  return event;
}

Identity FindIdentity(std::string_view json) {
  Identity identity;
  const auto look = [&](ondemand::parser& parser, std::string& copy) {
    ondemand::document document;
    if (const auto error = Parse(parser, copy).get(document)) return error;
    // Not each member: metadata is among the first, and the rest is most of it.
    ondemand::value metadata;
    if (const auto error = document.find_field_unordered("metadata").get(metadata)) return error;
    return ForEachMember(metadata, [&](std::string_view name, ondemand::value text) {
      if (name == "name") return TakeText(text, identity.name);
      if (name == "resourceVersion") return TakeText(text, identity.resource_version);
      return simdjson::SUCCESS;
    });
  };
  if (WithParser(json, look)) return {};
  return identity;
}

}  // namespace trainyard::kube
