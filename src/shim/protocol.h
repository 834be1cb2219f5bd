// The words that the process node and the shim of a pod speak, and how they are put on the wire.
//
//   message  = length of what follows (4 bytes, little endian), then fields
//   field    = length (4 bytes, little endian), bytes
//
// The first field is the verb, the second the tag: a number that the client chooses and the answer repeats;
// "0" where nobody asked. After them come pairs of key and value. A key may stand several times (arg, env,
// mount); one that is not known is passed over, so that shims outlive an upgrade of the program that started
// them. Numbers are decimal, times are nanoseconds since 1970.
//
// The state file of a pod holds the very same messages, one behind the other.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::shim {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxFields = std::size_t{1} << 16;

// Names in the pod's folder, from which the shim never moves.
inline constexpr std::string_view kSocketName = "shim.sock";
inline constexpr std::string_view kStateName = "state";
inline constexpr std::string_view kConfigName = "config";
inline constexpr std::string_view kHostsName = "hosts";

// What a client asks.
//   hello     version                          -> version, pid; from now on events are sent
//   start     id, arg…, env…, cwd, …           -> at once; what becomes of it is told: started or failed
//   signal    id, signal                       -> to the container's first process; 9 to all of them
//   exec      id, arg…, timeout, output limit  -> code or signal or timeout; output
//   status                                     -> one `container` (a nested list) for each that runs
//   shutdown                                   kills all that it started, answers, and ends
inline constexpr std::string_view kHello = "hello";
inline constexpr std::string_view kStart = "start";
inline constexpr std::string_view kSignal = "signal";
inline constexpr std::string_view kExec = "exec";
inline constexpr std::string_view kStatus = "status";
inline constexpr std::string_view kShutdown = "shutdown";

// What the shim answers. An answer with an error has the key `error`: a sentence.
inline constexpr std::string_view kAnswer = "answer";

// What the shim tells unasked, and writes to the state file before it does.
//   started   id, pid, time
//   failed    id, time, error                  it never ran
//   exited    id, time, code | signal, oom
// In the state file only: `shim` (pid, version) when one begins.
inline constexpr std::string_view kStarted = "started";
inline constexpr std::string_view kFailed = "failed";
inline constexpr std::string_view kExited = "exited";
inline constexpr std::string_view kShim = "shim";

// What the config file of a pod says.
//   namespaces     none | root | user: whose they are
//   own_pids       1: a pid namespace, and with it the certainty that nothing outlives the shim
//   hostname, hosts (1: the folder's hosts file is /etc/hosts), devices (1: /dev is private)
//   address        what the wildcard address is for the pod's processes; empty: left alone
// `trainyard-shim probe` answers with namespaces, own_pids, bind_filter and the reasons.
inline constexpr std::string_view kPod = "pod";

// Keys. Where one stands for several things, the verb says which.
namespace key {
inline constexpr std::string_view kVersion = "version";
inline constexpr std::string_view kPid = "pid";  // as the machine counts, not the pod
inline constexpr std::string_view kError = "error";
inline constexpr std::string_view kTime = "time";
// A run of a container: "main.0", "main.1". Chosen by the client, never used twice.
inline constexpr std::string_view kId = "id";
inline constexpr std::string_view kArg = "arg";  // arg, arg, …: the first is looked up in env's PATH
inline constexpr std::string_view kEnv = "env";  // NAME=value
inline constexpr std::string_view kCwd = "cwd";
inline constexpr std::string_view kUid = "uid";
inline constexpr std::string_view kGid = "gid";
inline constexpr std::string_view kGroup = "group";    // supplementary; none given: as they are
inline constexpr std::string_view kCgroup = "cgroup";  // folders that the process joins
inline constexpr std::string_view kRlimit = "rlimit";  // "7:1024:4096": resource, soft, hard
inline constexpr std::string_view kMount = "mount";    // nested: source, target, read_only
inline constexpr std::string_view kSource = "source";
inline constexpr std::string_view kTarget = "target";
inline constexpr std::string_view kReadOnly = "read_only";
inline constexpr std::string_view kNoNewPrivileges = "no_new_privileges";
inline constexpr std::string_view kLog = "log";  // in the pod's folder
inline constexpr std::string_view kLogBytes = "log_bytes";
inline constexpr std::string_view kLogFiles = "log_files";
inline constexpr std::string_view kTimeout = "timeout";  // of an exec, in milliseconds
inline constexpr std::string_view kOutputLimit = "output_limit";
inline constexpr std::string_view kOutput = "output";
inline constexpr std::string_view kTimedOut = "timed_out";
inline constexpr std::string_view kCode = "code";
inline constexpr std::string_view kSignal = "signal";
inline constexpr std::string_view kOom = "oom";
inline constexpr std::string_view kContainer = "container";
inline constexpr std::string_view kNamespaces = "namespaces";
inline constexpr std::string_view kOwnPids = "own_pids";
inline constexpr std::string_view kHostname = "hostname";
inline constexpr std::string_view kHosts = "hosts";
inline constexpr std::string_view kDevices = "devices";
inline constexpr std::string_view kAddress = "address";
inline constexpr std::string_view kBindFilter = "bind_filter";
// What the machine permits: the reasons why not.
inline constexpr std::string_view kNamespacesReason = "namespaces_reason";
inline constexpr std::string_view kBindFilterReason = "bind_filter_reason";
}  // namespace key

namespace internal {

inline void AppendLength(std::string& out, std::size_t length) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((length >> shift) & 0xff);
}

// The first four bytes, which must be there.
inline std::size_t ReadLength(std::string_view bytes) {
  std::size_t length = 0;
  for (int i = 3; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return length;
}

}  // namespace internal

// Makes one message.
class MessageWriter {
 public:
  explicit MessageWriter(std::string_view verb, std::uint64_t tag = 0) {
    internal::AppendLength(bytes_, 0);
    Field(verb);
    Number(tag);
  }
  MessageWriter& Add(std::string_view key, std::string_view value) {
    Field(key);
    Field(value);
    return *this;
  }
  template <std::integral T>
  MessageWriter& Add(std::string_view key, T value) {
    Field(key);
    Number(value);
    return *this;
  }
  std::string Take() {
    const std::size_t body = bytes_.size() - 4;
    std::string length;
    internal::AppendLength(length, body);
    bytes_.replace(0, 4, length);
    return std::move(bytes_);
  }

 private:
  void Field(std::string_view bytes) {
    internal::AppendLength(bytes_, bytes.size());
    bytes_ += bytes;
  }
  template <std::integral T>
  void Number(T value) {
    char digits[24];
    Field({digits,
           static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits)});
  }
  std::string bytes_;
};

// How the bytes begin.
enum class Framing : std::uint8_t { kWhole, kIncomplete, kGarbage };

struct Frame {
  Framing framing = Framing::kIncomplete;
  std::size_t size = 0;  // of a whole message, with its length
};

inline Frame FindFrame(std::string_view bytes) {
  if (bytes.size() < 4) return {};
  const std::size_t length = internal::ReadLength(bytes);
  if (length > kMaxMessageBytes) return {.framing = Framing::kGarbage};
  if (bytes.size() - 4 < length) return {};
  return {.framing = Framing::kWhole, .size = length + 4};
}

// One message, looked into where it lies; the bytes must outlive it.
class MessageReader {
 public:
  // Nothing: these bytes, a whole frame, are no message.
  static std::optional<MessageReader> Parse(std::string_view frame) {
    MessageReader reader;
    frame.remove_prefix(4);
    while (!frame.empty()) {
      if (frame.size() < 4) return std::nullopt;
      const std::size_t length = internal::ReadLength(frame);
      frame.remove_prefix(4);
      if (length > frame.size() || reader.fields_.size() == kMaxFields) return std::nullopt;
      reader.fields_.push_back(frame.substr(0, length));
      frame.remove_prefix(length);
    }
    if (reader.fields_.size() < 2 || reader.fields_.size() % 2 != 0) return std::nullopt;
    const auto tag = ToNumber<std::uint64_t>(reader.fields_[1]);
    if (!tag) return std::nullopt;
    reader.tag_ = *tag;
    return reader;
  }

  std::string_view verb() const { return fields_[0]; }
  std::uint64_t tag() const { return tag_; }

  // The first value of the key.
  std::optional<std::string_view> Find(std::string_view key) const {
    for (std::size_t i = 2; i < fields_.size(); i += 2) {
      if (fields_[i] == key) return fields_[i + 1];
    }
    return std::nullopt;
  }
  std::string_view Get(std::string_view key, std::string_view otherwise = "") const {
    return Find(key).value_or(otherwise);
  }
  // The number that its value is; nothing if it is none.
  template <std::integral T>
  std::optional<T> Number(std::string_view key) const {
    const auto value = Find(key);
    return value ? ToNumber<T>(*value) : std::nullopt;
  }
  bool Flag(std::string_view key) const { return Get(key) == "1"; }
  std::vector<std::string_view> All(std::string_view key) const {
    std::vector<std::string_view> values;
    for (std::size_t i = 2; i < fields_.size(); i += 2) {
      if (fields_[i] == key) values.push_back(fields_[i + 1]);
    }
    return values;
  }

  template <std::integral T>
  static std::optional<T> ToNumber(std::string_view text) {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

 private:
  std::vector<std::string_view> fields_;
  std::uint64_t tag_ = 0;
};

// A value that is itself a message (mount, container), or nothing.
inline std::optional<MessageReader> ParseNested(std::string_view value) {
  const Frame frame = FindFrame(value);
  if (frame.framing != Framing::kWhole || frame.size != value.size()) return std::nullopt;
  return MessageReader::Parse(value);
}

}  // namespace trainyard::shim
