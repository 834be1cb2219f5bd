#include "apiserver/patch/field_path.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

void AppendScalar(std::string& out, const Document& value) {
  if (value.is_string()) {
    AppendJsonString(out, Text(value));
  } else if (value.is_int64()) {
    StrAppend(out, value.get_int64());
  } else {
    AppendJson(out, value);
  }
}

// The value of one key of an item, or the default that the schema gives it.
const Document* KeyOf(const Schema& list, const Object& item, std::string_view key) {
  if (const Document* found = item.if_contains(key)) return found;
  if (!list.items) return nullptr;
  const auto property = list.items->properties.find(key);
  if (property == list.items->properties.end() || !property->second->default_value) return nullptr;
  return &*property->second->default_value;
}

std::optional<std::string> KeysStep(const Schema& list, const Document& item) {
  const Object* object = item.if_object();
  if (object == nullptr) return std::nullopt;
  std::string step = "k:{";
  const auto append = [&](const std::string& key) {
    const Document* value = KeyOf(list, *object, key);
    if (value == nullptr || !value->is_primitive()) return false;
    if (step.size() > 3) step += ',';
    AppendJsonString(step, key);
    step += ':';
    AppendScalar(step, *value);
    return true;
  };
  if (std::ranges::is_sorted(list.list_keys)) {
    if (!std::ranges::all_of(list.list_keys, append)) return std::nullopt;
  } else {
    std::vector<std::string> keys = list.list_keys;
    std::ranges::sort(keys);
    if (!std::ranges::all_of(keys, append)) return std::nullopt;
  }
  step += '}';
  return step;
}

int Rank(std::string_view step) {
  switch (step.empty() ? '\0' : step.front()) {
    case 'f':
      return 0;
    case 'k':
      return 1;
    case 'v':
      return 2;
    default:
      return 3;
  }
}

// Whether the JSON text ends within a string.
bool EndsInString(std::string_view text) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
  }
  return in_string;
}

double NumberAround(std::string_view text, std::size_t at) {
  while (at > 0 && std::string_view("0123456789.-+eE").find(text[at - 1]) != std::string_view::npos) --at;
  double number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

// Compares where two JSON texts first differ: the end of a string comes before all that goes on, and numbers
// compare as such.
bool JsonTextLess(std::string_view a, std::string_view b) {
  const auto [end_a, end_b] = std::ranges::mismatch(a, b);
  if (end_a == a.end() || end_b == b.end()) return a.size() < b.size();
  const auto at = static_cast<std::size_t>(end_a - a.begin());
  if (EndsInString(a.substr(0, at))) {
    const int left = *end_a == '"' ? -1 : static_cast<unsigned char>(*end_a);
    const int right = *end_b == '"' ? -1 : static_cast<unsigned char>(*end_b);
    return left < right;
  }
  const double left = NumberAround(a, at);
  const double right = NumberAround(b, at);
  return left != right ? left < right : *end_a < *end_b;
}

std::string ShowScalar(const Document& value) {
  return value.is_string() ? StrCat("\"", Escaped(Text(value)), "\"") : PrintJson(value);
}

}  // namespace

std::string FieldStep(std::string_view name) {
  std::string step;
  step.reserve(name.size() + 2);
  step += "f:";
  step += name;
  return step;
}

std::optional<std::string> ItemStep(const Schema& list, const Document& item) {
  if (list.list_type == ListType::kMap) return KeysStep(list, item);
  if (!item.is_primitive() || item.is_null()) return std::nullopt;
  std::string step = "v:";
  AppendScalar(step, item);
  return step;
}

std::optional<std::string> CanonicalStep(std::string_view step) {
  if (step.starts_with("f:")) return std::string(step);
  if (step.starts_with("i:")) {
    const auto place = ParseNumber<std::size_t>(step.substr(2));
    return place ? std::optional(StrCat("i:", *place)) : std::nullopt;
  }
  if (!step.starts_with("v:") && !step.starts_with("k:")) return std::nullopt;
  const auto value = ParseJson(step.substr(2));
  if (!value.ok()) return std::nullopt;
  std::string canonical(step.substr(0, 2));
  if (step.front() == 'v') {
    AppendScalar(canonical, *value);
    return canonical;
  }
  const Object* keys = value->if_object();
  if (keys == nullptr || keys->empty()) return std::nullopt;
  std::vector<std::pair<std::string_view, const Document*>> sorted;
  for (const auto& member : *keys) sorted.emplace_back(Key(member), &member.value());
  std::ranges::sort(sorted);
  canonical += '{';
  for (const auto& [key, document] : sorted) {
    if (canonical.size() > 3) canonical += ',';
    AppendJsonString(canonical, key);
    canonical += ':';
    AppendScalar(canonical, *document);
  }
  canonical += '}';
  return canonical;
}

bool StepLess(std::string_view a, std::string_view b) {
  const int rank_a = Rank(a);
  const int rank_b = Rank(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  return rank_a == 0 ? a < b : JsonTextLess(a, b);
}

std::string ShowStep(std::string_view step) {
  const std::string_view rest = step.substr(std::min<std::size_t>(2, step.size()));
  if (step.starts_with("f:")) return StrCat(".", rest);
  if (step.starts_with("i:")) return StrCat("[", rest, "]");
  const auto value = ParseJson(rest);
  if (!value.ok()) return StrCat("[", rest, "]");
  if (!value->is_object()) return StrCat("[=", ShowScalar(*value), "]");
  std::string shown;
  for (const auto& key : value->get_object()) {
    StrAppend(shown, shown.empty() ? "[" : ",", Key(key), "=", ShowScalar(key.value()));
  }
  return shown + "]";
}

}  // namespace trainyard::apiserver
