// What an elastic job's processes read: stored commands and states of the master's queue, jobs, the heads of
// gradients, and parts of models. The first byte says which.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "master/spec.h"
#include "master/variables.h"
#include "master/worker/shard_links.h"
#include "tasks/codec.h"

namespace trainyard {
namespace {

void ReadState(std::string_view bytes) {
  const auto state = tasks::DecodeState(bytes);
  if (!state.ok()) return;
  const auto again = tasks::DecodeState(tasks::Encode(*state));
  TY_CHECK(again.ok() && *again == *state, "a state is the same after it was stored");
}

void ReadCommands(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto command = tasks::TakeCommand(bytes);
    if (!command.ok()) return;
    std::string out;
    tasks::Append(*command, out);
    std::string_view rest = out;
    const auto again = tasks::TakeCommand(rest);
    TY_CHECK(again.ok() && rest.empty(), "a command is the same after it was stored");
  }
}

void ReadJob(std::string_view bytes) {
  const auto job = master::ParseJobSpec(bytes);
  if (!job.ok()) return;
  master::Validate(*job).IgnoreError();
  const auto again = master::ParseJobSpec(master::Print(*job));
  TY_CHECK(again.ok() && *again == *job, "a job is the same after it was stored");
}

// Nothing that a head claims is believed before it is checked against what there is.
void ReadGradients(std::string_view bytes) {
  master::wire::Push push;
  if (!push.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  constexpr std::int64_t kMost = 1 << 20;
  master::Assembly assembly;
  assembly.Begin(push.variables(), push.total(), kMost).IgnoreError();
  const master::NamedTypes expected = {{"w", {.dims = {3, 2}}}, {"b", {.dims = {2}}}};
  assembly.Begin(push.variables(), push.total(), expected).IgnoreError();
}

// A worker believes pservers no more than the master believes workers.
void ReadModel(std::string_view bytes) {
  master::wire::Pulled pulled;
  if (!pulled.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  for (const auto& variable : pulled.variables()) {
    std::int64_t whole = 1;
    for (const std::int64_t size : variable.slice().whole())
      whole *= size > 0 && size < 1024 ? size : 1 << 20;
    if (whole > 1 << 20) return;  // memory for it would be made, and that is all right
  }
  constexpr std::int64_t kMost = 1 << 20;
  master::Assembly assembly;
  if (!assembly.Begin(pulled.variables(), pulled.total(), kMost).ok()) return;
  master::ModelParts parts;
  parts.Add(pulled.variables(), assembly.Take()).IgnoreError();
  parts.Take();
}

}  // namespace
}  // namespace trainyard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 's':
      trainyard::ReadState(rest);
      break;
    case 'c':
      trainyard::ReadCommands(rest);
      break;
    case 'j':
      trainyard::ReadJob(rest);
      break;
    case 'g':
      trainyard::ReadGradients(rest);
      break;
    case 'm':
      trainyard::ReadModel(rest);
      break;
    default:
      break;
  }
  return 0;
}
