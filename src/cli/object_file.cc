#include "cli/object_file.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/yaml.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;

}  // namespace

absl::StatusOr<std::vector<Document>> ReadObjectFile(const std::string& file) {
  std::string text;
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    TY_ASSIGN_OR_RETURN(text, ReadFile(file, kMostBytes));
  }
  auto documents = ParseJsonOrYaml(text);
  if (!documents.ok()) return Annotate(documents.status(), file);
  std::erase_if(*documents, [](const Document& document) { return document.is_null(); });
  return documents;
}

std::vector<Document> Expand(std::vector<Document> documents) {
  std::vector<Document> out;
  for (Document& document : documents) {
    Array* const items = StringAt(document, {"kind"}) == "List" ? ArrayAt(document, {"items"}) : nullptr;
    if (items == nullptr) {
      out.push_back(std::move(document));
    } else {
      std::ranges::move(*items, std::back_inserter(out));
    }
  }
  return out;
}

}  // namespace trainyard::cli
