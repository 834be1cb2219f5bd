// Numbers are varints, of which signed ones are zigzagged; texts and lists have their length before them; a
// variant has its place before it. The order of the fields is the format: a change of it is another kVersion.
#include "tasks/codec.h"

#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>

#include "base/status.h"
#include "base/text.h"

namespace trainyard::tasks {
namespace {

constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kVersionWithoutFailed = 1;  // which checkpoints of earlier releases have
constexpr int kBitsOfByte = 7;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void Number(std::uint64_t number) {
    while (number >= 1U << kBitsOfByte) {
      out_ += static_cast<char>(number | 1U << kBitsOfByte);
      number >>= kBitsOfByte;
    }
    out_ += static_cast<char>(number);
  }
  void Text(const std::string& text) {
    Number(text.size());
    out_ += text;
  }

 private:
  std::string& out_;
};

// After the first thing that is wrong all is zero, and ok() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  void Number(std::uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < std::numeric_limits<std::uint64_t>::digits; shift += kBitsOfByte) {
      if (bytes_.empty()) return Break();
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & ((1U << kBitsOfByte) - 1)) << shift;
      if (byte >> kBitsOfByte == 0) return;
    }
    Break();
  }
  void Text(std::string& text) {
    std::uint64_t size = 0;
    Number(size);
    if (size > bytes_.size()) return Break();
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  void Break() {
    ok_ = false;
    bytes_ = {};
  }

  bool ok() const { return ok_; }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// Each Walk() goes through the fields of a value, for both directions.
template <typename A, std::unsigned_integral T>
void Walk(A& a, T& number) {
  if constexpr (std::same_as<A, Writer>) {
    a.Number(number);
  } else {
    std::uint64_t wide = 0;
    a.Number(wide);
    number = static_cast<T>(wide);
    if (number != wide) a.Break();
  }
}

template <typename A, std::signed_integral T>
void Walk(A& a, T& number) {
  if constexpr (std::same_as<A, Writer>) {
    const auto wide = static_cast<std::int64_t>(number);
    a.Number(static_cast<std::uint64_t>(wide) << 1U ^ static_cast<std::uint64_t>(wide >> 63));
  } else {
    std::uint64_t folded = 0;
    a.Number(folded);
    const auto wide = static_cast<std::int64_t>(folded >> 1U) ^ -static_cast<std::int64_t>(folded & 1U);
    number = static_cast<T>(wide);
    if (number != wide) a.Break();
  }
}

template <typename A>
void Walk(A& a, std::string& text) {
  a.Text(text);
}

template <typename A>
void Walk(A& a, Kind& kind) {
  auto number = static_cast<std::uint64_t>(kind);
  Walk(a, number);
  if constexpr (std::same_as<A, Reader>) {
    if (number >= kKinds) return a.Break();
    kind = static_cast<Kind>(number);
  }
}

template <typename A, typename T>
void Walk(A& a, std::optional<T>& value) {
  bool there = value.has_value();
  Walk(a, there);
  if (!there) return;
  if constexpr (std::same_as<A, Reader>) value.emplace();
  Walk(a, *value);
}

template <typename A, typename T>
void Walk(A& a, std::vector<T>& list) {
  std::uint64_t size = list.size();
  Walk(a, size);
  if constexpr (std::same_as<A, Reader>) {
    // Each takes a byte at the least: nothing is allocated that the bytes do not have.
    if (size > a.rest().size()) return a.Break();
    list.resize(size);
  }
  for (T& item : list) Walk(a, item);
}

template <typename A>
void Walk(A& a, std::map<std::int64_t, std::int64_t>& map) {
  std::vector<std::pair<std::int64_t, std::int64_t>> list(map.begin(), map.end());
  Walk(a, list);
  if constexpr (std::same_as<A, Reader>) map = {list.begin(), list.end()};
}

template <typename A, typename First, typename Second>
void Walk(A& a, std::pair<First, Second>& both) {
  Walk(a, both.first);
  Walk(a, both.second);
}

template <typename A, typename... Fields>
void WalkAll(A& a, Fields&... fields) {
  (Walk(a, fields), ...);
}

template <typename A>
void Walk(A& a, Range& v) {
  WalkAll(a, v.begin, v.end);
}
template <typename A>
void Walk(A& a, StreamOptions& v) {
  WalkAll(a, v.records, v.records_per_task, v.epochs, v.seed, v.overlap);
}
template <typename A>
void Walk(A& a, Piece& v) {
  WalkAll(a, v.epoch, v.records, v.failures);
}
template <typename A>
void Walk(A& a, Stream::State& v) {
  WalkAll(a, v.options, v.epoch, v.next, v.done, v.unended, v.returned, v.stopped);
}
template <typename A>
void Walk(A& a, Task& v) {
  WalkAll(a, v.id, v.kind, v.epoch, v.records, v.version, v.failures);
}
template <typename A>
void Walk(A& a, Queue::Leased& v) {
  WalkAll(a, v.task, v.worker);
}
template <typename A>
void Walk(A& a, double& number) {
  auto bits = std::bit_cast<std::uint64_t>(number);
  Walk(a, bits);
  number = std::bit_cast<double>(bits);
}
template <typename A>
void Walk(A& a, Metric& v) {
  WalkAll(a, v.name, v.value);
}
template <typename A>
void Walk(A& a, Queue::FailedRange& v) {
  WalkAll(a, v.kind, v.epoch, v.end, v.workers);
}
template <typename A>
void Walk(A& a, Queue::State& v) {
  WalkAll(a, v.options.most_failures, v.next_id);
  for (auto& stream : v.streams) Walk(a, stream);
  WalkAll(a, v.evaluated_version, v.metrics, v.leased, v.workers, v.failure);
}

template <typename A>
void Walk(A& a, Begin& v) {
  WalkAll(a, v.kind, v.options, v.version);
}
template <typename A>
void Walk(A& a, Stop& v) {
  Walk(a, v.kind);
}
template <typename A>
void Walk(A& a, Join& v) {
  WalkAll(a, v.worker, v.incarnation);
}
template <typename A>
void Walk(A& a, Leave& v) {
  Walk(a, v.worker);
}
template <typename A>
void Walk(A& a, Lease& v) {
  Walk(a, v.worker);
}
template <typename A>
void Walk(A& a, Advance& v) {
  WalkAll(a, v.task, v.until);
}
template <typename A>
void Walk(A& a, Finish& v) {
  WalkAll(a, v.worker, v.task, v.metrics);
}
template <typename A>
void Walk(A& a, Keep& v) {
  WalkAll(a, v.task, v.until);
}
template <typename A>
void Walk(A& a, Return& v) {
  WalkAll(a, v.worker, v.task);
}
template <typename A>
void Walk(A& a, Fail& v) {
  WalkAll(a, v.worker, v.task, v.error);
}
template <typename A>
void Walk(A&, Recall&) {}

// The alternative of that place, from the bytes.
template <std::size_t Place = 0>
Command ReadCommand(Reader& reader, std::uint64_t place) {
  if constexpr (Place < std::variant_size_v<Command>) {
    if (place != Place) return ReadCommand<Place + 1>(reader, place);
    std::variant_alternative_t<Place, Command> command;
    Walk(reader, command);
    return command;
  } else {
    reader.Break();
    return Recall();
  }
}

bool IsSound(const StreamOptions& options) {
  return options.records >= 0 && options.records_per_task > 0 && options.records_per_task <= UINT32_MAX &&
         options.epochs <= INT32_MAX;
}

}  // namespace

void Append(const Command& command, std::string& out) {
  Writer writer(out);
  writer.Number(command.index());
  // Walk() changes nothing that it writes.
  std::visit([&](const auto& one) { Walk(writer, const_cast<std::remove_cvref_t<decltype(one)>&>(one)); },
             command);
}

absl::StatusOr<Command> TakeCommand(std::string_view& bytes) {
  Reader reader(bytes);
  std::uint64_t place = 0;
  reader.Number(place);
  Command command = ReadCommand(reader, place);
  if (const auto* begin = std::get_if<Begin>(&command); begin != nullptr && !IsSound(begin->options))
    reader.Break();
  if (!reader.ok()) return absl::DataLossError("a command of the task queue cannot be read");
  bytes = reader.rest();
  return command;
}

std::string Encode(const Queue::State& state) {
  std::string out;
  Writer writer(out);
  writer.Number(kVersion);
  Walk(writer, const_cast<Queue::State&>(state));
  Walk(writer, const_cast<Queue::State&>(state).failed);
  return out;
}

absl::StatusOr<Queue::State> DecodeState(std::string_view bytes) {
  Reader reader(bytes);
  std::uint64_t version = 0;
  reader.Number(version);
  if (reader.ok() && version != kVersion && version != kVersionWithoutFailed) {
    return absl::DataLossError(
        StrCat("the state of the task queue is of version ", version, ", and ", kVersion, " can be read"));
  }
  Queue::State state;
  Walk(reader, state);
  if (version != kVersionWithoutFailed) Walk(reader, state.failed);
  for (const auto& stream : state.streams) {
    if (stream && !IsSound(stream->options)) reader.Break();
  }
  for (const Queue::Leased& leased : state.leased) {
    if (!state.streams[static_cast<int>(leased.task.kind)] || leased.task.records.size() <= 0 ||
        leased.task.records.size() > UINT32_MAX || leased.task.epoch > INT32_MAX)
      reader.Break();
  }
  if (!reader.ok() || !reader.rest().empty())
    return absl::DataLossError("the state of the task queue cannot be read");
  return state;
}

}  // namespace trainyard::tasks
