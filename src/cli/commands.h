// Every command, for main() to put together.
#pragma once

#include <memory>

#include "cli/command.h"

namespace trainyard::cli {

std::unique_ptr<Command> NewKvGet();
std::unique_ptr<Command> NewKvPut();
std::unique_ptr<Command> NewKvDel();
std::unique_ptr<Command> NewKvRange();
std::unique_ptr<Command> NewKvWatch();
std::unique_ptr<Command> NewVersion();

}  // namespace trainyard::cli
