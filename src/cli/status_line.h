// One line on standard error that says where something stands: on a terminal it is written over again,
// elsewhere it comes every few seconds if it has changed.
#pragma once

#include <string>

#include "base/clock.h"

namespace trainyard::cli {

class StatusLine {
 public:
  // Shows where it stands now. On a terminal it is cut to the width.
  void Show(const std::string& text);
  // A line that stays, above the one that changes.
  void Say(const std::string& text);
  // Leaves what is there, and goes to the next line.
  void End();

 private:
  const bool terminal_ = IsTerminal();
  static bool IsTerminal();
  bool open_ = false;  // the cursor is behind a line that may be written over
  SteadyTime shown_at_;
  std::string last_;
};

}  // namespace trainyard::cli
