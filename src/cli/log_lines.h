// Lines of many members on standard output: each with its member before it, in a colour of its own where
// there are any.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace trainyard::cli {

// Whole lines of a text that comes in pieces.
class LineSplitter {
 public:
  template <typename Take>
  void Add(std::string_view piece, const Take& take) {
    for (const char c : piece) {
      rest_ += c;
      if (c != '\n') continue;
      take(std::string_view(rest_).substr(0, rest_.size() - 1));
      rest_.clear();
    }
  }
  // What has no end yet.
  const std::string& rest() const { return rest_; }

 private:
  std::string rest_;
};

// All calls from any thread.
class LinePrinter {
 public:
  LinePrinter();
  // "[worker-0] line". False: nobody reads any more.
  bool Print(std::string_view member, std::string_view line);
  // The same of a line that has its member already; one that has none is printed as it is.
  bool Print(std::string_view line);
  bool broken() const;

 private:
  const bool colours_;
  mutable Mutex mu_;
  std::map<std::string, std::size_t, std::less<>> known_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::cli
