// Every command, for main() to put together.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace trainyard::cli {

std::unique_ptr<Command> NewAgent();
std::unique_ptr<Command> NewDataInspect();
std::unique_ptr<Command> NewDataVerify();
std::unique_ptr<Command> NewDataConvert();
std::unique_ptr<Command> NewKvGet();
std::unique_ptr<Command> NewKvPut();
std::unique_ptr<Command> NewKvDel();
std::unique_ptr<Command> NewKvRange();
std::unique_ptr<Command> NewKvWatch();
std::unique_ptr<Command> NewOperator();
std::unique_ptr<Command> NewPlan();
std::unique_ptr<Command> NewVersion();
std::unique_ptr<Command> NewStoreServe();
std::unique_ptr<Command> NewGraph();
std::unique_ptr<Command> NewGraphShow();
std::unique_ptr<Command> NewGraphStatus();
std::unique_ptr<Command> NewGraphOutputs();
std::unique_ptr<Command> NewGraphScale();
std::unique_ptr<Command> NewGraphSave();
std::unique_ptr<Command> NewGraphDelete();
std::unique_ptr<Command> NewGraphWorker();
std::unique_ptr<Command> NewMaster();
std::unique_ptr<Command> NewWorker();
std::unique_ptr<Command> NewPserver();
std::unique_ptr<Command> NewLaunch();
std::unique_ptr<Command> NewLaunchList();
std::unique_ptr<Command> NewLaunchStatus();
std::unique_ptr<Command> NewLaunchLogs();
std::unique_ptr<Command> NewLaunchCancel();
std::unique_ptr<Command> NewLaunchDelete();
std::unique_ptr<Command> NewLauncher();
std::unique_ptr<Command> NewImageWrap();
std::unique_ptr<Command> NewCheckpointList();
std::unique_ptr<Command> NewCheckpointVerify();
std::unique_ptr<Command> NewCheckpointExport();
std::unique_ptr<Command> NewTrain();
std::unique_ptr<Command> NewEvaluate();
std::unique_ptr<Command> NewPredict();
std::unique_ptr<Command> NewApply();
std::unique_ptr<Command> NewRun();
std::unique_ptr<Command> NewGet();
std::unique_ptr<Command> NewDescribe();
std::unique_ptr<Command> NewWhy();
std::unique_ptr<Command> NewLogs();
std::unique_ptr<Command> NewEvents();
std::unique_ptr<Command> NewTop();
std::unique_ptr<Command> NewScale();
std::unique_ptr<Command> NewDelete();
std::unique_ptr<Command> NewCompletion();
std::unique_ptr<Command> NewUp();
std::unique_ptr<Command> NewDown();
std::unique_ptr<Command> NewStatus();
std::unique_ptr<Command> NewNodeKill();
std::unique_ptr<Command> NewNodeStop();
std::unique_ptr<Command> NewNodeStart();
std::unique_ptr<Command> NewNodeCordon();
std::unique_ptr<Command> NewNodeUncordon();

// Which version this is: "0.1.0".
std::string Release();

}  // namespace trainyard::cli
