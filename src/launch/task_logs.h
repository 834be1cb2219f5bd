// The output of a task's members, merged: from pods that run and from those that have ended, as long as these
// are there.
#pragma once

#include <optional>
#include <string>

#include "http/service.h"
#include "launch/controller.h"

namespace trainyard::launch {

struct LogQuery {
  std::string task;
  std::optional<MemberId> member;  // none: all, and each line says whose it is
  bool follow = false;             // until the task is over
  std::optional<int> tail;         // of each pod, so many lines
};

// Writes until all is told or nobody takes it; blocks.
void WriteLogs(Controller& controller, const LogQuery& query, http::ServiceStream& stream);

}  // namespace trainyard::launch
