#include "kube/selector.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "kube/names.h"

namespace trainyard::kube {
namespace {

using Operator = LabelRequirement::Operator;

// How each operator stands in a text, and in a matchExpressions entry where it may stand there.
struct Spelling {
  Operator op;
  std::string_view sign;
  std::string_view word;
};
constexpr std::array<Spelling, 8> kSpellings = {{
    {Operator::kEquals, "=", ""},
    {Operator::kNotEquals, "!=", ""},
    {Operator::kIn, "in", "In"},
    {Operator::kNotIn, "notin", "NotIn"},
    {Operator::kExists, "", "Exists"},
    {Operator::kDoesNotExist, "!", "DoesNotExist"},
    {Operator::kGreaterThan, ">", ""},
    {Operator::kLessThan, "<", ""},
}};

std::string_view SignOf(Operator op) { return kSpellings[static_cast<std::size_t>(op)].sign; }

bool IsSet(Operator op) { return op == Operator::kIn || op == Operator::kNotIn; }

std::string Quoted(std::string_view text) { return StrCat("\"", Escaped(text), "\""); }

// Puts values in order and checks the requirement; returns what is wrong with it, or "".
std::string Settle(LabelRequirement& requirement) {
  if (const auto problem = FindQualifiedNameProblem(requirement.key); !problem.empty()) {
    return StrCat("the label key ", Quoted(requirement.key), " ", problem);
  }
  std::ranges::sort(requirement.values);
  const auto repeated = std::ranges::unique(requirement.values);
  requirement.values.erase(repeated.begin(), repeated.end());
  for (const std::string& value : requirement.values) {
    if (const auto problem = FindLabelValueProblem(value); !problem.empty()) {
      return StrCat("the value ", Quoted(value), " of label ", Quoted(requirement.key), " ", problem);
    }
  }
  const bool numeric = requirement.op == Operator::kGreaterThan || requirement.op == Operator::kLessThan;
  if (numeric && !ParseNumber<std::int64_t>(requirement.values.at(0))) {
    return StrCat("label ", Quoted(requirement.key), " is compared with ", Quoted(requirement.values[0]),
                  ", which is no whole number");
  }
  return "";
}

// ---- the text

struct Token {
  enum class Kind { kWord, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;

  bool Is(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
  bool EndsRequirement() const { return kind == Kind::kEnd || Is(","); }
  std::string Str() const { return kind == Kind::kEnd ? "the end" : Quoted(text); }
};

class LabelParser {
 public:
  explicit LabelParser(std::string_view text) : text_(text), rest_(text) { Advance(); }

  absl::StatusOr<std::vector<LabelRequirement>> Parse() {
    std::vector<LabelRequirement> requirements;
    if (next_.kind == Token::Kind::kEnd) return requirements;
    while (true) {
      TY_ASSIGN_OR_RETURN(LabelRequirement requirement, ParseRequirement());
      if (const std::string problem = Settle(requirement); !problem.empty()) return Error(problem);
      requirements.push_back(std::move(requirement));
      if (next_.kind == Token::Kind::kEnd) return requirements;
      if (!next_.Is(",")) return Unexpected("a ',' or the end");
      Advance();
    }
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool IsSign(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

  Token Advance() {
    const Token taken = next_;
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
    std::size_t length = 0;
    next_.kind = Token::Kind::kEnd;
    if (!rest_.empty() && IsSign(rest_.front())) {
      next_.kind = Token::Kind::kSign;
      length = rest_.starts_with("==") || rest_.starts_with("!=") ? 2 : 1;
    } else if (!rest_.empty()) {
      next_.kind = Token::Kind::kWord;
      while (length < rest_.size() && !IsSpace(rest_[length]) && !IsSign(rest_[length])) ++length;
    }
    next_.text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  absl::Status Error(std::string_view problem) const {
    return absl::InvalidArgumentError(StrCat("label selector ", Quoted(text_), ": ", problem));
  }
  absl::Status Unexpected(std::string_view wanted) const {
    const std::size_t at = static_cast<std::size_t>(rest_.data() - text_.data()) - next_.text.size();
    return Error(StrCat("found ", next_.Str(), " at character ", at + 1, " where ", wanted, " should be"));
  }

  absl::StatusOr<LabelRequirement> ParseRequirement() {
    LabelRequirement requirement;
    const bool absent = next_.Is("!");
    if (absent) Advance();
    if (next_.kind != Token::Kind::kWord) return Unexpected("a label key");
    requirement.key = std::string(Advance().text);
    if (absent) {
      requirement.op = Operator::kDoesNotExist;
      return requirement;
    }
    if (next_.EndsRequirement()) return requirement;
    const auto* spelling = std::ranges::find_if(kSpellings, [&](const Spelling& s) {
      return !s.sign.empty() && s.op != Operator::kDoesNotExist && s.sign == next_.text;
    });
    if (next_.Is("==")) spelling = kSpellings.data();
    if (spelling == kSpellings.end()) return Unexpected("=, ==, !=, in, notin, <, >, ',' or the end");
    Advance();
    requirement.op = spelling->op;
    TY_RETURN_IF_ERROR(IsSet(requirement.op) ? ParseSet(requirement) : ParseValue(requirement));
    return requirement;
  }

  // "a=" is a label whose value is empty.
  absl::Status ParseValue(LabelRequirement& requirement) {
    if (next_.kind == Token::Kind::kSign && !next_.Is(",")) return Unexpected("a value");
    requirement.values.emplace_back(next_.kind == Token::Kind::kWord ? Advance().text : "");
    return absl::OkStatus();
  }

  // Between two commas there may be nothing, which is the empty value.
  absl::Status ParseSet(LabelRequirement& requirement) {
    if (!next_.Is("(")) return Unexpected("'('");
    do {
      Advance();
      requirement.values.emplace_back(next_.kind == Token::Kind::kWord ? Advance().text : "");
    } while (next_.Is(","));
    if (!next_.Is(")")) return Unexpected("',' or ')'");
    Advance();
    return absl::OkStatus();
  }

  const std::string_view text_;
  std::string_view rest_;
  Token next_;
};

// ---- the object

absl::Status FieldError(std::string_view field, std::string_view problem) {
  return absl::InvalidArgumentError(StrCat("label selector: ", field, ": ", problem));
}

absl::StatusOr<LabelRequirement> ParseExpression(const Document& expression, std::string_view field) {
  LabelRequirement requirement;
  requirement.key = std::string(StringAt(expression, {"key"}));
  const std::string_view word = StringAt(expression, {"operator"});
  const auto* spelling =
      std::ranges::find_if(kSpellings, [&](const Spelling& s) { return !s.word.empty() && s.word == word; });
  if (spelling == kSpellings.end()) {
    return FieldError(StrCat(field, ".operator"),
                      StrCat(Quoted(word), " is none of In, NotIn, Exists and DoesNotExist"));
  }
  requirement.op = spelling->op;
  if (const Array* values = ArrayAt(expression, {"values"})) {
    for (const Document& value : *values) {
      if (!value.is_string()) return FieldError(StrCat(field, ".values"), "must be texts");
      requirement.values.emplace_back(Text(value));
    }
  }
  if (IsSet(requirement.op) == requirement.values.empty()) {
    return FieldError(StrCat(field, ".values"), StrCat(IsSet(requirement.op) ? "must" : "must not",
                                                       " be given with operator ", spelling->word));
  }
  if (const std::string problem = Settle(requirement); !problem.empty()) return FieldError(field, problem);
  return requirement;
}

}  // namespace

bool LabelRequirement::Matches(Lookup labels) const {
  const std::optional<std::string_view> value = labels(key);
  const auto is_listed = [&] { return std::ranges::find(values, *value) != values.end(); };
  switch (op) {
    case Operator::kEquals:
    case Operator::kIn:
      return value && is_listed();
    case Operator::kNotEquals:
    case Operator::kNotIn:
      return !value || !is_listed();
    case Operator::kExists:
      return value.has_value();
    case Operator::kDoesNotExist:
      return !value;
    case Operator::kGreaterThan:
    case Operator::kLessThan: {
      if (!value) return false;
      const auto number = ParseNumber<std::int64_t>(*value);
      const auto bound = ParseNumber<std::int64_t>(values.at(0));
      if (!number || !bound) return false;
      return op == Operator::kGreaterThan ? *number > *bound : *number < *bound;
    }
  }
  return false;
}

std::string LabelRequirement::Print() const {
  if (op == Operator::kExists) return key;
  if (op == Operator::kDoesNotExist) return StrCat("!", key);
  if (!IsSet(op)) return StrCat(key, SignOf(op), values.at(0));
  std::string text = StrCat(key, " ", SignOf(op), " (");
  for (std::size_t i = 0; i < values.size(); ++i) StrAppend(text, i == 0 ? "" : ",", values[i]);
  return text + ")";
}

LabelSelector LabelSelector::Nothing() {
  LabelSelector selector;
  selector.requirements_ = {{.key = "none", .op = Operator::kExists},
                            {.key = "none", .op = Operator::kDoesNotExist}};
  return selector;
}

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  TY_ASSIGN_OR_RETURN(selector.requirements_, LabelParser(text).Parse());
  std::ranges::sort(selector.requirements_);
  return selector;
}

absl::StatusOr<LabelSelector> LabelSelector::FromRequirements(std::vector<LabelRequirement> requirements) {
  for (LabelRequirement& requirement : requirements) {
    const bool bare = requirement.op == Operator::kExists || requirement.op == Operator::kDoesNotExist;
    const bool fits = bare                    ? requirement.values.empty()
                      : IsSet(requirement.op) ? !requirement.values.empty()
                                              : requirement.values.size() == 1;
    if (!fits) return FieldError(requirement.key, "has too many or too few values for its operator");
    if (const std::string problem = Settle(requirement); !problem.empty()) {
      return absl::InvalidArgumentError(StrCat("label selector: ", problem));
    }
  }
  LabelSelector selector;
  selector.requirements_ = std::move(requirements);
  std::ranges::sort(selector.requirements_);
  return selector;
}

absl::StatusOr<LabelSelector> LabelSelector::FromDocument(const Document& selector) {
  if (selector.is_null()) return Nothing();
  if (!selector.is_object()) return absl::InvalidArgumentError("label selector: must be an object");
  std::vector<LabelRequirement> requirements;
  if (const Document* labels = Find(selector, {"matchLabels"}); labels != nullptr && !labels->is_null()) {
    if (!labels->is_object()) return FieldError("matchLabels", "must be an object");
    for (const auto& label : labels->get_object()) {
      if (!label.value().is_string()) return FieldError(StrCat("matchLabels.", Key(label)), "must be a text");
      requirements.push_back({.key = std::string(Key(label)),
                              .op = Operator::kEquals,
                              .values = {std::string(Text(label.value()))}});
    }
  }
  if (const Document* all = Find(selector, {"matchExpressions"}); all != nullptr && !all->is_null()) {
    if (!all->is_array()) return FieldError("matchExpressions", "must be a list");
    for (std::size_t i = 0; i < all->get_array().size(); ++i) {
      TY_ASSIGN_OR_RETURN(LabelRequirement requirement,
                          ParseExpression(all->get_array()[i], StrCat("matchExpressions[", i, "]")));
      requirements.push_back(std::move(requirement));
    }
  }
  return FromRequirements(std::move(requirements));
}

bool LabelSelector::Matches(Lookup labels) const {
  return std::ranges::all_of(requirements_, [&](const LabelRequirement& r) { return r.Matches(labels); });
}

bool LabelSelector::Matches(const Object* labels) const {
  return Matches([&](std::string_view key) -> std::optional<std::string_view> {
    const Document* value = labels == nullptr ? nullptr : labels->if_contains(key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return Text(*value);
  });
}

std::string LabelSelector::Print() const {
  std::string text;
  for (const LabelRequirement& requirement : requirements_) {
    StrAppend(text, text.empty() ? "" : ",", requirement.Print());
  }
  return text;
}

}  // namespace trainyard::kube
