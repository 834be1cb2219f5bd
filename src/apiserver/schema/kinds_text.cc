#include "apiserver/schema/kinds_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// Takes one line apart from left to right.
class Words {
 public:
  Words(std::string_view text, std::string_view file, int line) : rest_(text), file_(file), line_(line) {}

  bool AtEnd() {
    SkipSpace();
    return rest_.empty() || rest_[0] == '#';
  }
  bool AtText() { return !AtEnd() && rest_[0] == '"'; }

  // Up to the next space.
  std::string_view Next() {
    if (AtEnd()) return {};
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  // A JSON value, which may have spaces inside brackets and quotes.
  absl::StatusOr<Document> NextJson() {
    SkipSpace();
    std::size_t end = 0;
    int depth = 0;
    bool quoted = false;
    for (; end < rest_.size(); ++end) {
      const char c = rest_[end];
      if (quoted) {
        if (c == '\\') ++end;
        if (c == '"') quoted = false;
        continue;
      }
      if (c == ' ' && depth == 0) break;
      if (c == '"') quoted = true;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
    }
    end = std::min(end, rest_.size());
    auto value = ParseJson(rest_.substr(0, end));
    if (!value.ok()) return Error(StrCat("'", rest_.substr(0, end), "' is ", Message(value.status())));
    rest_.remove_prefix(end);
    return value;
  }

  // The texts in quotes that end the line.
  absl::Status AppendTexts(std::string& out) {
    while (AtText()) {
      TY_ASSIGN_OR_RETURN(const Document text, NextJson());
      if (!out.empty()) out += ' ';
      out += Text(text);
    }
    return AtEnd() ? absl::OkStatus() : Error(StrCat("'", rest_, "' stands behind the description"));
  }

  absl::Status Error(std::string_view what) const { return KindsError(file_, line_, what); }

 private:
  void SkipSpace() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
  std::string_view file_;
  int line_;
};

std::vector<std::string> SplitTexts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (const std::string_view part : Split(text, separator)) parts.emplace_back(part);
  return parts;
}

// "name=2.1?" by its parts.
struct NumberedName {
  std::string_view name;
  WirePath wire;
  bool zero_counts = false;
};
std::optional<NumberedName> ParseNumberedName(std::string_view word) {
  const std::size_t equals = word.find('=');
  NumberedName parsed{.name = word.substr(0, equals)};
  if (equals == std::string_view::npos) return parsed;
  std::string_view numbers = word.substr(equals + 1);
  parsed.zero_counts = numbers.ends_with('?');
  if (parsed.zero_counts) numbers.remove_suffix(1);
  for (const std::string_view text : Split(numbers, '.')) {
    const auto number = ParseNumber<std::uint32_t>(text);
    if (!number || *number == 0) return std::nullopt;
    parsed.wire.push_back(*number);
  }
  return parsed;
}

class FileParser {
 public:
  explicit FileParser(const KindsFile& file) : file_(file) {}

  absl::StatusOr<std::vector<TypeText>> Parse() {
    int number = 0;
    for (const std::string_view line : Split(file_.text, '\n')) {
      Words words(line, file_.name, ++number);
      if (words.AtEnd()) continue;
      if (line.find('\t') != std::string_view::npos) return words.Error("has a tab; use spaces");
      line_ = number;
      if (words.AtText()) {
        if (description_ == nullptr) return words.Error("describes nothing: it follows no type or field");
        TY_RETURN_IF_ERROR(words.AppendTexts(*description_));
      } else if (line[0] == ' ') {
        TY_RETURN_IF_ERROR(ParseField(words));
      } else {
        TY_RETURN_IF_ERROR(ParseHeading(words));
      }
    }
    return std::move(types_);
  }

 private:
  absl::Status ParseHeading(Words& words) {
    description_ = nullptr;
    const std::string_view first = words.Next();
    if (first == "package") {
      package_ = words.Next();
      return words.AtEnd() ? absl::OkStatus() : words.Error("'package' has one word behind it");
    }
    if (first == "group") {
      group_ = words.Next();
      if (group_ == "\"\"") group_.clear();
      version_ = words.Next();
      return version_.empty() ? words.Error("'group' has a group (\"\" for the core) and a version behind it")
                              : absl::OkStatus();
    }
    if (first == "type" || first == "kind") return ParseType(words, first == "kind");
    return words.Error(StrCat("'", first, "' is none of package, group, type and kind; fields are indented"));
  }

  absl::Status ParseType(Words& words, bool is_kind) {
    TypeText type{.file = file_.name, .line = line_, .package = package_};
    type.name = words.Next();
    if (type.name.empty() || package_.empty())
      return words.Error("a type needs a name and a package before it");
    if (is_kind) {
      type.kind = KindInfo{.group = group_, .version = version_, .kind = type.name, .singular = type.name};
      std::ranges::transform(type.kind->singular, type.kind->singular.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (version_.empty()) return words.Error("a kind needs a 'group' before it");
    }
    while (!words.AtEnd() && !words.AtText()) TY_RETURN_IF_ERROR(ParseTypeAttribute(words, type));
    types_.push_back(std::move(type));
    if (is_kind) {
      types_.back().fields.push_back({.line = line_,
                                      .name = "apiVersion",
                                      .type = "string",
                                      .description = "Group and version of the kind."});
      types_.back().fields.push_back(
          {.line = line_, .name = "kind", .type = "string", .description = "Which kind of object this is."});
    }
    description_ = &types_.back().description;
    return words.AppendTexts(*description_);
  }

  static absl::Status ParseTypeAttribute(Words& words, TypeText& type) {
    const std::string_view word = words.Next();
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    if (word == "atomic") {
      type.atomic = true;
    } else if (word == "keep") {
      type.keep = true;
    } else if (word == "like") {
      const std::string_view other = words.Next();
      const auto parsed = ParseNumberedName(other);
      if (!parsed) return words.Error(StrCat("'", other, "' has no number behind '='"));
      type.like = parsed->name;
      type.like_wire = parsed->wire;
    } else if (type.kind && key == "plural") {
      type.kind->plural = value;
    } else if (type.kind && key == "short") {
      type.kind->short_names = SplitTexts(value, ',');
    } else if (type.kind && key == "category") {
      type.kind->categories = SplitTexts(value, ',');
    } else if (type.kind && key == "scope" && (value == "namespaced" || value == "cluster")) {
      type.kind->namespaced = value == "namespaced";
    } else {
      return words.Error(StrCat("'", word, "' is no attribute of a type or kind"));
    }
    return absl::OkStatus();
  }

  absl::Status ParseField(Words& words) {
    if (types_.empty()) return words.Error("a field stands before any type");
    FieldText field{.line = line_};
    const std::string_view name = words.Next();
    const auto parsed = ParseNumberedName(name);
    if (!parsed) return words.Error(StrCat("'", name, "' has no number behind '='"));
    field.name = parsed->name;
    field.wire = parsed->wire;
    field.zero_counts = parsed->zero_counts;
    field.type = words.Next();
    field.required = field.type.ends_with('!');
    if (field.required) field.type.pop_back();
    if (field.type.empty() || field.type.starts_with('"'))
      return words.Error(StrCat("field '", field.name, "' has no type"));
    while (!words.AtEnd() && !words.AtText()) TY_RETURN_IF_ERROR(ParseFieldAttribute(words, field));
    std::vector<FieldText>& fields = types_.back().fields;
    if (std::ranges::find(fields, field.name, &FieldText::name) != fields.end())
      return words.Error(StrCat("field '", field.name, "' stands there twice"));
    fields.push_back(std::move(field));
    description_ = &fields.back().description;
    return words.AppendTexts(*description_);
  }

  static absl::Status ParseFieldAttribute(Words& words, FieldText& field) {
    const std::string_view word = words.Next();
    if (word.starts_with('@') && word.size() > 1) {
      field.keys = SplitTexts(word.substr(1), ',');
    } else if (word == "=" || word == ":=") {
      TY_ASSIGN_OR_RETURN(field.default_value, words.NextJson());
      field.zero_is_missing = field.zero_is_missing || word == ":=";
    } else if (word == "in") {
      field.one_of = SplitTexts(words.Next(), '|');
      field.zero_is_missing = field.zero_is_missing || !field.required;
    } else if (word == ">=" || word == "<=") {
      TY_ASSIGN_OR_RETURN(const Document bound, words.NextJson());
      if (!bound.is_number()) return words.Error(StrCat("'", word, "' has a number behind it"));
      (word == ">=" ? field.minimum : field.maximum) = bound.to_number<double>();
    } else if (word.size() > 2 && word.starts_with('/') && word.ends_with('/')) {
      field.pattern = word.substr(1, word.size() - 2);
    } else if (word == "set") {
      field.set = true;
    } else if (word == "atomic") {
      field.atomic = true;
    } else if (word == "nomerge") {
      field.nomerge = true;
    } else if (word == "retainKeys") {
      field.retain_keys = true;
    } else if (word == "nullable") {
      field.nullable = true;
    } else {
      return words.Error(StrCat("'", word, "' is no attribute of a field"));
    }
    return absl::OkStatus();
  }

  const KindsFile& file_;
  int line_ = 0;
  std::string package_;
  std::string group_;
  std::string version_;
  std::vector<TypeText> types_;
  std::string* description_ = nullptr;  // of what stood last, which the next line may continue
};

}  // namespace

absl::Status KindsError(std::string_view file, int line, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(file, ":", line, ": ", what));
}

absl::StatusOr<std::vector<TypeText>> ParseKindsText(const KindsFile& file) {
  return FileParser(file).Parse();
}

}  // namespace trainyard::apiserver
