#include "node/pod_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "node/log_lines.h"
#include "shim/protocol.h"

namespace trainyard::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxPodBytes = std::size_t{16} << 20;
// What the API server keeps of a message.
constexpr std::size_t kMaxTerminationBytes = 4096;
constexpr std::size_t kFallbackBytes = 2048;
constexpr std::size_t kFallbackLines = 80;

absl::Status MakeFolder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, StrCat("cannot make ", path));
}

// The last bytes of a file.
std::string ReadTail(const std::string& path, std::size_t most) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return "";
  const off_t begin = std::max<off_t>(0, info.st_size - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(info.st_size - begin), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), begin);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

// What a container printed last, without the times.
std::string LastOutput(const std::string& log) {
  // Times and streams take their part of what is read.
  const std::string tail = ReadTail(log, 4 * kFallbackBytes);
  std::string out;
  for (const std::string_view line : Split(tail, '\n')) {
    if (const auto entry = ParseLogEntry(line)) {
      StrAppend(out, entry->text, entry->full ? "\n" : "");
    }
  }
  // Back from the end, over as many line ends as there may be lines.
  std::size_t begin = out.size();
  std::size_t lines = 0;
  while (begin > 0 && out.size() - begin < kFallbackBytes) {
    if (out[begin - 1] == '\n' && begin != out.size() && ++lines == kFallbackLines) break;
    --begin;
  }
  return out.substr(begin);
}

// What a run left behind: one that restarts for ever must not fill the disk.
void ForgetRun(const PodFolder& folder, std::string_view container, int attempt) {
  if (attempt < 0) return;
  std::error_code code;
  fs::remove(folder.Termination(container, attempt), code);
  const std::string log = folder.Log(container, attempt);
  fs::remove(log, code);
  for (int part = 1; fs::remove(StrCat(log, ".", part), code); ++part) {
  }
}

void BeginRun(ContainerRecord& container, int attempt) {
  ContainerRecord next;
  if (container.run.attempt >= 0) next.previous = container.run;
  next.state = RunState::kStarting;
  next.run.attempt = attempt;
  next.short_runs = container.short_runs;
  next.announced = attempt;
  container = std::move(next);
}

}  // namespace

PodFolder::PodFolder(std::string_view home, std::string_view uid)
    : path_(StrCat(PodsFolder(home), "/", uid)) {}

std::string PodFolder::LogFolder(std::string_view container) const {
  return StrCat(path_, "/logs/", container);
}
std::string PodFolder::Log(std::string_view container, int attempt) const {
  return StrCat(LogFolder(container), "/", attempt, ".log");
}
std::string PodFolder::Termination(std::string_view container, int attempt) const {
  return StrCat(path_, "/termination/", RunId(container, attempt));
}

std::string PodsFolder(std::string_view home) { return StrCat(home, "/pods"); }

std::vector<std::string> ListPodFolders(const std::string& home) {
  std::vector<std::string> uids;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(PodsFolder(home), code)) {
    uids.push_back(entry.path().filename().string());
  }
  std::ranges::sort(uids);
  return uids;
}

absl::Status MakePodFolder(const PodFolder& folder) {
  std::error_code code;
  fs::create_directories(fs::path(folder.path()).parent_path(), code);
  TY_RETURN_IF_ERROR(MakeFolder(folder.path(), 0700));
  TY_RETURN_IF_ERROR(MakeFolder(folder.path() + "/logs", 0755));
  return MakeFolder(folder.path() + "/termination", 0755);
}

absl::Status PrepareRun(const PodFolder& folder, std::string_view container, int attempt) {
  TY_RETURN_IF_ERROR(MakeFolder(folder.LogFolder(container), 0755));
  ForgetRun(folder, container, attempt - kKeptRuns);
  const std::string path = folder.Termination(container, attempt);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot make ", path));
  ::fchmod(file.get(), 0666);  // whoever the container runs as
  return absl::OkStatus();
}

void RemovePodFolder(const PodFolder& folder) {
  std::error_code code;
  fs::remove_all(folder.path(), code);
}

absl::Status SavePod(const PodFolder& folder, const SavedPod& saved) {
  return ReplaceFile(folder.PodJson(), PrintJson(Object{{"address", saved.address}, {"pod", saved.pod}}),
                     0600, Durability::kProcess);
}

absl::StatusOr<SavedPod> LoadPod(const PodFolder& folder) {
  TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder.PodJson(), kMaxPodBytes));
  TY_ASSIGN_OR_RETURN(Document document, ParseJson(text));
  Document* pod = Find(document, {"pod"});
  if (pod == nullptr) return absl::DataLossError(StrCat(folder.PodJson(), " holds no pod"));
  std::string address(StringAt(document, {"address"}));
  return SavedPod{.pod = std::move(*pod), .address = std::move(address)};
}

std::optional<StateEvent> ParseStateEvent(std::string_view frame) {
  const auto message = shim::MessageReader::Parse(frame);
  if (!message) return std::nullopt;
  StateEvent event;
  if (message->verb() == shim::kStarted) {
    event.kind = StateEvent::Kind::kStarted;
  } else if (message->verb() == shim::kFailed) {
    event.kind = StateEvent::Kind::kFailed;
  } else if (message->verb() == shim::kExited) {
    event.kind = StateEvent::Kind::kExited;
  } else if (message->verb() == shim::kShim) {
    event.kind = StateEvent::Kind::kShim;
  } else {
    return std::nullopt;
  }
  event.id = message->Get(shim::key::kId);
  event.at = absl::FromUnixNanos(message->Number<std::int64_t>(shim::key::kTime).value_or(0));
  event.pid = message->Number<std::int64_t>(shim::key::kPid).value_or(0);
  event.code = message->Number<int>(shim::key::kCode);
  event.signal = message->Number<int>(shim::key::kSignal);
  event.oom = message->Flag(shim::key::kOom);
  event.error = message->Get(shim::key::kError);
  return event;
}

std::vector<StateEvent> ParseState(std::string_view bytes) {
  std::vector<StateEvent> events;
  while (true) {
    const shim::Frame frame = shim::FindFrame(bytes);
    if (frame.framing != shim::Framing::kWhole) return events;
    if (auto event = ParseStateEvent(bytes.substr(0, frame.size))) events.push_back(*std::move(event));
    bytes.remove_prefix(frame.size);
  }
}

std::vector<StateEvent> ReadState(const PodFolder& folder) {
  const auto bytes = ReadFile(folder.State(), kMaxStateBytes);
  return bytes.ok() ? ParseState(*bytes) : std::vector<StateEvent>();
}

absl::Status AppendLostRuns(const PodFolder& folder, const std::vector<std::string>& ids, absl::Time at) {
  const Fd file(::open(folder.State().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("cannot open ", folder.State()));
  std::string bytes;
  for (const std::string& id : ids) {
    bytes += shim::MessageWriter(shim::kExited)
                 .Add(shim::key::kId, id)
                 .Add(shim::key::kTime, absl::ToUnixNanos(at))
                 .Take();
  }
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, StrCat("cannot write ", folder.State()));
  }
  return absl::OkStatus();
}

RunEnd ToRunEnd(const StateEvent& event, PlanTime now) {
  const absl::Duration ago = std::max(now.wall - event.at, absl::ZeroDuration());
  const SteadyTime seen = SteadyTime::FromNanos(now.steady.nanos() - absl::ToInt64Nanoseconds(ago));
  if (event.kind == StateEvent::Kind::kFailed) return EndOfFailedStart(event.error, event.at, seen);
  if (event.signal) return EndOfSignal(*event.signal, event.oom, event.at, seen);
  if (event.code) return EndOfExit(*event.code, event.at, seen);
  return EndUnknown(event.at, seen);
}

void ReplayState(const std::vector<StateEvent>& events, const PodSpec& spec, PlanTime now,
                 absl::Duration reset, PodRecord& record) {
  for (const StateEvent& event : events) {
    const auto name = ParseRunId(event.id);
    ContainerRecord* container = name ? record.Find(spec, name->container) : nullptr;
    if (container == nullptr) continue;
    if (name->attempt > container->run.attempt) BeginRun(*container, name->attempt);
    if (event.kind == StateEvent::Kind::kStarted) {
      NoteStarted(*container, name->attempt, event.at, now);
    } else {
      NoteEnded(*container, name->attempt, ToRunEnd(event, now), reset);
    }
  }
}

std::string ReadTerminationMessage(const PodFolder& folder, const ContainerSpec& container, int attempt,
                                   bool failed) {
  const std::string path = folder.Termination(container.name, attempt);
  std::string text;
  if (const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); file.valid()) {
    text.resize(kMaxTerminationBytes);
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  if (!text.empty() || !failed || !container.termination_from_logs) return text;
  return LastOutput(folder.Log(container.name, attempt));
}

}  // namespace trainyard::node
