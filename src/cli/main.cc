// The program: puts the commands together and runs the one that is asked for.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <memory>
#include <vector>

#include "base/check.h"
#include "cli/commands.h"

namespace {

// A standard descriptor that is closed would be given to the next file that is opened, and what is printed
// would land in it. What stands in for it fails, as a closed one does: 0 cannot be read, 1 and 2 cannot be
// written.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) ::_exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace trainyard::cli;
  FillStandardDescriptors();
  trainyard::EndByAborts();
  ::signal(SIGCHLD, SIG_DFL);  // or a child's end would be lost
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of a write, not our end
  ::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not grow
  const std::unique_ptr<Command> commands[] = {NewUp(),
                                               NewDown(),
                                               NewStatus(),
                                               NewApply(),
                                               NewRun(),
                                               NewGet(),
                                               NewDescribe(),
                                               NewWhy(),
                                               NewLogs(),
                                               NewEvents(),
                                               NewTop(),
                                               NewScale(),
                                               NewDelete(),
                                               NewCompletion(),
                                               NewOperator(),
                                               NewPlan(),
                                               NewNodeKill(),
                                               NewNodeStop(),
                                               NewNodeStart(),
                                               NewNodeCordon(),
                                               NewNodeUncordon(),
                                               NewKvGet(),
                                               NewKvPut(),
                                               NewKvDel(),
                                               NewKvRange(),
                                               NewKvWatch(),
                                               NewVersion(),
                                               NewStoreServe(),
                                               NewGraph(),
                                               NewGraphShow(),
                                               NewGraphStatus(),
                                               NewGraphOutputs(),
                                               NewGraphScale(),
                                               NewGraphSave(),
                                               NewGraphDelete(),
                                               NewGraphWorker(),
                                               NewAgent(),
                                               NewMaster(),
                                               NewWorker(),
                                               NewPserver(),
                                               NewTrain(),
                                               NewEvaluate(),
                                               NewPredict(),
                                               NewCheckpointList(),
                                               NewCheckpointVerify(),
                                               NewCheckpointExport(),
                                               NewLaunch(),
                                               NewLaunchList(),
                                               NewLaunchStatus(),
                                               NewLaunchLogs(),
                                               NewLaunchCancel(),
                                               NewLaunchDelete(),
                                               NewLauncher(),
                                               NewImageWrap(),
                                               NewDataInspect(),
                                               NewDataVerify(),
                                               NewDataConvert()};
  std::vector<Command*> pointers;
  for (const auto& command : commands) pointers.push_back(command.get());
  return RunCommandLine(argc, argv, pointers);
} catch (const std::exception& error) {  // nothing of ours throws: no memory, or no thread to be had
  std::cerr << "trainyard: cannot go on: " << error.what() << "\n";
  return 1;
}
