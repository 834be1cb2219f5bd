#include "apiserver/json_path.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<JsonPath> Run() {
    if (text_.starts_with('{') && text_.ends_with('}')) text_ = text_.substr(1, text_.size() - 2);
    if (Peek() == '$') ++at_;
    JsonPath path;
    while (at_ < text_.size()) {
      auto step = NextStep();
      if (!step.ok()) return step.status();
      path.steps_.push_back(*std::move(step));
    }
    return path;
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void SkipBlanks() {
    while (Peek() == ' ') ++at_;
  }
  absl::Status Wrong(std::string_view what) const {
    return absl::InvalidArgumentError(
        StrCat("the path ", Escaped(text_), " is wrong at character ", at_ + 1, ": ", what));
  }

  absl::StatusOr<Step> NextStep() {
    if (Take(".")) {
      if (Peek() == '.') return Wrong("'..' is not supported");
      if (Take("*")) return Every{};
      if (Peek() == '[') return Bracket();
      TY_ASSIGN_OR_RETURN(std::string name, Name());
      return Child{.key = std::move(name)};
    }
    if (Peek() == '[') return Bracket();
    return Wrong("a '.' or a '[' is expected");
  }

  absl::StatusOr<std::string> Name() {
    std::string name;
    while (at_ < text_.size() && std::string_view(".[] =!)<>&|").find(text_[at_]) == std::string_view::npos) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name += text_[at_++];
    }
    if (name.empty()) return Wrong("a name is expected");
    return name;
  }

  absl::StatusOr<Step> Bracket() {
    ++at_;
    if (Take("?(")) return FilterStep();
    if (Take("*]")) return Every{};
    if (Peek() == '\'' || Peek() == '"') {
      TY_ASSIGN_OR_RETURN(std::string key, Quoted());
      if (!Take("]")) return Wrong("a ']' is expected");
      return Child{.key = std::move(key)};
    }
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) return Wrong("a ']' is missing");
    const std::string_view place = text_.substr(at_, end - at_);
    // Of slices only the one that is the last element.
    const auto index =
        place == "-1:" ? std::optional<std::ptrdiff_t>(-1) : ParseNumber<std::ptrdiff_t>(place);
    if (!index) return Wrong("an index, a name in quotes, '*' or a filter is expected");
    at_ = end + 1;
    return Index{.index = *index};
  }

  absl::StatusOr<std::string> Quoted() {
    const char quote = text_[at_++];
    std::string text;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_++];
    }
    if (at_ == text_.size()) return Wrong("a quote is missing");
    ++at_;
    return text;
  }

  absl::StatusOr<Step> FilterStep() {
    Filter filter;
    SkipBlanks();
    if (!Take("@")) return Wrong("a filter begins with '@'");
    while (Take(".")) {
      TY_ASSIGN_OR_RETURN(std::string name, Name());
      filter.path.push_back(std::move(name));
    }
    SkipBlanks();
    if (Take("==")) {
      filter.relation = Filter::Relation::kEqual;
    } else if (Take("!=")) {
      filter.relation = Filter::Relation::kNotEqual;
    }
    if (filter.relation != Filter::Relation::kExists) {
      SkipBlanks();
      TY_ASSIGN_OR_RETURN(filter.value, Literal());
      SkipBlanks();
    }
    if (!Take(")]")) return Wrong("a ')]' is expected; only one comparison by == or != is supported");
    return filter;
  }

  absl::StatusOr<Document> Literal() {
    if (Peek() == '\'' || Peek() == '"') {
      TY_ASSIGN_OR_RETURN(const std::string text, Quoted());
      return Document(text);
    }
    const std::size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) return Wrong("a ')' is missing");
    std::string_view word = text_.substr(at_, end - at_);
    while (word.ends_with(' ')) word.remove_suffix(1);
    auto value = ParseJson(word);
    if (!value.ok()) return Wrong("a text in quotes, a number, true, false or null is expected");
    at_ += word.size();
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

absl::StatusOr<JsonPath> JsonPath::Parse(std::string_view text) { return Parser(text).Run(); }

void JsonPath::Walk(const Step& step, const Document& from, std::vector<const Document*>& to) {
  if (const auto* child = std::get_if<Child>(&step)) {
    if (const Document* found = Find(from, {child->key})) to.push_back(found);
  } else if (const auto* place = std::get_if<Index>(&step)) {
    const Array* array = from.if_array();
    if (array == nullptr) return;
    const auto size = static_cast<std::ptrdiff_t>(array->size());
    const std::ptrdiff_t index = place->index < 0 ? size + place->index : place->index;
    if (index >= 0 && index < size) to.push_back(&(*array)[static_cast<std::size_t>(index)]);
  } else if (std::holds_alternative<Every>(step)) {
    if (const Array* array = from.if_array()) {
      for (const Document& item : *array) to.push_back(&item);
    } else if (const Object* object = from.if_object()) {
      for (const auto& member : *object) to.push_back(&member.value());
    }
  } else if (const auto* filter = std::get_if<Filter>(&step)) {
    const Array* array = from.if_array();
    if (array == nullptr) return;
    for (const Document& item : *array) {
      const Document* value = &item;
      for (const std::string& key : filter->path) value = value != nullptr ? Find(*value, {key}) : nullptr;
      if (value == nullptr) continue;
      const bool same = *value == filter->value;
      if (filter->relation == Filter::Relation::kEqual && !same) continue;
      if (filter->relation == Filter::Relation::kNotEqual && same) continue;
      to.push_back(&item);
    }
  }
}

std::vector<const Document*> JsonPath::FindAll(const Document& document) const {
  std::vector<const Document*> at = {&document};
  for (const Step& step : steps_) {
    std::vector<const Document*> next;
    for (const Document* from : at) Walk(step, *from, next);
    at = std::move(next);
  }
  return at;
}

const Document* JsonPath::FindFirst(const Document& document) const {
  const std::vector<const Document*> all = FindAll(document);
  return all.empty() ? nullptr : all.front();
}

}  // namespace trainyard::apiserver
