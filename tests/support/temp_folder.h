// A folder of a test's own, gone with everything in it when the test is over.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"

namespace trainyard::testing_support {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trainyard-test.XXXXXX").string();
    TY_CHECK(::mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  std::string path_;
};

}  // namespace trainyard::testing_support
