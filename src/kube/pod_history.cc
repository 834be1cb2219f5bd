#include "kube/pod_history.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/pod_end.h"

namespace trainyard::kube {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr std::size_t kMostKnown = 20'000;
constexpr int kMostLines = 400;
constexpr int kMostRead = 256 << 10;
constexpr int kAttempts = 3;  // somebody else may write it at the same time
constexpr std::string_view kPrefix = "pod-";
// What a kubelet answers instead of a log that it cannot read.
constexpr std::string_view kNoLog = "unable to retrieve container logs for ";

constexpr std::string_view kHistoryLabel = "trainyard.dev/history";
constexpr std::string_view kHistoryOfAnnotation = "trainyard.dev/history-of";

void PutTime(Object& object, std::string_view key, absl::Time time) {
  if (time != absl::InfinitePast()) object[key] = PrintMicroTime(time);
}

absl::Time TimeAt(const Document& document, std::string_view key) {
  return ParseTime(StringAt(document, {key})).value_or(absl::InfinitePast());
}

std::string Print(const GonePod& gone) {
  Object object{{"pod", gone.pod}, {"uid", gone.uid}, {"member", gone.member}, {"cause", gone.cause}};
  if (!gone.node.empty()) object["node"] = gone.node;
  if (gone.exit_code) object["exitCode"] = *gone.exit_code;
  if (gone.signal != 0) object["signal"] = gone.signal;
  if (!gone.reason.empty()) object["reason"] = gone.reason;
  PutTime(object, "began", gone.began);
  PutTime(object, "ended", gone.ended);
  if (!gone.log.empty()) object["log"] = gone.log;
  if (gone.cut) object["cut"] = true;
  return PrintJson(object);
}

std::optional<GonePod> Parse(std::string_view text) {
  const auto document = ParseJson(text);
  if (!document.ok() || StringAt(*document, {"pod"}).empty()) return std::nullopt;
  GonePod gone{.pod = std::string(StringAt(*document, {"pod"})),
               .uid = std::string(StringAt(*document, {"uid"})),
               .member = std::string(StringAt(*document, {"member"})),
               .node = std::string(StringAt(*document, {"node"})),
               .cause = std::string(StringAt(*document, {"cause"})),
               .signal = static_cast<int>(IntAt(*document, {"signal"}).value_or(0)),
               .reason = std::string(StringAt(*document, {"reason"})),
               .began = TimeAt(*document, "began"),
               .ended = TimeAt(*document, "ended"),
               .log = std::string(StringAt(*document, {"log"})),
               .cut = BoolAt(*document, {"cut"})};
  if (const auto code = IntAt(*document, {"exitCode"})) gone.exit_code = static_cast<int>(*code);
  return gone;
}

// What is escaped grows: colours and control characters six times. So the texts as they are stored count, and
// of logs that do not fit together the older ones go first.
Object PrintWithin(std::vector<GonePod> history, const HistoryLimits& limits) {
  std::vector<std::string> texts;
  std::size_t room = limits.bytes;
  for (auto one = history.rbegin(); one != history.rend(); ++one) {
    std::string text = Print(*one);
    while (text.size() > room && !one->log.empty()) {
      const std::size_t over = text.size() - room;
      one->log = LastLines(one->log,
                           one->log.size() - std::min(one->log.size(), std::max<std::size_t>(over / 6, 64)));
      one->cut = true;
      text = Print(*one);
    }
    room -= std::min(room, text.size());
    texts.push_back(std::move(text));
  }
  Object data;
  for (std::size_t i = 0; i < history.size(); ++i)
    data[StrCat(kPrefix, history[i].uid)] = texts[history.size() - 1 - i];
  return data;
}

const ContainerStatus* MainOf(const Leaving& leaving) {
  if (!leaving.container.empty()) return leaving.pod->FindContainer(leaving.container);
  return leaving.pod->containers.empty() ? nullptr : &leaving.pod->containers.front();
}

bool HasLog(const Leaving& leaving) {
  const ContainerStatus* const main = MainOf(leaving);
  return !leaving.lost && main != nullptr &&
         (main->state.kind != ContainerState::Kind::kWaiting || main->last_termination.has_value());
}

Operation LogOperation(const Leaving& leaving) {
  std::string target =
      StrCat(ResourcePath(Resource::Pods(), leaving.pod->meta.ns.view(), leaving.pod->meta.name, "log"),
             "?tailLines=", kMostLines, "&limitBytes=", kMostRead);
  if (const ContainerStatus* const main = MainOf(leaving))
    StrAppend(target, "&container=", main->name.view());
  return {.request = {.target = std::move(target), .accept = "*/*", .timeout = kPatience}};
}

GonePod Describe(const Leaving& leaving, absl::Time now) {
  const CompactPod& pod = *leaving.pod;
  GonePod gone{.pod = pod.meta.name,
               .uid = pod.meta.uid,
               .member = leaving.member,
               .node = std::string(pod.node.view()),
               .cause = leaving.why,
               .reason = std::string(pod.reason.view()),
               .began = pod.start_time.value_or(absl::InfinitePast()),
               .ended = now};
  const ContainerStatus* const main = MainOf(leaving);
  const ContainerState* state = main == nullptr ? nullptr : &main->state;
  if (main != nullptr && state->kind == ContainerState::Kind::kWaiting)
    state = main->last_termination ? &*main->last_termination : nullptr;
  if (state == nullptr) return gone;
  if (state->started) gone.began = *state->started;
  if (state->kind != ContainerState::Kind::kTerminated) return gone;
  gone.exit_code = state->exit_code;
  gone.signal = state->signal;
  if (gone.reason.empty() && state->reason.view() != "Error" && state->reason.view() != "Completed")
    gone.reason = std::string(state->reason.view());
  if (state->finished) gone.ended = *state->finished;
  const std::string end = DescribeEnd(pod);
  if (gone.cause.find(end) == std::string::npos)
    gone.cause = gone.cause.empty() ? end : StrCat(end, "; ", gone.cause);
  return gone;
}

}  // namespace

std::string HistoryName(std::string_view kind, std::string_view job) {
  return StrCat(job, ".", kind, ".history");
}

std::string LastLines(std::string_view text, std::size_t most_bytes, bool* cut) {
  if (cut != nullptr) *cut = text.size() > most_bytes;
  if (text.size() <= most_bytes) return ToUtf8(text);
  std::string_view end = text.substr(text.size() - most_bytes);
  // Not in the middle of a character.
  while (!end.empty() && (static_cast<unsigned char>(end.front()) & 0xc0U) == 0x80U) end.remove_prefix(1);
  const std::size_t line = end.find('\n');
  if (text[text.size() - most_bytes - 1] != '\n' && line != std::string_view::npos && line + 1 < end.size())
    end.remove_prefix(line + 1);
  return ToUtf8(end);
}

std::vector<GonePod> ParseHistory(const Document& config_map) {
  std::vector<GonePod> history;
  const Object* const data = ObjectAt(config_map, {"data"});
  if (data == nullptr) return history;
  for (const auto& member : *data) {
    if (!Key(member).starts_with(kPrefix) || !member.value().is_string()) continue;
    if (auto gone = Parse(Text(member.value()))) history.push_back(*std::move(gone));
  }
  std::ranges::stable_sort(history, {}, &GonePod::ended);
  return history;
}

Document AddToHistory(const Document* present, const HistoryOwner& owner, std::vector<GonePod> gone,
                      const HistoryLimits& limits) {
  std::vector<GonePod> history = present == nullptr ? std::vector<GonePod>() : ParseHistory(*present);
  for (GonePod& one : gone) {
    one.log = LastLines(one.log, limits.bytes_per_log, one.cut ? nullptr : &one.cut);
    const auto known = std::ranges::find(history, one.uid, &GonePod::uid);
    if (known == history.end()) {
      history.push_back(std::move(one));
      continue;
    }
    // Why it goes is known best when it begins to go, and how it ended when it has.
    if (one.cause.empty() || known->cause.find(one.cause) != std::string::npos) {
      one.cause = known->cause;
    } else if (one.cause.find(known->cause) == std::string::npos) {
      StrAppend(one.cause, "; ", known->cause);
    }
    if (one.log.empty()) {
      one.log = known->log;
      one.cut = known->cut;
    }
    *known = std::move(one);
  }
  std::ranges::stable_sort(history, {}, &GonePod::ended);
  if (history.size() > limits.pods)
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(limits.pods));
  Object data = PrintWithin(std::move(history), limits);
  Object meta{{"name", HistoryName(owner.kind, owner.job)},
              {"namespace", owner.ns},
              {"labels", Object{{kHistoryLabel, "true"}}},
              {"annotations", Object{{kHistoryOfAnnotation, StrCat(owner.kind, "/", owner.job)}}},
              {"ownerReferences", Array{owner.reference}}};
  if (present != nullptr) meta["resourceVersion"] = StringAt(*present, {"metadata", "resourceVersion"});
  return Object{
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", std::move(meta)}, {"data", std::move(data)}};
}

PodHistory::PodHistory(Transport& transport, Clock& clock, HistoryLimits limits)
    : clock_(clock),
      limits_(limits),
      api_(transport, clock, IdSource::Random(), {.attempts = 1}),
      known_(kMostKnown) {}

bool PodHistory::IsNews(const CompactPod& pod) {
  const Known now = pod.IsFinished() ? Known::kHowItEnded : Known::kThatItGoes;
  const MutexLock lock(mu_);
  return known_.Use(pod.meta.uid) < now;
}

void PodHistory::Learn(const std::vector<GonePod>& gone) {
  const MutexLock lock(mu_);
  for (const GonePod& one : gone)
    known_.Use(one.uid) = one.finished ? Known::kHowItEnded : Known::kThatItGoes;
}

std::vector<GonePod> PodHistory::Collect(const std::vector<Leaving>& pods) {
  std::vector<GonePod> gone;
  std::vector<Operation> reads;
  std::vector<std::size_t> read_of;
  for (const Leaving& leaving : pods) {
    if (!IsNews(*leaving.pod)) continue;
    gone.push_back(Describe(leaving, clock_.Now()));
    gone.back().finished = leaving.pod->IsFinished();
    if (!HasLog(leaving)) continue;
    reads.push_back(LogOperation(leaving));
    read_of.push_back(gone.size() - 1);
  }
  if (reads.empty()) return gone;
  const auto answers = api_.Do(std::move(reads));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    GonePod& one = gone[read_of[i]];
    if (answers[i].ok() && !answers[i]->starts_with(kNoLog))
      one.log = LastLines(*answers[i], limits_.bytes_per_log, &one.cut);
  }
  return gone;
}

absl::Status PodHistory::Store(const HistoryOwner& owner, const std::vector<GonePod>& gone) {
  if (gone.empty()) return absl::OkStatus();
  const ObjectKey key{owner.ns, HistoryName(owner.kind, owner.job)};
  absl::Status stored;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto text = api_.Get(Resource::ConfigMaps(), key);
    if (!text.ok() && !kube::IsNotFound(text.status())) return text.status();
    std::optional<Document> present;
    if (text.ok()) {
      TY_ASSIGN_OR_RETURN(present, ParseJson(*text));
      // Somebody else's, or of a job of that name that is gone and goes itself.
      const Array* const owners = ArrayAt(*present, {"metadata", "ownerReferences"});
      const bool ours = owners != nullptr && owners->size() == 1 &&
                        StringAt(owners->front(), {"uid"}) == StringAt(owner.reference, {"uid"});
      if (!ours)
        return absl::AlreadyExistsError(StrCat("ConfigMap ", key.Str(), " belongs to something else"));
    }
    std::string next = PrintJson(AddToHistory(present ? &*present : nullptr, owner, gone, limits_));
    stored = present ? api_.Update(Resource::ConfigMaps(), key, std::move(next)).status()
                     : api_.Create(Resource::ConfigMaps(), owner.ns, std::move(next)).status();
    if (stored.ok()) Learn(gone);
    if (!kube::IsConflict(stored) && !kube::IsAlreadyExists(stored)) return stored;
  }
  return stored;
}

absl::StatusOr<std::vector<GonePod>> ReadHistory(Api& api, std::string_view ns, std::string_view kind,
                                                 std::string_view job, std::string_view uid) {
  const auto text = api.Get(Resource::ConfigMaps(), {std::string(ns), HistoryName(kind, job)});
  if (kube::IsNotFound(text.status())) return std::vector<GonePod>();
  TY_RETURN_IF_ERROR(text.status());
  TY_ASSIGN_OR_RETURN(const Document config_map, ParseJson(*text));
  const Array* const owners = ArrayAt(config_map, {"metadata", "ownerReferences"});
  const bool own = owners != nullptr && !owners->empty() && StringAt(owners->front(), {"uid"}) == uid;
  return own ? ParseHistory(config_map) : std::vector<GonePod>();
}

}  // namespace trainyard::kube
