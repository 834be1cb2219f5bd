// The program: puts the commands together and runs the one that is asked for.
#include <signal.h>

#include <memory>
#include <vector>

#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace trainyard::cli;
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of a write, not our end
  const std::unique_ptr<Command> commands[] = {NewKvGet(),   NewKvPut(),   NewKvDel(),
                                               NewKvRange(), NewKvWatch(), NewVersion()};
  std::vector<Command*> pointers;
  for (const auto& command : commands) pointers.push_back(command.get());
  return RunCommandLine(argc, argv, pointers);
}
