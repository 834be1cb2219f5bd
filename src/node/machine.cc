#include "node/machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "embedded/shim.h"
#include "node/pod_folder.h"
#include "shim/protocol.h"

namespace trainyard::node {
namespace {

namespace key = shim::key;

// Everything that the program prints.
absl::StatusOr<std::string> PrintedBy(const std::vector<std::string>& argv) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  ProcessSpec spec;
  spec.argv = argv;
  spec.stdout_fd = writer.get();
  TY_ASSIGN_OR_RETURN(Child child, Child::Spawn(spec));
  writer.Reset();
  std::string text;
  char room[4096];
  while (true) {
    const ssize_t got = ::read(reader.get(), room, sizeof room);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(room, static_cast<std::size_t>(got));
  }
  TY_RETURN_IF_ERROR(child.Wait(absl::Seconds(10)));
  return text;
}

}  // namespace

absl::StatusOr<Machine> ProbeMachine(const std::string& shim) {
  TY_ASSIGN_OR_RETURN(const std::string text, PrintedBy({shim, "probe"}));
  const auto answer = shim::ParseNested(text);
  if (!answer) return absl::InternalError(StrCat(shim, " probe: no answer"));
  Machine machine{.namespaces = std::string(answer->Get(key::kNamespaces, "none")),
                  .own_pids = answer->Flag(key::kOwnPids),
                  .bind_filter = answer->Flag(key::kBindFilter),
                  .uid = ::geteuid()};
  if (!machine.has_namespaces()) {
    machine.shortcomings.push_back(StrCat("no namespaces (", answer->Get(key::kNamespacesReason),
                                          "): pods have no names for each other but the variables of "
                                          "services, and volumes only where they are; "
                                          "run as root or permit user namespaces"));
  }
  if (!machine.bind_filter) {
    machine.shortcomings.push_back(StrCat(
        "no seccomp notification (", answer->Get(key::kBindFilterReason),
        "): a pod that binds the wildcard address takes the port from all others; bind $TRAINYARD_POD_IP"));
  }
  return machine;
}

absl::StatusOr<std::string> InstallShim(const std::string& home) {
  const std::string_view bytes = embedded::shim()[0].bytes;
  const std::string path = StrCat(home, "/trainyard-shim-", Hex32(Crc32c(bytes)), "-", bytes.size());
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && info.st_size == static_cast<off_t>(bytes.size())) return path;
  std::error_code code;
  std::filesystem::create_directories(home, code);
  TY_RETURN_IF_ERROR(ReplaceFile(path, bytes, 0755, Durability::kProcess));
  return path;
}

}  // namespace trainyard::node
