// The shim of one pod: parent of the pod's processes, with a life of its own, so that they go on when the
// program that started them ends, and are found again by the next.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shim/bind_filter.h"
#include "shim/protocol.h"
#include "shim/run.h"
#include "shim/sandbox.h"

namespace trainyard::shim {

struct ShimConfig {
  SandboxConfig sandbox;
  in_addr address{};  // 0: the wildcard address is left alone

  // Of the file of that name in the current folder.
  static Failure Read(ShimConfig& config);
};

// One thread, one epoll loop; the current folder is the pod's and stays so.
class Shim {
 public:
  Shim(ShimConfig config, int machine_proc);

  // Opens the state file and the socket. Fails if another shim has the pod.
  Failure Open();
  // Until it is told to end or the pod's folder is gone. Nothing that it started is left.
  void Serve();

  pid_t machine_pid() const { return machine_pid_; }

 private:
  struct Client {
    std::uint32_t serial = 0;
    OwnedFd socket;
    bool greeted = false;  // gets events
    std::string in;
    std::string out;
  };
  enum class Source : std::uint8_t { kListener, kSignals, kClient, kOut, kErr, kReport, kBind };

  void Watch(int fd, Source source, std::uint32_t serial, std::uint32_t events);
  void Dispatch(Source source, std::uint32_t serial, std::uint32_t events);
  int WaitMillis() const;

  void Accept();
  void ReadClient(std::uint32_t serial);
  void FlushClient(Client& client);
  void DropClient(std::uint32_t serial);
  void Answer(Client& client, const std::string& message);
  void Handle(Client& client, const MessageReader& message);
  std::string HandleStart(const MessageReader& message);
  std::string HandleSignal(const MessageReader& message);
  std::string HandleExec(Client& client, const MessageReader& message);
  std::string DescribeRuns(std::uint64_t tag) const;

  Failure LaunchRun(std::unique_ptr<Run> run, const LaunchSpec& spec, pid_t join);
  void ReadReports(Run& run);
  void HandleSignals();
  void ReapChildren();
  void OnFirstEnded(Run& run, int wait_status);
  void FinishRun(Run& run);
  void FinishExec(Run& run);
  void FinishLeaving();
  void EndLateExecs();
  void Tell(const std::string& message);
  void TellFailed(const Run& run);
  void RecordKilledRuns();

  Run* FindRun(std::uint32_t serial);
  Run* FindContainer(std::string_view id);
  void ForgetRun(const Run& run);
  Client* FindClient(std::uint32_t serial);
  bool FolderIsGone() const;

  ShimConfig config_;
  LaunchPlace place_;
  BoundPorts bound_ports_;
  pid_t machine_pid_ = 0;
  OwnedFd epoll_;
  OwnedFd listener_;
  OwnedFd signals_;
  OwnedFd state_;
  std::uint32_t next_serial_ = 1;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Run>> runs_;
  bool ending_ = false;
};

}  // namespace trainyard::shim
