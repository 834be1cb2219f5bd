#include "node/image.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace trainyard::node {

std::optional<std::string> ImageFolder(std::string_view image, std::string_view root) {
  constexpr std::string_view kScheme = "dir://";
  if (image.starts_with(kScheme)) image.remove_prefix(kScheme.size());
  if (image.starts_with('/')) return std::string(image);
  if (image == "." || image == "..") return StrCat(root, "/", image);
  if (image.starts_with("./") || image.starts_with("../")) {
    if (image.starts_with("./")) image.remove_prefix(2);
    return StrCat(root, root.ends_with('/') ? "" : "/", image);
  }
  return std::nullopt;
}

ImageFacts LookAtImage(std::string_view image, std::string_view root) {
  const auto folder = ImageFolder(image, root);
  if (!folder) return {};
  ImageFacts facts{.folder = *folder};
  struct stat info{};
  facts.exists = ::stat(folder->c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  const std::string entry = StrCat(*folder, "/entrypoint");
  if (::stat(entry.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(entry.c_str(), X_OK) == 0) {
    facts.entry = entry;
  }
  return facts;
}

}  // namespace trainyard::node
