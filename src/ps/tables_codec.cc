// The values of the tables as JSON, both ways.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/document.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "ps/tables.h"
#include "ps/tables_reader.h"

namespace trainyard::ps {
namespace {

using Word = std::string_view;

constexpr std::pair<Word, JobState> kStates[] = {{"waiting", JobState::kWaiting},
                                                 {"running", JobState::kRunning},
                                                 {"complete", JobState::kComplete},
                                                 {"failed", JobState::kFailed}};

template <typename Value, std::size_t count>
std::string_view WordOf(Value value, const std::pair<Word, Value> (&words)[count]) {
  for (const auto& [word, meant] : words) {
    if (meant == value) return word;
  }
  return "";
}

// A text as JSON can hold it: messages may have any bytes.
Document TextOf(std::string_view text) { return Document(ToUtf8(text)); }

template <typename T, typename Read>
absl::StatusOr<T> ReadWhole(std::string_view text, const Read& read) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(text));
  return read(document);
}

Document ToJson(const Checkpoint& checkpoint) {
  Object object{{"step", checkpoint.step},
                {"file", TextOf(checkpoint.file)},
                {"bytes", checkpoint.bytes},
                {"crc32c", checkpoint.crc32c},
                {"layout", TextOf(checkpoint.layout)}};
  if (checkpoint.nonfinite) object["nonfinite"] = true;
  return object;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const Document& document) {
  ObjectReader reader(document);
  Checkpoint checkpoint{.step = reader.Int("step", 0),
                        .file = reader.Text("file"),
                        .bytes = static_cast<std::uint64_t>(reader.Int("bytes", 0)),
                        .crc32c = static_cast<std::uint32_t>(
                            reader.Int("crc32c", 0, std::numeric_limits<std::uint32_t>::max())),
                        .layout = reader.Text("layout"),
                        .nonfinite = reader.Optional("nonfinite") != nullptr && reader.Bool("nonfinite")};
  if (checkpoint.file.empty()) reader.Fail("file", "is empty");
  TY_RETURN_IF_ERROR(reader.Finish());
  return checkpoint;
}

Document ToJson(const OutputValue& value) {
  Array dims;
  for (const std::int64_t size : value.dims) dims.emplace_back(size);
  Array values;
  for (const double number : value.values) values.push_back(NumberDocument(number));
  return Object{{"name", TextOf(value.name)}, {"dims", std::move(dims)}, {"values", std::move(values)}};
}

absl::StatusOr<OutputValue> ReadOutputValue(const Document& document) {
  ObjectReader reader(document);
  OutputValue value{.name = reader.Text("name"), .dims = reader.Dims("dims")};
  if (!graph::IsName(value.name)) reader.Fail("name", "is no name of a variable");
  for (const Document& number : reader.List("values")) {
    const std::optional<double> read = NumberOf(number);
    if (!read) reader.Fail("values", "has something that is no number");
    value.values.push_back(read.value_or(0));
  }
  if (value.values.size() > kMaxOutputValues ||
      static_cast<std::int64_t>(value.values.size()) > value.dims.Count()) {
    reader.Fail("values", "has more numbers than its dims say, or than are kept");
  }
  TY_RETURN_IF_ERROR(reader.Finish());
  return value;
}

std::string TimeToText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

absl::Time ReadTime(ObjectReader& reader, std::string_view name) {
  const std::string text = reader.Text(name);
  absl::Time time;
  std::string error;
  // The library also takes white space, other zones and words for infinity.
  const bool parsed = absl::ParseTime(absl::RFC3339_full, text, &time, &error);
  if (!parsed || TimeToText(time) != text || time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    reader.Fail(name, "is no time in UTC");
  }
  return time;
}

int ReadGraphs(ObjectReader& reader, std::string_view name, int least) {
  return static_cast<int>(reader.Int(name, least, kMostGraphs));
}

std::optional<PreviousLayout> ReadPrevious(ObjectReader& reader, std::string_view name) {
  const Document* document = reader.Optional(name);
  if (document == nullptr) return std::nullopt;
  ObjectReader inner(*document);
  PreviousLayout previous{.layout = inner.Text("layout"),
                          .pservers = ReadGraphs(inner, "pservers", 1),
                          .step = inner.Int("step", 0)};
  reader.Fail(name, inner.Finish());
  return previous;
}

// A job from before there was a choice has none.
graph::OnNonFinite ReadOnNonFinite(ObjectReader& reader, std::string_view name) {
  if (reader.Optional(name) == nullptr) return graph::OnNonFinite::kFail;
  const std::optional<graph::OnNonFinite> policy = graph::ParseOnNonFinite(reader.Text(name));
  if (!policy) reader.Fail(name, "is a word that is not known");
  return policy.value_or(graph::OnNonFinite::kFail);
}

absl::StatusOr<JobMeta> ReadMeta(const Document& document) {
  ObjectReader reader(document);
  JobMeta meta{.state = reader.OneOf<JobState>("state", kStates),
               .reason = reader.Text("reason"),
               .foreground = reader.Bool("foreground"),
               .mode = reader.OneOf<graph::SyncMode>("mode", kSyncModes),
               .trainers = ReadGraphs(reader, "trainers", 1),
               .least_trainers = ReadGraphs(reader, "least_trainers", 0),
               .most_trainers = ReadGraphs(reader, "most_trainers", 0),
               .slots = ReadGraphs(reader, "slots", 0),
               .pservers = ReadGraphs(reader, "pservers", 1),
               .generation = reader.Int("generation", 1),
               .rolled_back_to = reader.OptionalInt("rolled_back_to", 0),
               .rolled_back_in = reader.Int("rolled_back_in", 0),
               .layout = reader.Text("layout"),
               .previous = ReadPrevious(reader, "previous"),
               .on_nonfinite = ReadOnNonFinite(reader, "on_nonfinite"),
               .checkpoint_every = reader.Int("checkpoint_every", 1),
               .checkpoints_asked = reader.Int("checkpoints_asked", 0),
               .checkpoints_made = reader.Int("checkpoints_made", 0),
               .passes = reader.Int("passes", 1),
               .steps = reader.Int("steps", 0)};
  if (meta.slots != 0 && meta.slots < meta.trainers && meta.mode == graph::SyncMode::kSync)
    reader.Fail("slots", "is less than there are trainers");
  TY_RETURN_IF_ERROR(reader.Finish());
  return meta;
}

bool IsHost(std::string_view text) {
  constexpr std::size_t kMost = 255;
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  return !text.empty() && text.size() <= kMost && printable;
}

absl::StatusOr<GraphPod> ReadPod(const Document& document) {
  ObjectReader reader(document);
  GraphPod pod{.pod_name = reader.Text("pod_name"),
               .pod_ip = reader.Text("pod_ip"),
               .pod_port = static_cast<int>(reader.Int("pod_port", 0, 65535)),
               .incarnation = reader.Int("incarnation", 0)};
  if (pod.pod_name.empty()) reader.Fail("pod_name", "is empty");
  if (!IsHost(pod.pod_ip)) reader.Fail("pod_ip", "is no address");
  TY_RETURN_IF_ERROR(reader.Finish());
  return pod;
}

absl::StatusOr<GraphCheckpoints> ReadCheckpoints(const Document& document) {
  ObjectReader reader(document);
  GraphCheckpoints checkpoints;
  for (const Document& value : reader.List("kept")) {
    absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(value);
    reader.Fail("kept", checkpoint.status());
    if (!checkpoint.ok()) break;
    if (!checkpoints.kept.empty() && checkpoints.kept.back().step > checkpoint->step) {
      reader.Fail("kept", "is not in the order of steps");
    }
    checkpoints.kept.push_back(*std::move(checkpoint));
  }
  TY_RETURN_IF_ERROR(reader.Finish());
  return checkpoints;
}

absl::StatusOr<Output> ReadOutput(const Document& document) {
  ObjectReader reader(document);
  Output output{.generation = reader.Int("generation", 0),
                .pass = reader.Int("pass", 0),
                .step = reader.Int("step", 0),
                .time = ReadTime(reader, "time"),
                // One from before this was told counts.
                .committed = reader.Optional("committed") == nullptr || reader.Bool("committed")};
  for (const Document& value : reader.List("values")) {
    absl::StatusOr<OutputValue> read = ReadOutputValue(value);
    reader.Fail("values", read.status());
    if (!read.ok()) break;
    output.values.push_back(*std::move(read));
  }
  TY_RETURN_IF_ERROR(reader.Finish());
  return output;
}

}  // namespace

std::string EncodeMeta(const JobMeta& meta) {
  Object object{{"state", WordOf(meta.state, kStates)},
                {"reason", TextOf(meta.reason)},
                {"foreground", meta.foreground},
                {"mode", WordOf(meta.mode, kSyncModes)},
                {"trainers", meta.trainers},
                {"least_trainers", meta.least_trainers},
                {"most_trainers", meta.most_trainers},
                {"slots", meta.slots},
                {"pservers", meta.pservers},
                {"generation", meta.generation}};
  if (meta.rolled_back_to) object["rolled_back_to"] = *meta.rolled_back_to;
  object["rolled_back_in"] = meta.rolled_back_in;
  object["layout"] = TextOf(meta.layout);
  if (meta.previous) {
    object["previous"] = Object{{"layout", TextOf(meta.previous->layout)},
                                {"pservers", meta.previous->pservers},
                                {"step", meta.previous->step}};
  }
  object["on_nonfinite"] = graph::Name(meta.on_nonfinite);
  object["checkpoint_every"] = meta.checkpoint_every;
  object["checkpoints_asked"] = meta.checkpoints_asked;
  object["checkpoints_made"] = meta.checkpoints_made;
  object["passes"] = meta.passes;
  object["steps"] = meta.steps;
  return PrintJson(object);
}

absl::StatusOr<JobMeta> DecodeMeta(std::string_view text) { return ReadWhole<JobMeta>(text, ReadMeta); }

std::string EncodePod(const GraphPod& pod) {
  return PrintJson(Object{{"pod_name", TextOf(pod.pod_name)},
                          {"pod_ip", TextOf(pod.pod_ip)},
                          {"pod_port", pod.pod_port},
                          {"incarnation", pod.incarnation}});
}

absl::StatusOr<GraphPod> DecodePod(std::string_view text) { return ReadWhole<GraphPod>(text, ReadPod); }

std::string EncodeCheckpoints(const GraphCheckpoints& checkpoints) {
  Array kept;
  for (const Checkpoint& checkpoint : checkpoints.kept) kept.push_back(ToJson(checkpoint));
  return PrintJson(Object{{"kept", std::move(kept)}});
}

absl::StatusOr<GraphCheckpoints> DecodeCheckpoints(std::string_view text) {
  return ReadWhole<GraphCheckpoints>(text, ReadCheckpoints);
}

std::string EncodeOutput(const Output& output) {
  Array values;
  for (const OutputValue& value : output.values) values.push_back(ToJson(value));
  return PrintJson(Object{{"generation", output.generation},
                          {"pass", output.pass},
                          {"step", output.step},
                          {"time", TimeToText(output.time)},
                          {"committed", output.committed},
                          {"values", std::move(values)}});
}

absl::StatusOr<Output> DecodeOutput(std::string_view text) { return ReadWhole<Output>(text, ReadOutput); }

}  // namespace trainyard::ps
