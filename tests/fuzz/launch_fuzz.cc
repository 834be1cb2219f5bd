// What a launcher reads: tasks that clients send, tasks that are stored, what agents say, and the query of
// the first launcher. The first byte says which.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "launch/agent_watch.h"
#include "launch/plan.h"
#include "launch/server.h"

namespace trainyard::launch {
namespace {

void ReadSpec(std::string_view bytes) {
  const auto spec = ParseTaskSpec(bytes);
  if (!spec.ok()) return;
  Validate(*spec).IgnoreError();
  const auto again = ParseTaskSpec(Print(*spec));
  TY_CHECK(again.ok() && *again == *spec, "a task is the same after it was stored");
}

// Whatever is stored has a plan.
void ReadStatus(std::string_view bytes) {
  const auto document = ParseJson(bytes);
  if (!document.ok()) return;
  const Progress status = job::ParseProgress(job::Reporter::kLauncher, *document);
  const Document stored = job::PrintProgress(status);
  TY_CHECK(job::PrintProgress(job::ParseProgress(job::Reporter::kLauncher, stored)) == stored,
           "a status is the same after it was stored");
  const TaskPlan plan =
      PlanTask({.spec = {.name = "t", .workers = 2}, .status = status}, absl::FromUnixSeconds(1));
  TY_CHECK(!plan.store || plan.actions.empty(), "what must survive is stored before it is acted on");
}

void ReadQuery(std::string_view bytes) {
  std::map<std::string, std::string> query;
  for (const std::string_view part : Split(bytes, '&')) {
    const std::size_t equals = part.find('=');
    query[std::string(part.substr(0, equals))] =
        equals == std::string_view::npos ? "" : std::string(part.substr(equals + 1));
  }
  const auto spec = ParseCreateQuery(query);
  if (spec.ok()) Validate(*spec).IgnoreError();
}

}  // namespace
}  // namespace trainyard::launch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 's':
      trainyard::launch::ReadSpec(rest);
      break;
    case 't':
      trainyard::launch::ReadStatus(rest);
      break;
    case 'a':
      trainyard::launch::ParseAgentStatus(rest).IgnoreError();
      break;
    case 'c':
      trainyard::launch::ParseStoredTask(std::string(rest)).IgnoreError();
      break;
    case 'q':
      trainyard::launch::ReadQuery(rest);
      break;
    default:
      break;
  }
  return 0;
}
