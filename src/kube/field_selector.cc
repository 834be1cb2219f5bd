// Field selectors. Beside label selectors in selector.h; their syntax has nothing in common.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "kube/selector.h"

namespace trainyard::kube {
namespace {

absl::Status SelectorError(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(StrCat("field selector \"", Escaped(text), "\": ", problem));
}

// The parts between commas; a comma behind a backslash belongs to its part.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '\\') {
      ++at;
    } else if (at == text.size() || text[at] == ',') {
      terms.push_back(text.substr(start, at - start));
      start = at + 1;
    }
  }
  if (start < text.size()) terms.push_back(text.substr(start));  // it ends in a backslash
  return terms;
}

absl::StatusOr<std::string> Unescape(std::string_view value) {
  std::string plain;
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value[at] == ',' || value[at] == '=') {
      return absl::InvalidArgumentError(
          StrCat("'", value[at], "' in a value is written '\\", value[at], "'"));
    }
    if (value[at] == '\\') {
      ++at;
      if (at == value.size() || std::string_view("\\,=").find(value[at]) == std::string_view::npos) {
        return absl::InvalidArgumentError("a '\\' in a value must stand before '\\', ',' or '='");
      }
    }
    plain.push_back(value[at]);
  }
  return plain;
}

absl::StatusOr<FieldRequirement> ParseTerm(std::string_view term) {
  const std::size_t sign = term.find('=');
  if (sign == std::string_view::npos)
    return absl::InvalidArgumentError("must be field=value or field!=value");
  FieldRequirement requirement;
  requirement.equal = sign == 0 || term[sign - 1] != '!';
  requirement.field = std::string(term.substr(0, requirement.equal ? sign : sign - 1));
  term.remove_prefix(sign + 1);
  if (requirement.equal && term.starts_with('=')) term.remove_prefix(1);
  TY_ASSIGN_OR_RETURN(requirement.value, Unescape(term));
  if (requirement.field.empty()) return absl::InvalidArgumentError("has no field");
  return requirement;
}

}  // namespace

absl::StatusOr<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  for (const std::string_view term : SplitTerms(text)) {
    if (term.empty()) continue;
    absl::StatusOr<FieldRequirement> requirement = ParseTerm(term);
    if (!requirement.ok()) {
      return SelectorError(text, StrCat("\"", Escaped(term), "\": ", Message(requirement.status())));
    }
    selector.requirements_.push_back(*std::move(requirement));
  }
  return selector;
}

bool FieldSelector::Matches(Lookup fields) const {
  return std::ranges::all_of(requirements_, [&](const FieldRequirement& requirement) {
    return (fields(requirement.field).value_or("") == requirement.value) == requirement.equal;
  });
}

std::optional<std::string_view> FieldSelector::RequiredValue(std::string_view field) const {
  for (const FieldRequirement& requirement : requirements_) {
    if (requirement.equal && requirement.field == field) return requirement.value;
  }
  return std::nullopt;
}

std::string FieldSelector::Print() const {
  std::string text;
  for (const FieldRequirement& requirement : requirements_) {
    StrAppend(text, text.empty() ? "" : ",", requirement.field, requirement.equal ? "=" : "!=");
    for (const char c : requirement.value) {
      if (c == '\\' || c == ',' || c == '=') text.push_back('\\');
      text.push_back(c);
    }
  }
  return text;
}

}  // namespace trainyard::kube
