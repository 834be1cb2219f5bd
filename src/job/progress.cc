#include "job/progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "job/job_status.h"
#include "job/status_document.h"

namespace trainyard::job {
namespace {

constexpr std::pair<WorkPhase, std::string_view> kWorkPhases[] = {
    {WorkPhase::kPending, "Pending"},       {WorkPhase::kStarting, "Starting"},
    {WorkPhase::kTraining, "Training"},     {WorkPhase::kEvaluating, "Evaluating"},
    {WorkPhase::kPredicting, "Predicting"}, {WorkPhase::kEnding, "Ending"},
    {WorkPhase::kComplete, "Complete"},     {WorkPhase::kRunning, "Running"},
    {WorkPhase::kRestarting, "Restarting"}, {WorkPhase::kCancelling, "Cancelling"},
    {WorkPhase::kSucceeded, "Succeeded"},   {WorkPhase::kCancelled, "Cancelled"},
    {WorkPhase::kFailed, "Failed"}};
constexpr std::pair<MemberRole, std::string_view> kRoles[] = {{MemberRole::kPs, "ps"},
                                                              {MemberRole::kChief, "chief"},
                                                              {MemberRole::kWorker, "worker"},
                                                              {MemberRole::kEvaluator, "evaluator"}};

template <typename T, std::size_t N>
std::string_view NameIn(const std::pair<T, std::string_view> (&all)[N], T value) {
  const auto found = std::ranges::find(all, value, &std::pair<T, std::string_view>::first);
  return found == std::end(all) ? "" : found->second;
}
template <typename T, std::size_t N>
std::optional<T> FindName(const std::pair<T, std::string_view> (&all)[N], std::string_view name) {
  const auto found = std::ranges::find(all, name, &std::pair<T, std::string_view>::second);
  return found == std::end(all) ? std::nullopt : std::optional(found->first);
}

std::string PrintMillis(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

int NumberIn(const Document& object, std::string_view key, int otherwise = 0) {
  const auto number = IntAt(object, {key});
  return number && std::in_range<int>(*number) ? static_cast<int>(*number) : otherwise;
}
std::string TextIn(const Document& object, std::string_view key) {
  return std::string(StringAt(object, {key}));
}
std::optional<absl::Time> TimeIn(const Document& object, std::string_view key) {
  const auto time = TimeAt(object, {key});
  return time && *time >= absl::UnixEpoch() ? time : std::nullopt;
}
const Array& ListIn(const Document& object, std::string_view key) {
  static const Array kNothing;
  const Array* const list = ArrayAt(object, {key});
  return list == nullptr ? kNothing : *list;
}
const Object& MapIn(const Document& object, std::string_view key) {
  static const Object kNothing;
  const Object* const map = ObjectAt(object, {key});
  return map == nullptr ? kNothing : *map;
}

// ---- Of a master

using Field = std::pair<std::string_view, std::int64_t Progress::*>;
constexpr Field kFields[] = {{"epoch", &Progress::epoch},
                             {"epochs", &Progress::epochs},
                             {"records", &Progress::records},
                             {"epochRecords", &Progress::epoch_records},
                             {"totalRecords", &Progress::total_records},
                             {"version", &Progress::version},
                             {"evaluated", &Progress::evaluated}};

void AddTraining(Object& object, const Progress& progress) {
  for (const auto& [name, field] : kFields) object[name] = progress.*field;
  Object metrics;
  for (const auto& [name, value] : progress.metrics) metrics[name] = NumberDocument(value);
  Object members;
  for (const auto& [id, member] : progress.members) {
    Object one{{"records", member.records}, {"version", member.version}};
    if (member.rate) one["rate"] = *member.rate;
    members[Print(id)] = std::move(one);
  }
  object["metrics"] = std::move(metrics);
  object["members"] = std::move(members);
  object["workers"] = progress.workers;
  object["pservers"] = progress.pservers;
  object["checkpoint"] = progress.checkpoint;
  object["waiting"] = progress.waiting;
  object["masterRestarts"] = Print(progress.master_restarts);
  if (progress.rate) object["rate"] = *progress.rate;
  if (progress.loss) object["loss"] = NumberDocument(*progress.loss);
  if (progress.nonfinite > 0) {
    object["nonFinite"] = progress.nonfinite;
    object["lastNonFinite"] = progress.last_nonfinite;
  }
  Object settled;
  for (const auto& [group, attempts] : progress.settled) settled[group] = PrintAttempts(attempts);
  if (!settled.empty()) object["settled"] = std::move(settled);
}

void ParseTraining(const Document& document, Progress& progress) {
  for (const auto& [name, field] : kFields)
    progress.*field = IntAt(document, {name}).value_or(progress.*field);
  for (const auto& metric : MapIn(document, "metrics")) {
    if (const auto value = NumberOf(metric.value()))
      progress.metrics.push_back({.name = std::string(Key(metric)), .value = *value});
  }
  for (const auto& member : MapIn(document, "members")) {
    if (const auto id = ParseMember(Key(member)))
      progress.members[*id] = {.records = LongAt(member.value(), {"records"}),
                               .version = LongAt(member.value(), {"version"}),
                               .rate = NumberAt(member.value(), {"rate"})};
  }
  progress.workers = NumberIn(document, "workers");
  progress.pservers = NumberIn(document, "pservers");
  progress.checkpoint = TextIn(document, "checkpoint");
  progress.waiting = TextIn(document, "waiting");
  if (const Document* const restarts = Find(document, {"masterRestarts"}))
    progress.master_restarts = ParseMasterRestarts(*restarts);
  progress.rate = NumberAt(document, {"rate"});
  progress.loss = NumberAt(document, {"loss"});
  progress.nonfinite = LongAt(document, {"nonFinite"});
  progress.last_nonfinite = TextIn(document, "lastNonFinite");
  for (const auto& group : MapIn(document, "settled")) {
    if (auto attempts = ParseAttempts(Text(group.value())))
      progress.settled[std::string(Key(group))] = *attempts;
  }
}

// ---- Of a launcher

void AddScripts(Object& object, const Progress& progress) {
  Array members;
  for (const auto& [id, member] : progress.members)
    members.push_back(Object{{"name", Print(id)},
                             {"pod", member.pod},
                             {"lost", member.lost},
                             {"attempt", member.attempt},
                             {"done", member.done},
                             {"state", member.state}});
  Array present;
  for (const MemberId& member : progress.present) present.emplace_back(Print(member));
  Array history;
  for (const ScriptRestart& restart : progress.history)
    history.push_back(Object{{"time", PrintMillis(restart.time)},
                             {"attempt", restart.attempt},
                             {"member", restart.member},
                             {"cause", restart.cause}});
  object["attempt"] = progress.attempt;
  object["restarts"] = progress.restarts;
  object["running"] = progress.running;
  object["members"] = std::move(members);
  object["present"] = std::move(present);
  object["since"] = PrintMillis(progress.since);
  object["history"] = std::move(history);
  if (progress.started) object["started"] = PrintMillis(*progress.started);
  if (progress.ended) object["ended"] = PrintMillis(*progress.ended);
}

void ParseScripts(const Document& document, Progress& progress) {
  progress.attempt = NumberIn(document, "attempt", 1);
  progress.restarts = NumberIn(document, "restarts");
  progress.running = NumberIn(document, "running");
  progress.since = TimeIn(document, "since").value_or(absl::UnixEpoch());
  progress.started = TimeIn(document, "started");
  progress.ended = TimeIn(document, "ended");
  for (const Document& item : ListIn(document, "members")) {
    if (const auto id = ParseMember(StringAt(item, {"name"})))
      progress.members[*id] = {.pod = TextIn(item, "pod"),
                               .lost = TextIn(item, "lost"),
                               .attempt = NumberIn(item, "attempt"),
                               .done = NumberIn(item, "done"),
                               .state = TextIn(item, "state")};
  }
  for (const Document& item : ListIn(document, "present")) {
    const auto id = ParseMember(Text(item));
    if (id && progress.members.contains(*id)) progress.present.push_back(*id);
  }
  for (const Document& item : ListIn(document, "history")) {
    progress.history.push_back({.time = TimeIn(item, "time").value_or(absl::UnixEpoch()),
                                .attempt = NumberIn(item, "attempt"),
                                .member = TextIn(item, "member"),
                                .cause = TextIn(item, "cause")});
  }
}

}  // namespace

std::string_view Print(WorkPhase phase) { return NameIn(kWorkPhases, phase); }

bool IsOver(WorkPhase phase) {
  return phase == WorkPhase::kComplete || phase == WorkPhase::kSucceeded || phase == WorkPhase::kCancelled ||
         phase == WorkPhase::kFailed;
}

std::string_view Print(MemberRole role) { return NameIn(kRoles, role); }

std::string Print(const MemberId& member) { return StrCat(Print(member.role), "-", member.index); }

std::optional<MemberId> ParseMember(std::string_view text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto role = FindName(kRoles, text.substr(0, dash));
  const auto index = ParseNumber<int>(text.substr(dash + 1));
  if (!role || !index || *index < 0) return std::nullopt;
  return MemberId{*role, *index};
}

Object Print(const MasterRestarts& restarts) {
  Array last;
  for (const MasterRestarts::One& one : restarts.last)
    last.push_back(Object{{"time", PrintTime(one.time)}, {"cause", one.cause}});
  return {{"count", restarts.count}, {"withoutStep", restarts.early}, {"last", std::move(last)}};
}

MasterRestarts ParseMasterRestarts(const Document& document) {
  MasterRestarts restarts{.count = LongAt(document, {"count"}), .early = NumberIn(document, "withoutStep")};
  for (const Document& item : ListIn(document, "last")) {
    if (const auto time = TimeIn(item, "time"))
      restarts.last.push_back({.time = *time, .cause = TextIn(item, "cause")});
  }
  return restarts;
}

std::string Summarize(const Progress& progress) {
  if (progress.reporter == Reporter::kLauncher)
    return StrCat(Print(progress.phase), ", attempt ", progress.attempt);
  std::string line = progress.phase == WorkPhase::kTraining
                         ? StrCat("epoch ", progress.epoch, "/", progress.epochs)
                         : LowerCase(Print(progress.phase));
  if (progress.loss) line += fmt::format(", loss {:.4f}", *progress.loss);
  for (const auto& [name, value] : progress.metrics) line += fmt::format(", {} {:.4f}", name, value);
  return line;
}

Document PrintProgress(const Progress& progress) {
  Object object{
      {"phase", Print(progress.phase)}, {"summary", Summarize(progress)}, {"reason", progress.reason}};
  if (progress.reporter == Reporter::kMaster) {
    AddTraining(object, progress);
  } else {
    AddScripts(object, progress);
  }
  return object;
}

Progress ParseProgress(Reporter reporter, const Document& document) {
  Progress progress{
      .reporter = reporter,
      .phase = FindName(kWorkPhases, StringAt(document, {"phase"})).value_or(WorkPhase::kPending),
      .reason = TextIn(document, "reason")};
  if (reporter == Reporter::kMaster) {
    ParseTraining(document, progress);
  } else {
    ParseScripts(document, progress);
  }
  return progress;
}

}  // namespace trainyard::job
