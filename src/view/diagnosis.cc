#include "view/diagnosis.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::view {
namespace {

constexpr absl::Duration kUnnoticed = absl::Seconds(5);  // an operator that runs has seen a job by then
constexpr std::size_t kMostWaiting = 10;
constexpr std::size_t kMostEventsShown = 20;
constexpr int kNotFoundExit = 127;
constexpr int kNotRunnableExit = 126;

std::string Since(absl::Time time, absl::Time now) {
  return time == absl::InfinitePast() ? "" : StrCat(" since ", PrintAge(now - time));
}

// "3 of 4 members run", "all 4 members run". A job that says itself how many it has is believed, so that this
// is what `get` shows.
std::string CountMembers(const JobPage& page) {
  if (page.members.empty()) return "it has no pods";
  const bool says = page.job.wanted > 0;
  const std::int64_t ready = says ? page.job.ready : std::ranges::count_if(page.members, &Member::runs);
  const std::int64_t count = says ? page.job.wanted : std::ssize(page.members);
  const bool some_completed =
      says && std::ranges::find(page.members, "Completed", &Member::state) != page.members.end();
  const std::string all = StrCat(count, count == 1 ? " member" : " members");
  const std::string run =
      StrCat(ready == 1 ? " runs" : " run",
             some_completed ? (ready == 1 ? " or has completed" : " or have completed") : "");
  if (ready == count) return count == 1 ? StrCat("its member", run) : StrCat("all ", all, run);
  return StrCat(ready, " of ", all, run);
}

std::string Restarts(const Job& job) {
  if (job.restarts == 0) return "";
  return StrCat(", after ", job.restarts, job.restarts == 1 ? " restart" : " restarts");
}

// No operator or launcher has done anything for it.
bool IsUnnoticed(const JobPage& page) { return !page.job.state && page.members.empty(); }

// Whether nodes lack a label that the pod asks for, and none lacks room only, so that more room would not
// help.
bool AsksForOtherNodes(const JobPage& page) {
  const auto lacks = [&](NodeRefusal::Lack lack) {
    return std::ranges::find(page.why_nodes, lack, &NodeRefusal::lack) != page.why_nodes.end();
  };
  return lacks(NodeRefusal::Lack::kLabel) && !lacks(NodeRefusal::Lack::kRoom);
}

std::string Sentence(const JobPage& page, absl::Time now) {
  const Job& job = page.job;
  if (IsUnnoticed(page))
    return StrCat(job.Id(), " was made ", Ago(job.created, now), ", and nobody has looked at it yet.");
  std::string text = StrCat(job.Id(), " ");
  if (job.over) {
    StrAppend(text, job.succeeded ? "has succeeded" : StrCat("has ended: ", job.shown));
    if (job.ended != absl::InfinitePast()) {
      StrAppend(text, " ", Ago(job.ended, now));
      if (job.started != absl::InfinitePast())
        StrAppend(text, ", ", PrintAge(job.ended - job.started), " after its start");
    }
    StrAppend(text, Restarts(job), ".");
  } else {
    StrAppend(text, "is ", job.shown.empty() ? "being started" : job.shown, Since(job.changed, now),
              Restarts(job), "; ", CountMembers(page), ".");
  }
  const std::string message = job.message.empty() ? job.reason : job.message;
  if (!message.empty()) StrAppend(text, " It says: ", message, message.ends_with('.') ? "" : ".");
  if (!job.spec_problem.empty()) StrAppend(text, " Its spec is not valid: ", job.spec_problem, ".");
  return text;
}

// One line for all of a gang that wait for the same.
void AddGangWaits(const JobPage& page, absl::Time now, std::vector<std::string>& waits) {
  std::map<std::string_view, std::vector<const Member*>> gangs;  // by what they wait for
  for (const Member& member : page.members) {
    if (member.waits && member.gang && member.node.empty()) gangs[member.why].push_back(&member);
  }
  for (const auto& [why, members] : gangs) {
    const std::string others = StrCat(" and ", members.size() - 1, " more members wait");
    waits.push_back(StrCat(members.front()->name, members.size() == 1 ? " waits" : others,
                           Since(members.front()->since, now), " to start together: ", why));
  }
}

std::vector<std::string> Waits(const JobPage& page, absl::Time now) {
  std::vector<std::string> waits;
  if (!page.job.over) AddGangWaits(page, now, waits);
  std::size_t waiting = 0;
  for (const Member& member : page.members) {
    if (!member.waits || page.job.over || (member.gang && member.node.empty())) continue;
    if (++waiting > kMostWaiting) continue;
    waits.push_back(
        StrCat(member.name, " (pod ", member.pod, ") waits", Since(member.since, now), ": ", member.why));
  }
  if (waiting > kMostWaiting) waits.push_back(StrCat("and ", waiting - kMostWaiting, " other members"));
  return waits;
}

// The last member that ended badly, by itself rather than by a signal; null: none did.
const kube::GonePod* LastFailure(const JobPage& page) {
  const kube::GonePod* killed = nullptr;
  for (auto gone = page.history.rbegin(); gone != page.history.rend(); ++gone) {
    if (gone->reason == "OOMKilled" || (gone->exit_code.value_or(0) != 0 && gone->signal == 0)) return &*gone;
    if (killed == nullptr && gone->signal != 0) killed = &*gone;
  }
  return killed;
}

const Member* FindWith(const JobPage& page, bool (*is)(const Member&)) {
  const auto found = std::ranges::find_if(page.members, is);
  return found == page.members.end() ? nullptr : &*found;
}

// The member that failed first: others may have failed because of it, or because the job then ended.
const Member* FirstFailed(const JobPage& page) {
  const Member* first = nullptr;
  for (const Member& member : page.members) {
    if (member.exit_code == 0 || member.state == "Terminating") continue;
    if (first == nullptr || member.since < first->since) first = &member;
  }
  return first;
}

// The member that the job's message begins with, as it does when one has ended the job; empty: none.
std::string_view NamedIn(const Job& job) {
  return std::string_view(job.message).substr(0, job.message.find(' '));
}

std::string AdviseOnEnd(const Job& job, std::string_view member, int exit_code, std::string_view reason,
                        bool previous) {
  const std::string logs = StrCat("`trainyard logs ", job.Id(), " --member ", member);
  if (reason == "OOMKilled")
    return StrCat(member,
                  " has used more memory than its limit: raise resources.limits.memory of its role, or let "
                  "it use less.");
  if (exit_code == kNotFoundExit)
    return StrCat("the command of ", member, " was not found in its image: check command and image; ", logs,
                  "` shows what the shell said.");
  if (exit_code == kNotRunnableExit)
    return StrCat("the command of ", member, " may not be executed: check its permissions in the image.");
  return StrCat("look at what ", member, " wrote last: ", logs, previous ? " --previous`." : "`.");
}

// Of a job that has failed: whom to look at.
std::string AdviseOnFailure(const JobPage& page) {
  const Job& job = page.job;
  constexpr std::string_view kLost = " was lost with ";
  if (const std::size_t lost = job.message.find(kLost); lost != std::string::npos) {
    const std::string_view rest = std::string_view(job.message).substr(lost + kLost.size());
    return StrCat(
        "look at the node (`kubectl describe node ", rest.substr(0, rest.find_first_of("; ")),
        "`), then submit the job again, or choose a restartPolicy that restarts after the loss of a "
        "node.");
  }
  const std::string_view named = NamedIn(job);
  const auto member = std::ranges::find(page.members, named, &Member::name);
  if (member != page.members.end() && member->exit_code != 0)
    return AdviseOnEnd(job, member->name, member->exit_code, member->state, /*previous=*/false);
  for (auto gone = page.history.rbegin(); gone != page.history.rend(); ++gone) {
    if (gone->member == named)
      return AdviseOnEnd(job, named, gone->exit_code.value_or(1), gone->reason, /*previous=*/true);
  }
  if (const Member* const first = FirstFailed(page))
    return AdviseOnEnd(job, first->name, first->exit_code, first->state, /*previous=*/false);
  if (const kube::GonePod* const gone = LastFailure(page))
    return AdviseOnEnd(job, gone->member, gone->exit_code.value_or(1), gone->reason, /*previous=*/true);
  return StrCat("fix what it says, then submit it again; `trainyard describe ", job.Id(),
                "` shows all of it.");
}

std::string Next(const JobPage& page, absl::Time now) {
  const Job& job = page.job;
  if (IsUnnoticed(page)) {
    if (now - job.created < kUnnoticed) return "";
    return "is an operator running? `trainyard operator` runs one, and so does `trainyard up`.";
  }
  if (job.succeeded) return "";
  if (job.state == job::State::kSuspended)
    return StrCat("it was told to rest: set spec.suspend to false, and it goes on.");
  if (!job.over) {
    if (!job.spec_problem.empty()) return StrCat("correct the field with `kubectl edit ", job.Id(), "`.");
    if (FindWith(page, [](const Member& member) {
          return member.state == "Unschedulable" || (member.gang && member.state == "SchedulingGated");
        }) != nullptr) {
      if (AsksForOtherNodes(page))
        return "label a node as the pod asks (`kubectl label node NODE KEY=VALUE`), or change the pod's "
               "nodeSelector.";
      return StrCat(
          "give the cluster room (another node, or `trainyard delete` of a job that is not needed), "
          "ask for less, or `trainyard scale ",
          job.Id(), "` down.");
    }
    if (const Member* const member = FindWith(page, [](const Member& one) {
          return one.state == "ErrImagePull" || one.state == "ImagePullBackOff" ||
                 one.state == "InvalidImageName";
        }))
      return StrCat("check the image's name and whether the node may pull it: `kubectl describe pod ",
                    member->pod, "`.");
    if (const Member* const member =
            FindWith(page, [](const Member& one) { return one.state == "CreateContainerConfigError"; }))
      return StrCat("create what ", member->name, " refers to: ", member->why, ". It starts by itself then.");
    if (job.reason == "FailedCreate")
      return "the API server refuses the job's pods: change the quota, the policy or the pod's template that "
             "it names.";
    if (const Member* const member =
            FindWith(page, [](const Member& one) { return one.state == "CrashLoopBackOff"; }))
      return AdviseOnEnd(job, member->name, 1, "", /*previous=*/true);
    if (const Member* const first = FirstFailed(page))
      return AdviseOnEnd(job, first->name, first->exit_code, first->state, /*previous=*/false);
    if (FindWith(page, [](const Member& member) { return member.waits; }) != nullptr)
      return StrCat("wait, or look closer: `trainyard events ", job.Id(), "`.");
    return "";
  }
  return AdviseOnFailure(page);
}

std::string EndOf(const kube::GonePod& gone) {
  std::string text;
  if (gone.signal != 0) {
    text = StrCat("signal ", gone.signal);
  } else if (gone.exit_code) {
    text = StrCat("exit code ", *gone.exit_code);
  }
  if (!gone.reason.empty()) StrAppend(text, text.empty() ? "" : ", ", gone.reason);
  return text;
}

// "  3m ago  worker-1 on node-0 (exit code 1): it failed"
std::string HeadOf(const kube::GonePod& gone, absl::Time now) {
  std::string text = Ago(gone.ended, now);
  if (text.empty()) text = "some time ago";
  StrAppend(text, "  ", gone.member.empty() ? gone.pod : gone.member);
  // What the cause says already is not said twice.
  const bool says_node = gone.cause.find(gone.node) != std::string::npos;
  if (!says_node) StrAppend(text, " on ", gone.node);
  const bool says_end =
      gone.cause.find("exited ") != std::string::npos || gone.cause.find("was killed ") != std::string::npos;
  if (const std::string end = EndOf(gone); !end.empty() && !says_end) StrAppend(text, " (", end, ")");
  StrAppend(text, ": ", gone.cause.empty() ? "it was deleted" : gone.cause);
  return text;
}

std::vector<std::string_view> LastLinesOf(std::string_view log, std::size_t most) {
  if (log.ends_with('\n')) log.remove_suffix(1);
  if (log.empty()) return {};
  std::vector<std::string_view> lines = Split(log, '\n');
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return lines;
}

std::vector<std::vector<std::string>> MemberRows(const JobPage& page, absl::Time now) {
  std::vector<std::vector<std::string>> rows = {{"MEMBER", "STATE", "RESTARTS", "NODE", "POD", "AGE"}};
  for (const Member& member : page.members) {
    rows.push_back({member.name, member.state, StrCat(member.restarts),
                    member.node.empty() ? "-" : member.node, member.pod,
                    member.created == absl::InfinitePast() ? "-" : PrintAge(now - member.created)});
  }
  return rows;
}

std::string Indented(std::string_view text, std::string_view by) {
  std::string out;
  for (const std::string_view line : LastLinesOf(text, text.size())) StrAppend(out, by, line, "\n");
  return out;
}

}  // namespace

std::string Ago(absl::Time time, absl::Time now) {
  return time == absl::InfinitePast() ? ""
                                      : StrCat(PrintAge(std::max(now - time, absl::ZeroDuration())), " ago");
}

Diagnosis Diagnose(const JobPage& page, absl::Time now) {
  Diagnosis diagnosis{.sentence = Sentence(page, now), .waits = Waits(page, now), .next = Next(page, now)};
  if (!page.job.over) {
    for (const NodeRefusal& node : page.why_nodes) diagnosis.waits.push_back(StrCat("  ", node.text));
  }
  return diagnosis;
}

std::string PrintWhy(const JobPage& page, absl::Time now, const WhyOptions& options) {
  const Diagnosis diagnosis = Diagnose(page, now);
  std::string out = StrCat(diagnosis.sentence, "\n");
  if (!page.job.progress.empty()) {
    for (std::size_t i = 0; i < page.job.progress.size(); ++i)
      StrAppend(out, i == 0 ? "At " : ", ", page.job.progress[i].first, " ", page.job.progress[i].second);
    out += "\n";
  }
  if (!diagnosis.waits.empty()) {
    out += "\nIt waits for:\n";
    for (const std::string& wait : diagnosis.waits) StrAppend(out, "  ", wait, "\n");
  }
  if (page.history.empty()) {
    if (!page.job.last_cause.empty() && page.job.message.find(page.job.last_cause) == std::string::npos)
      StrAppend(out, "\nIt was last restarted because ", page.job.last_cause, ".\n");
  } else {
    const std::size_t told = std::min(options.restarts, page.history.size());
    StrAppend(out, "\nPods that are gone, the newest first");
    if (told < page.history.size()) StrAppend(out, " (", told, " of ", page.history.size(), ")");
    out += ":\n";
    for (std::size_t i = 0; i < told; ++i) {
      const kube::GonePod& gone = page.history[page.history.size() - 1 - i];
      StrAppend(out, "  ", HeadOf(gone, now), "\n");
      const auto lines = LastLinesOf(gone.log, options.lines);
      for (const std::string_view line : lines) StrAppend(out, "      | ", line, "\n");
      if (lines.empty()) out += "      (it left no log)\n";
    }
  }
  if (!diagnosis.next.empty()) StrAppend(out, "\nNext: ", diagnosis.next, "\n");
  return out;
}

Document WhyToJson(const JobPage& page, absl::Time now) {
  const Diagnosis diagnosis = Diagnose(page, now);
  Array waits;
  for (const std::string& wait : diagnosis.waits)
    waits.emplace_back(std::string_view(wait).substr(std::min(wait.find_first_not_of(" "), wait.size())));
  Array history;
  for (const kube::GonePod& gone : page.history) {
    Object one{{"pod", gone.pod},
               {"member", gone.member},
               {"node", gone.node},
               {"cause", gone.cause},
               {"log", gone.log}};
    if (gone.exit_code) one["exitCode"] = *gone.exit_code;
    if (gone.signal != 0) one["signal"] = gone.signal;
    if (!gone.reason.empty()) one["reason"] = gone.reason;
    if (gone.began != absl::InfinitePast()) one["began"] = PrintMicroTime(gone.began);
    if (gone.ended != absl::InfinitePast()) one["ended"] = PrintMicroTime(gone.ended);
    history.push_back(std::move(one));
  }
  return Object{{"kind", FactsOf(page.job.kind).name},
                {"namespace", page.job.ns},
                {"name", page.job.name},
                {"state", page.job.shown},
                {"reason", page.job.reason},
                {"message", page.job.message},
                {"restarts", page.job.restarts},
                {"sentence", diagnosis.sentence},
                {"waits", std::move(waits)},
                {"history", std::move(history)},
                {"next", diagnosis.next}};
}

std::vector<std::vector<std::string>> EventRows(const std::vector<Event>& events, absl::Time now) {
  std::vector<std::vector<std::string>> rows = {{"AGE", "TYPE", "OBJECT", "REASON", "MESSAGE"}};
  for (const Event& event : events) {
    rows.push_back(
        {StrCat(PrintAge(now - event.time), event.count > 1 ? StrCat(" (x", event.count, ")") : ""),
         event.warning ? "Warning" : "Normal", event.object, event.reason, event.message});
  }
  return rows;
}

std::string PrintDescription(const JobPage& page, absl::Time now) {
  const Job& job = page.job;
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](std::string_view name, std::string value) {
    if (!value.empty()) rows.push_back({StrCat(name, ":"), std::move(value)});
  };
  const auto time = [&](absl::Time at) {
    return at == absl::InfinitePast() ? "" : StrCat(PrintTime(at), " (", Ago(at, now), ")");
  };
  row("Name", job.name);
  row("Namespace", job.ns);
  row("Kind", std::string(FactsOf(job.kind).name));
  row("State", IsUnnoticed(page) ? "(nobody has looked at it yet)" : job.shown);
  row("Reason", job.reason);
  row("Message", job.message);
  row("Ready", StrCat(job.ready, "/", job.wanted));
  row("Restarts", StrCat(job.restarts));
  row("Last restart", job.last_cause);
  row("Created", time(job.created));
  row("Started", time(job.started));
  row("Ended", time(job.ended));
  for (const auto& [name, value] : job.progress) row(StrCat("Progress ", name), value);
  for (const auto& [name, value] : job.spec) row(StrCat("Spec ", name), value);
  std::string out = Table(rows, 2);
  out += "\nMembers:\n";
  out += page.members.empty() ? "  (none)\n" : Indented(Table(MemberRows(page, now), 2), "  ");
  for (const Member& member : page.members) {
    if (!member.why.empty()) StrAppend(out, "  ", member.name, ": ", member.why, "\n");
  }
  if (job.reported && !job.reported->history.empty()) {
    rows = {{"RESTARTED", "ATTEMPT", "BECAUSE"}};
    for (const job::ScriptRestart& restart : job.reported->history)
      rows.push_back(
          {Ago(restart.time, now), StrCat(restart.attempt), StrCat(restart.member, " ", restart.cause)});
    out += "\nScripts that were restarted:\n";
    out += Indented(Table(rows, 2), "  ");
  }
  if (!page.history.empty()) {
    out += "\nPods that are gone:\n";
    for (const kube::GonePod& gone : page.history) StrAppend(out, "  ", HeadOf(gone, now), "\n");
  }
  out += "\nEvents:\n";
  if (page.events.empty()) out += "  (none)\n";
  const std::size_t first = page.events.size() > kMostEventsShown ? page.events.size() - kMostEventsShown : 0;
  rows = EventRows({page.events.begin() + static_cast<std::ptrdiff_t>(first), page.events.end()}, now);
  if (rows.size() > 1) out += Indented(Table(rows, 2), "  ");
  return out;
}

}  // namespace trainyard::view
