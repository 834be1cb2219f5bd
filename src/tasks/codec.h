// Commands and states of the queue as bytes, for whoever stores them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tasks/queue.h"

namespace trainyard::tasks {

// Behind what is there.
void Append(const Command& command, std::string& out);
// Takes the first command off the bytes. DataLoss: they do not begin with one.
absl::StatusOr<Command> TakeCommand(std::string_view& bytes);

std::string Encode(const Queue::State& state);
// DataLoss: the bytes are no state, or one of another version.
absl::StatusOr<Queue::State> DecodeState(std::string_view bytes);

}  // namespace trainyard::tasks
