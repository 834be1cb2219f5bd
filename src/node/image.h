// What `image:` means where there is no container engine: a folder of this machine, or nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard::node {

// "/abs/folder", "./relative" (to `root`) and "dir:///abs/folder" are folders: the default working directory,
// and the front of PATH. Anything else ("python:3.11") names an image that nobody here can run; it is kept in
// the status and otherwise ignored. Pure.
std::optional<std::string> ImageFolder(std::string_view image, std::string_view root);

struct ImageFacts {
  std::string folder;  // empty: the image is no folder
  bool exists = false;
  std::string entry;  // what runs if no command is given: `entrypoint` in the folder; empty: there is none
};
ImageFacts LookAtImage(std::string_view image, std::string_view root);

}  // namespace trainyard::node
