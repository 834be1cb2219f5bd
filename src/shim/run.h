// One process that the shim has started for a client: a container's first process, or an exec in a container.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shim/launch.h"
#include "shim/log_file.h"
#include "shim/members.h"

namespace trainyard::shim {

//   kLaunching ──▶ kRunning ──▶ kLeaving ──▶ (reported and forgotten)
//        │             └────────────────────────▲
//        └── failed: reported and forgotten
//
// kLeaving: the first process has ended after a polite signal, and the others of the container, told in
// their turn, have the rest of the grace period.
enum class RunStage : std::uint8_t { kLaunching, kRunning, kLeaving };

struct Run {
  std::uint32_t serial = 0;  // of the shim's own, for epoll
  std::string id;
  bool is_exec = false;
  RunStage stage = RunStage::kLaunching;

  Launched child;
  pid_t machine_pid = 0;
  OwnedFd bind_listener;
  Failure failure;
  Membership members;
  OwnedFd mark_holder;    // without it the mark of a container that has ended could be given to another
  bool stopping = false;  // a polite signal was sent

  // How the first process ended.
  int wait_status = 0;
  std::uint64_t ended_nanos = 0;

  // Of a container.
  LogFile log;
  CriLines out_lines{"stdout"};
  CriLines err_lines{"stderr"};
  std::vector<std::string> cgroups;
  std::uint64_t ooms_before = 0;

  // Of an exec.
  std::uint32_t client = 0;
  std::uint64_t tag = 0;
  std::uint64_t deadline_millis = 0;
  std::size_t output_limit = 0;
  std::string output;
  bool timed_out = false;

  // Reads what is there of the stream: true while more may come. Never waits.
  bool ReadStream(bool error_stream);
  // What the streams still hold, and the entries that had no end.
  void DrainStreams();
};

// How often the kernel has killed a process of these cgroups for want of memory.
std::uint64_t CountOomKills(const std::vector<std::string>& cgroups);

}  // namespace trainyard::shim
