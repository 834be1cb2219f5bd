#include "launch/task.h"

#include <set>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "kube/rfc3339.h"

namespace trainyard::launch {
namespace {

constexpr int kMostMembers = 1000;
constexpr std::size_t kMostName = 40;                      // pods and names of hosts are longer
constexpr std::size_t kMostSpec = std::size_t{192} << 10;  // an object's annotations may take 256 KiB
constexpr Role kRoles[] = {Role::kPs, Role::kChief, Role::kWorker, Role::kEvaluator};
constexpr Phase kPhases[] = {Phase::kPending,    Phase::kStarting,  Phase::kRunning, Phase::kRestarting,
                             Phase::kCancelling, Phase::kSucceeded, Phase::kFailed,  Phase::kCancelled};

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// Reads an object field by field and remembers what was wrong first, and what nobody asked for.
class Fields {
 public:
  Fields(const Document& document, std::string what) : document_(document), what_(std::move(what)) {
    if (!document.is_object()) wrong_ = StrCat(what_, " must be an object");
  }

  void Take(const char* name, std::string& text) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Wrong(name, "a text");
    text = Text(*value);
  }
  void Take(const char* name, int& number) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_int64() || !std::in_range<int>(value->get_int64())) return Wrong(name, "a whole number");
    number = static_cast<int>(value->get_int64());
  }
  void Take(const char* name, bool& flag) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_bool()) return Wrong(name, "true or false");
    flag = value->get_bool();
  }
  void Take(const char* name, absl::Duration& time) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_string() || !absl::ParseDuration(std::string(Text(*value)), &time))
      Wrong(name, "a time as \"10s\"");
  }
  void Take(const char* name, std::vector<std::string>& list) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Wrong(name, "a list of texts");
    list.clear();
    for (const Document& item : value->get_array()) {
      if (!item.is_string()) return Wrong(name, "a list of texts");
      list.emplace_back(Text(item));
    }
  }
  void Take(const char* name, std::map<std::string, std::string>& map) {
    const Document* const value = Find(name);
    if (value == nullptr) return;
    if (!value->is_object()) return Wrong(name, "an object of texts");
    map.clear();
    for (const auto& member : value->get_object()) {
      if (!member.value().is_string()) return Wrong(name, "an object of texts");
      map.emplace(Key(member), Text(member.value()));
    }
  }
  template <typename T, typename Parse>
  void TakeAs(const char* name, T& value, const Parse& parse, std::string_view choices) {
    const Document* const given = Find(name);
    if (given == nullptr) return;
    const auto parsed = parse(Text(*given));
    if (!parsed) return Wrong(name, choices);
    value = *parsed;
  }
  const Document* Find(const char* name) {
    known_.insert(name);
    return document_.is_object() ? document_.get_object().if_contains(name) : nullptr;
  }
  void Wrong(std::string_view name, std::string_view wanted) {
    if (wrong_.empty()) wrong_ = StrCat(what_, ": ", name, " must be ", wanted);
  }
  absl::Status End() {
    if (wrong_.empty()) {
      for (const auto& member : document_.get_object()) {
        if (!known_.contains(Key(member)))
          return Bad(what_, " has no field ", Shortened(Escaped(Key(member)), 64));
      }
    }
    return wrong_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong_);
  }

 private:
  const Document& document_;
  const std::string what_;
  std::string wrong_;
  std::set<std::string_view> known_;
};

template <typename T, std::size_t N>
std::optional<T> FindName(const T (&all)[N], std::string_view text) {
  for (const T one : all) {
    if (Name(one) == text) return one;
  }
  return std::nullopt;
}

absl::Status ValidateWorkers(const TaskSpec& spec) {
  if (spec.workers < 1) return Bad("--worker-num must be at least 1, and is ", spec.workers);
  const bool elastic = spec.min_workers != 0 || spec.max_workers != 0;
  if (elastic && spec.strategy != Strategy::kAllReduce)
    return Bad(
        "--min-workers and --max-workers are for AllReduce: with ParameterServer a worker that is lost comes "
        "back alone");
  if (spec.min_workers < 0 || spec.LeastWorkers() > spec.workers || spec.MostWorkers() < spec.workers)
    return Bad("--worker-num (", spec.workers, ") must be between --min-workers (", spec.LeastWorkers(),
               ") and --max-workers (", spec.MostWorkers(), ")");
  if (spec.ps > kMostMembers || spec.MostWorkers() > kMostMembers)
    return Bad("a task may have ", kMostMembers, " members of a kind");
  return absl::OkStatus();
}

absl::Status ValidateStrategy(const TaskSpec& spec) {
  switch (spec.strategy) {
    case Strategy::kAllReduce:
      if (spec.ps != 0)
        return Bad(
            "AllReduce has no parameter servers: leave --ps-num out, or choose --strategy ParameterServer");
      break;
    case Strategy::kParameterServer:
      if (spec.ps < 1) return Bad("ParameterServer needs at least one: give --ps-num");
      break;
  }
  return absl::OkStatus();
}

Document HistoryDocument(const std::vector<Restart>& history) {
  Array list;
  for (const Restart& restart : history) {
    list.push_back(Object{{"time", TimeText(restart.time)},
                          {"attempt", restart.attempt},
                          {"member", restart.member},
                          {"cause", restart.cause}});
  }
  return list;
}

int NumberIn(const Document& object, std::string_view key, int otherwise = 0) {
  const auto number = IntAt(object, {key});
  return number && std::in_range<int>(*number) ? static_cast<int>(*number) : otherwise;
}
std::string TextIn(const Document& object, std::string_view key) {
  return std::string(StringAt(object, {key}));
}
std::optional<absl::Time> TimeIn(const Document& object, std::string_view key) {
  const auto time = kube::ParseTime(StringAt(object, {key}));
  return time.ok() && *time >= absl::UnixEpoch() ? std::optional(*time) : std::nullopt;
}
const Array& ListIn(const Document& object, std::string_view key) {
  static const Array kNothing;
  const Array* const list = ArrayAt(object, {key});
  return list == nullptr ? kNothing : *list;
}

}  // namespace

std::string_view Name(Strategy strategy) {
  return strategy == Strategy::kAllReduce ? "AllReduce" : "ParameterServer";
}

std::optional<Strategy> ParseStrategy(std::string_view text) {
  for (const Strategy one : {Strategy::kAllReduce, Strategy::kParameterServer}) {
    if (Name(one) == text) return one;
  }
  return std::nullopt;
}

std::string_view Name(Role role) {
  switch (role) {
    case Role::kPs:
      return "ps";
    case Role::kChief:
      return "chief";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kStarting:
      return "Starting";
    case Phase::kRunning:
      return "Running";
    case Phase::kRestarting:
      return "Restarting";
    case Phase::kCancelling:
      return "Cancelling";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
    case Phase::kCancelled:
      return "Cancelled";
  }
  return "";
}

bool IsOver(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kCancelled;
}

std::string Print(const MemberId& member) { return StrCat(Name(member.role), "-", member.index); }

std::optional<MemberId> ParseMember(std::string_view text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto role = FindName(kRoles, text.substr(0, dash));
  const auto index = ParseNumber<int>(text.substr(dash + 1));
  if (!role || !index || *index < 0) return std::nullopt;
  return MemberId{*role, *index};
}

absl::Status Validate(const TaskSpec& spec) {
  if (const std::string_view problem = kube::FindDns1123LabelProblem(spec.name);
      !problem.empty() || spec.name.size() > kMostName)
    return Bad("'", Shortened(Escaped(spec.name), 64), "' cannot be a task's name: use up to ", kMostName,
               " small letters, digits and '-'");
  TY_RETURN_IF_ERROR(ValidateStrategy(spec));
  TY_RETURN_IF_ERROR(ValidateWorkers(spec));
  if (spec.script.empty() && spec.command.empty()) return Bad("there is nothing to run: give --script");
  if (spec.max_restarts < 0) return Bad("--max-restarts must not be below 0, and is ", spec.max_restarts);
  if (spec.grace < absl::ZeroDuration() || spec.grace > absl::Hours(1))
    return Bad("--grace must be from 0 to 1h");
  if (spec.agent_timeout < absl::Seconds(1)) return Bad("--agent-timeout must be at least 1s");
  for (const auto& [flag, amount] :
       {std::pair("--cpu", &spec.cpu), std::pair("--memory", &spec.memory), std::pair("--gpu", &spec.gpu)}) {
    if (!amount->empty() && !kube::Quantity::Parse(*amount).ok())
      return Bad(flag, ": '", Shortened(Escaped(*amount), 64), "' is no amount: write 2, 500m or 512Mi");
  }
  if (const std::size_t size = Print(spec).size(); size > kMostSpec)
    return Bad("the task's environment and command take ", size, " bytes, and may take ", kMostSpec);
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return Bad("--env: '", Shortened(Escaped(name), 64), "' cannot be a variable's name");
  }
  return absl::OkStatus();
}

bool Decides(const TaskSpec& spec, Role role) {
  if (role == Role::kPs || role == Role::kEvaluator) return false;
  const bool coordinated = spec.strategy == Strategy::kParameterServer && spec.chief;
  return !coordinated || role == Role::kChief;
}

std::vector<MemberId> MembersOf(const TaskSpec& spec) {
  std::vector<MemberId> members;
  members.reserve(static_cast<std::size_t>(spec.ps) + static_cast<std::size_t>(spec.MostWorkers()) + 2);
  for (int i = 0; i < spec.ps; ++i) members.push_back({Role::kPs, i});
  if (spec.chief) members.push_back({Role::kChief, 0});
  for (int i = 0; i < spec.MostWorkers(); ++i) members.push_back({Role::kWorker, i});
  if (spec.evaluator) members.push_back({Role::kEvaluator, 0});
  return members;
}

std::string Print(const TaskSpec& spec) {
  Array command;
  for (const std::string& word : spec.command) command.emplace_back(word);
  Object env;
  for (const auto& [name, value] : spec.env) env[name] = value;
  return PrintJson(Object{{"name", spec.name},
                          {"strategy", Name(spec.strategy)},
                          {"workers", spec.workers},
                          {"ps", spec.ps},
                          {"chief", spec.chief},
                          {"evaluator", spec.evaluator},
                          {"minWorkers", spec.min_workers},
                          {"maxWorkers", spec.max_workers},
                          {"image", spec.image},
                          {"script", spec.script},
                          {"command", std::move(command)},
                          {"workingDir", spec.working_dir},
                          {"env", std::move(env)},
                          {"cpu", spec.cpu},
                          {"memory", spec.memory},
                          {"gpu", spec.gpu},
                          {"maxRestarts", spec.max_restarts},
                          {"grace", absl::FormatDuration(spec.grace)},
                          {"agentTimeout", absl::FormatDuration(spec.agent_timeout)}});
}

absl::StatusOr<TaskSpec> ParseTaskSpec(std::string_view json) {
  TY_ASSIGN_OR_RETURN(const Document document, ParseJson(json));
  TaskSpec spec;
  Fields fields(document, "a task");
  fields.Take("name", spec.name);
  fields.TakeAs("strategy", spec.strategy, ParseStrategy, "AllReduce or ParameterServer");
  fields.Take("workers", spec.workers);
  fields.Take("ps", spec.ps);
  fields.Take("chief", spec.chief);
  fields.Take("evaluator", spec.evaluator);
  fields.Take("minWorkers", spec.min_workers);
  fields.Take("maxWorkers", spec.max_workers);
  fields.Take("image", spec.image);
  fields.Take("script", spec.script);
  fields.Take("command", spec.command);
  fields.Take("workingDir", spec.working_dir);
  fields.Take("env", spec.env);
  fields.Take("cpu", spec.cpu);
  fields.Take("memory", spec.memory);
  fields.Take("gpu", spec.gpu);
  fields.Take("maxRestarts", spec.max_restarts);
  fields.Take("grace", spec.grace);
  fields.Take("agentTimeout", spec.agent_timeout);
  TY_RETURN_IF_ERROR(fields.End());
  return spec;
}

TaskStatus NewStatus(const TaskSpec& spec, absl::Time created) {
  TaskStatus status{.reason = "the operator creates its pods", .since = created};
  for (const MemberId& member : MembersOf(spec)) status.members[member].state = "has no pod";
  return status;
}

Document StatusDocument(const TaskStatus& status) {
  Array members;
  for (const auto& [id, member] : status.members)
    members.push_back(Object{{"name", Print(id)},
                             {"pod", member.pod},
                             {"lost", member.lost},
                             {"attempt", member.attempt},
                             {"done", member.done},
                             {"state", member.state}});
  Array present;
  for (const MemberId& member : status.present) present.emplace_back(Print(member));
  Object object{{"phase", Name(status.phase)},
                {"summary", StrCat(Name(status.phase), ", attempt ", status.attempt)},
                {"reason", status.reason},
                {"attempt", status.attempt},
                {"restarts", status.restarts},
                {"running", status.running},
                {"members", std::move(members)},
                {"present", std::move(present)},
                {"since", TimeText(status.since)},
                {"history", HistoryDocument(status.history)}};
  if (status.started) object["started"] = TimeText(*status.started);
  if (status.ended) object["ended"] = TimeText(*status.ended);
  return object;
}

TaskStatus ParseTaskStatus(const Document& document) {
  TaskStatus status{.phase = FindName(kPhases, StringAt(document, {"phase"})).value_or(Phase::kPending),
                    .reason = TextIn(document, "reason"),
                    .attempt = NumberIn(document, "attempt", 1),
                    .restarts = NumberIn(document, "restarts"),
                    .running = NumberIn(document, "running"),
                    .since = TimeIn(document, "since").value_or(absl::UnixEpoch()),
                    .started = TimeIn(document, "started"),
                    .ended = TimeIn(document, "ended")};
  for (const Document& item : ListIn(document, "members")) {
    if (const auto id = ParseMember(StringAt(item, {"name"})))
      status.members[*id] = {.pod = TextIn(item, "pod"),
                             .lost = TextIn(item, "lost"),
                             .attempt = NumberIn(item, "attempt"),
                             .done = NumberIn(item, "done"),
                             .state = TextIn(item, "state")};
  }
  for (const Document& item : ListIn(document, "present")) {
    const auto id = ParseMember(Text(item));
    if (id && status.members.contains(*id)) status.present.push_back(*id);
  }
  for (const Document& item : ListIn(document, "history")) {
    status.history.push_back({.time = TimeIn(item, "time").value_or(absl::UnixEpoch()),
                              .attempt = NumberIn(item, "attempt"),
                              .member = TextIn(item, "member"),
                              .cause = TextIn(item, "cause")});
  }
  return status;
}

}  // namespace trainyard::launch
