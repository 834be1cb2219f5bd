#include "tests/support/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::testing_support {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int FreePort() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof address;
  TY_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
               ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0,
           "loopback has no free port");
  return ntohs(address.sin_port);
}

absl::StatusOr<std::unique_ptr<EtcdCluster>> EtcdCluster::Start(Options options) {
  std::unique_ptr<EtcdCluster> cluster(new EtcdCluster(std::move(options)));
  for (int i = 0; i < cluster->options_.members; ++i) {
    Member& member = cluster->members_.emplace_back();
    member.client_port = FreePort();
    member.peer_port = FreePort();
  }
  for (int i = 0; i < cluster->options_.members; ++i) TY_RETURN_IF_ERROR(cluster->Spawn(i));
  for (int i = 0; i < cluster->options_.members; ++i) TY_RETURN_IF_ERROR(cluster->AwaitReady(i));
  return cluster;
}

std::string EtcdCluster::endpoint(int member) const {
  return StrCat("127.0.0.1:", members_[static_cast<std::size_t>(member)].client_port);
}

std::string EtcdCluster::endpoints() const {
  std::string text;
  for (int i = 0; i < options_.members; ++i) StrAppend(text, i == 0 ? "" : ",", endpoint(i));
  return text;
}

absl::Status EtcdCluster::Spawn(int index) {
  Member& member = members_[static_cast<std::size_t>(index)];
  const std::string name = StrCat("m", index);
  const std::string client = StrCat(options_.tls ? "https" : "http", "://", endpoint(index));
  const std::string peer = StrCat("http://127.0.0.1:", member.peer_port);
  std::string cluster;
  for (int i = 0; i < options_.members; ++i) {
    StrAppend(cluster, i == 0 ? "" : ",", "m", i,
              "=http://127.0.0.1:", members_[static_cast<std::size_t>(i)].peer_port);
  }
  ProcessSpec spec;
  spec.argv = {"etcd",         "--name",
               name,           "--data-dir",
               folder_ / name, "--listen-client-urls",
               client,         "--advertise-client-urls",
               client,         "--listen-peer-urls",
               peer,           "--initial-advertise-peer-urls",
               peer,           "--initial-cluster",
               cluster,        "--logger",
               "zap",          "--log-level",
               "warn"};
  spec.argv.insert(spec.argv.end(), options_.flags.begin(), options_.flags.end());
  spec.stdout_path = spec.stderr_path = folder_ / StrCat(name, ".log");
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  member.process = std::move(child);
  return absl::OkStatus();
}

absl::Status EtcdCluster::AwaitReady(int index) {
  Member& member = members_[static_cast<std::size_t>(index)];
  const SteadyTime deadline = Clock::System().Steady() + absl::Seconds(60);
  while (true) {
    const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(member.client_port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return absl::OkStatus();
    const bool ended = member.process->Wait(absl::Milliseconds(20)).ok();
    if (ended || Clock::System().Steady() >= deadline) {
      return absl::UnavailableError(
          StrCat("etcd did not start: ", ReadAll(folder_ / StrCat("m", index, ".log"))));
    }
  }
}

absl::Status EtcdCluster::Kill(int member) {
  Child& process = *members_[static_cast<std::size_t>(member)].process;
  TY_RETURN_IF_ERROR(process.Kill(SIGKILL));
  return process.Wait().status();
}

absl::Status EtcdCluster::Restart(int member) {
  TY_RETURN_IF_ERROR(Spawn(member));
  return AwaitReady(member);
}

absl::StatusOr<std::string> EtcdCtl(const std::string& endpoint, std::vector<std::string> arguments) {
  const TempFolder folder;
  ProcessSpec spec;
  spec.argv = {"/usr/bin/env", "ETCDCTL_API=3", "etcdctl", "--endpoints", endpoint};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.stdout_path = spec.stderr_path = folder / "out";
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  TY_ASSIGN_OR_RETURN(const ExitStatus status, child.Wait(absl::Seconds(60)));
  if (ShellCode(status) != 0)
    return absl::InternalError(StrCat("etcdctl ", PrintExit(status), ": ", ReadAll(folder / "out")));
  return ReadAll(folder / "out");
}

}  // namespace trainyard::testing_support
