#include "apiserver/patch/json_pointer.h"

#include "base/text.h"

namespace trainyard::apiserver {

absl::StatusOr<std::vector<std::string>> ParseJsonPointer(std::string_view text) {
  std::vector<std::string> steps;
  if (text.empty()) return steps;
  if (text.front() != '/') {
    return absl::InvalidArgumentError(StrCat("path \"", text, "\" does not begin with \"/\""));
  }
  for (const std::string_view part : Split(text.substr(1), '/')) {
    std::string& step = steps.emplace_back();
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] != '~') {
        step += part[i];
        continue;
      }
      const char escape = ++i < part.size() ? part[i] : '\0';
      if (escape != '0' && escape != '1') {
        return absl::InvalidArgumentError(
            StrCat("path \"", text, "\" has a \"~\" that is followed by neither 0 nor 1"));
      }
      step += escape == '0' ? '~' : '/';
    }
  }
  return steps;
}

std::optional<std::size_t> ParseArrayIndex(std::string_view step) {
  if (step.empty() || (step.size() > 1 && step.front() == '0')) return std::nullopt;
  return ParseNumber<std::size_t>(step);
}

Document* FindByPointer(Document& document, std::span<const std::string> steps) {
  Document* at = &document;
  for (const std::string& step : steps) {
    if (Object* object = at->if_object()) {
      at = object->if_contains(step);
    } else if (Array* array = at->if_array()) {
      const auto index = ParseArrayIndex(step);
      at = index ? array->if_contains(*index) : nullptr;
    } else {
      at = nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace trainyard::apiserver
