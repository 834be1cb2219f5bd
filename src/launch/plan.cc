#include "launch/plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace trainyard::launch {
namespace {

constexpr absl::Duration kLookAgain = absl::Seconds(1);

// It has ended a run of the script, or has not begun one.
bool IsStill(const SeenAgent& agent) {
  return agent.state != AgentState::kRunning && agent.state != AgentState::kStopping;
}

class Planner {
 public:
  Planner(const TaskView& view, absl::Time now) : view_(view), spec_(view.spec), now_(now) {
    plan_.status = view.status;
  }

  TaskPlan Plan() {
    // One that was given up may run on where nobody reaches it: it must not be in its successor's way.
    for (const SeenPod& pod : view_.old_pods) Act(DeletePod{pod.name});
    NoteWhoIsDone();
    if (IsOver(status().phase)) {
      EndAll();
    } else if (status().members.empty()) {
      Begin();
    } else if (status().cancel) {
      Cancel();
    } else if (!Succeed() && !TakeLosses()) {
      Advance();
    }
    if (plan_.store) plan_.actions.clear();
    TellStates();
    return plan_;
  }

 private:
  TaskStatus& status() { return plan_.status; }
  MemberStatus& StatusOf(const MemberId& member) { return status().members[member]; }
  const SeenMember& Seen(const MemberId& member) const {
    static const SeenMember kNothing;
    const auto found = view_.members.find(member);
    return found == view_.members.end() ? kNothing : found->second;
  }
  template <typename T>
  void Act(T action) {
    plan_.actions.push_back(std::move(action));
  }
  void WakeAt(absl::Time time) {
    plan_.wake_after = std::min(plan_.wake_after, std::max(time - now_, absl::Milliseconds(1)));
  }
  bool IsPresent(const MemberId& member) const {
    const auto& present = plan_.status.present;
    return std::ranges::find(present, member) != present.end();
  }

  // Stored, because whoever comes after this launcher may not be able to ask any more.
  void NoteWhoIsDone() {
    for (auto& [member, known] : status().members) {
      const SeenMember& seen = Seen(member);
      const bool done = seen.agent && seen.agent->attempt == known.attempt && known.attempt > 0 &&
                        seen.agent->state == AgentState::kExited && !IsBad(member, *seen.agent);
      if (!done || known.done == known.attempt) continue;
      known.done = known.attempt;
      if (!IsOver(status().phase)) plan_.store = true;
    }
  }

  void Begin() {
    for (const MemberId& member : MembersOf(spec_)) StatusOf(member);
    status().since = now_;
    status().reason = "its pods are being made";
    plan_.store = true;
  }

  void EndAs(Phase phase, std::string reason) {
    status().phase = phase;
    status().reason = std::move(reason);
    status().ended = now_;
    plan_.store = true;
  }

  // Pods of a task that is over end, so that what they took is free; their logs stay.
  void EndAll() {
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (!seen.pod || seen.pod->ended) continue;
      WakeAt(now_ + kLookAgain);
      if (seen.agent && !seen.agent->silent_since) {
        if (seen.agent->state == AgentState::kRunning) Act(Stop{member, seen.agent->attempt});
        if (IsStill(*seen.agent)) Act(End{member});
        continue;
      }
      // With a pod its log goes: only one that never ran, or whose agent has long been silent.
      const absl::Time since = seen.agent ? *seen.agent->silent_since : view_.status.ended.value_or(now_);
      if (!seen.pod->running || now_ - since > spec_.agent_timeout) Act(DeletePod{seen.pod->name});
    }
  }

  void Cancel() {
    bool runs = false;
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (!seen.pod || seen.pod->ended || (seen.agent && IsStill(*seen.agent))) continue;
      if (!seen.agent && !seen.asked_since) continue;  // it has not begun
      if (const auto since = SilentSince(seen); since && now_ - *since > spec_.agent_timeout) continue;
      runs = true;
      if (!SilentSince(seen) && seen.agent->state == AgentState::kRunning)
        Act(Stop{member, seen.agent->attempt});
    }
    if (!runs) return EndAs(Phase::kCancelled, "it was cancelled");
    status().phase = Phase::kCancelling;
    status().reason = "its scripts are being stopped";
    WakeAt(now_ + kLookAgain);
  }

  // ---- Losses

  struct Loss {
    MemberId member;
    std::string cause;
    bool pod = false;                        // its pod is lost, not the script alone
    absl::Time time = absl::InfinitePast();  // when the script ended
  };

  // Since when it is asked in vain.
  static std::optional<absl::Time> SilentSince(const SeenMember& seen) {
    return seen.agent ? seen.agent->silent_since : seen.asked_since;
  }

  // However a parameter server ends, the others wait for it in vain.
  static bool IsBad(const MemberId& member, const SeenAgent& agent) {
    return agent.exit_code != 0 || member.role == Role::kPs;
  }

  std::optional<Loss> FindLoss(const MemberId& member) {
    const SeenMember& seen = Seen(member);
    const MemberStatus& known = StatusOf(member);
    if (!status().present.empty() && known.done == known.attempt)
      return std::nullopt;  // what it had to do is done
    if (!seen.pod) {
      if (status().present.empty() || !known.placed) return std::nullopt;  // it is still to be made
      return Loss{member, "its pod was deleted", true};
    }
    if (seen.pod->ended) {
      if (seen.pod->deleting && !known.placed)
        return std::nullopt;  // it found no room before; it is made again
      return Loss{member, seen.pod->cause.empty() ? "its pod has ended" : seen.pod->cause, true};
    }
    if (const auto since = SilentSince(seen)) {
      const absl::Time due = *since + spec_.agent_timeout;
      if (now_ < due) {
        WakeAt(due);
        return std::nullopt;
      }
      return Loss{member,
                  StrCat("its agent has not answered for ", absl::FormatDuration(spec_.agent_timeout)), true};
    }
    if (!seen.agent) return std::nullopt;
    const bool ran = !status().present.empty() && seen.agent->attempt == known.attempt;
    if (ran && seen.agent->state == AgentState::kExited && IsBad(member, *seen.agent))
      return Loss{member, seen.agent->reason, false, seen.agent->ended.value_or(absl::InfinitePast())};
    return std::nullopt;
  }

  // Its script can never run: no restart would change that.
  std::optional<std::string> FindHopeless() {
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (seen.agent && seen.agent->state == AgentState::kFailed && seen.agent->attempt == known.attempt)
        return StrCat(Print(member), ": ", seen.agent->reason);
    }
    return std::nullopt;
  }

  // Those without whom the others can go on.
  bool ComesBackAlone(const MemberId& member) const {
    if (member.role == Role::kEvaluator) return true;
    return spec_.strategy == Strategy::kParameterServer && member.role == Role::kWorker;
  }

  // True: something was lost, and what follows is to be stored, or it is too soon to say.
  bool TakeLosses() {
    if (const auto hopeless = FindHopeless()) {
      EndAs(Phase::kFailed, *hopeless);
      return true;
    }
    std::vector<Loss> losses;
    for (const auto& [member, known] : view_.status.members) {
      if (!status().present.empty() && !IsPresent(member)) continue;
      if (auto loss = FindLoss(member)) losses.push_back(*std::move(loss));
    }
    if (losses.empty()) return false;
    // Whoever was first is the cause, and the others may only have followed.
    std::ranges::stable_sort(losses, {}, &Loss::time);
    const absl::Duration ago = now_ - losses.front().time;
    if (ago >= absl::ZeroDuration() && ago < kGather) {
      WakeAt(now_ + kGather - ago);
      return true;
    }
    const auto whole =
        std::ranges::find_if(losses, [&](const Loss& loss) { return !ComesBackAlone(loss.member); });
    const bool all = whole != losses.end();
    const int needed = all ? 1 : static_cast<int>(losses.size());
    if (status().restarts + needed > spec_.max_restarts) {
      const Loss& first = all ? *whole : losses.front();
      EndAs(Phase::kFailed,
            StrCat(Print(first.member), " ", first.cause, ", after ", status().restarts, " restarts"));
      return true;
    }
    plan_.store = true;
    for (const Loss& loss : losses) {
      MemberStatus& known = StatusOf(loss.member);
      if (loss.pod) {
        ++known.launch;
        known.placed = false;
      }
      if (!all && known.attempt > 0) ++known.attempt;
      if (!all) Record(loss, known.attempt, 1);
    }
    if (all) Record(*whole, NextAttempt(), losses.size());
    if (all) {
      status().attempt = NextAttempt();
      status().present.clear();
      status().since = now_;
      status().phase = Phase::kRestarting;
    }
    status().reason = StrCat(status().history.back().member, " ", status().history.back().cause, "; restart ",
                             status().restarts, " of ", spec_.max_restarts);
    return true;
  }

  // One that nobody was in: a member that came back alone is further than the others.
  int NextAttempt() {
    int most = status().attempt;
    for (const auto& [member, known] : status().members) most = std::max(most, known.attempt);
    return most + 1;
  }

  void Record(const Loss& loss, int attempt, std::size_t losses) {
    ++status().restarts;
    std::string cause = loss.cause;
    if (losses > 1) StrAppend(cause, " (and ", losses - 1, " more)");
    status().history.push_back({now_, attempt, Print(loss.member), std::move(cause)});
    if (status().history.size() > kMostHistory) status().history.erase(status().history.begin());
  }

  // ---- The good way

  bool Matters(const MemberId& member) const {
    if (member.role == Role::kPs || member.role == Role::kEvaluator) return false;
    const bool coordinated = spec_.strategy == Strategy::kParameterServer && spec_.chief;
    return !coordinated || member.role == Role::kChief;
  }

  bool Succeed() {
    if (status().present.empty()) return false;
    for (const MemberId& member : status().present) {
      if (!Matters(member)) continue;
      if (StatusOf(member).done != StatusOf(member).attempt) return false;
    }
    EndAs(Phase::kSucceeded, "all that matter exited 0");
    return true;
  }

  bool IsReady(const MemberId& member) const {
    const SeenMember& seen = Seen(member);
    return seen.pod && !seen.pod->ended && !seen.pod->ip.empty() && seen.agent && !seen.agent->silent_since;
  }

  void Advance() {
    const bool decided = !status().present.empty();
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      const bool wanted = !decided || IsPresent(member);
      if (wanted && !seen.pod) Act(CreatePod{member, known.launch});
      // Found no room, and the attempt has begun without it.
      if (!wanted && seen.pod && !seen.pod->ended) Act(DeletePod{seen.pod->name});
      const bool old =
          seen.agent && seen.agent->state == AgentState::kRunning && seen.agent->attempt < Wanted(member);
      if (old) Act(Stop{member, seen.agent->attempt});
    }
    if (decided) return RunAll();
    DecidePresent();
  }

  // The attempt that a member is to be in: before it is decided who is, the next one.
  int Wanted(const MemberId& member) {
    return status().present.empty() ? status().attempt : StatusOf(member).attempt;
  }

  void DecidePresent() {
    std::vector<MemberId> ready;
    std::vector<MemberId> missing;
    int workers = 0;
    bool only_room = true;   // is what those lack who are missing
    bool only_extra = true;  // they are more than were asked for
    for (const MemberId& member : MembersOf(spec_)) {
      if (IsReady(member)) {
        ready.push_back(member);
        workers += member.role == Role::kWorker ? 1 : 0;
        continue;
      }
      missing.push_back(member);
      const SeenMember& seen = Seen(member);
      only_room = only_room && member.role == Role::kWorker && seen.pod && !seen.pod->unscheduled.empty();
      only_extra = only_extra && member.index >= spec_.workers;
    }
    const absl::Time due = only_extra ? now_ : status().since + kRoomPatience;
    const bool enough = only_room && workers >= spec_.LeastWorkers();
    if (!missing.empty() && enough && now_ < due) WakeAt(due);
    if (!missing.empty() && !(enough && now_ >= due)) return TellMissing(missing);
    for (const MemberId& member : ready) {
      StatusOf(member).attempt = status().attempt;
      StatusOf(member).placed = true;
    }
    status().present = std::move(ready);
    status().phase = Phase::kStarting;
    status().reason = "its scripts are being started";
    plan_.store = true;
  }

  void TellMissing(const std::vector<MemberId>& missing) {
    const SeenMember& seen = Seen(missing.front());
    std::string text = StrCat("waits for ", Print(missing.front()));
    if (missing.size() > 1) StrAppend(text, " and ", missing.size() - 1, " more");
    if (seen.pod && !seen.pod->unscheduled.empty()) StrAppend(text, ": ", seen.pod->unscheduled);
    if (seen.pod && !seen.pod->waiting.empty()) StrAppend(text, ": ", seen.pod->waiting);
    if (status().phase == Phase::kRestarting && !status().history.empty())
      StrAppend(text, "; restarted because ", status().history.back().member, " ",
                status().history.back().cause);
    status().reason = std::move(text);
  }

  Lineup MakeLineup() {
    Lineup lineup{.present = status().present, .attempt = status().attempt};
    for (const MemberId& member : lineup.present)
      lineup.hosts[member] = HostOf(spec_, member, Seen(member).pod ? Seen(member).pod->ip : "");
    return lineup;
  }

  void RunAll() {
    const Lineup lineup = MakeLineup();
    const bool placed =
        std::ranges::none_of(lineup.hosts, [](const auto& host) { return host.second.empty(); });
    bool configured = true;
    bool servers = true;
    bool running = true;
    for (const MemberId& member : status().present) {
      const SeenMember& seen = Seen(member);
      const int attempt = StatusOf(member).attempt;
      const bool here = seen.agent && !seen.agent->silent_since && seen.agent->attempt >= attempt;
      const bool runs = here && seen.agent->state != AgentState::kConfigured;
      // Who comes back alone waits for nobody, and nobody for it.
      const bool alone = attempt > status().attempt;
      configured = configured && (here || alone);
      servers = servers && (runs || member.role != Role::kPs);
      running = running && runs;
      if (IsReady(member) && !StatusOf(member).placed) {
        // Stored before it is given anything to run, so that nothing is run twice should it go.
        StatusOf(member).placed = true;
        plan_.store = true;
      } else if (!here && placed && IsReady(member) && IsStill(*seen.agent)) {
        Lineup own = lineup;
        own.attempt = attempt;
        Act(Configure{member, attempt, EnvironmentOf(spec_, own, member)});
      }
    }
    for (const MemberId& member : status().present) {
      const SeenMember& seen = Seen(member);
      const int attempt = StatusOf(member).attempt;
      const bool waits =
          IsReady(member) && seen.agent->state == AgentState::kConfigured && seen.agent->attempt == attempt;
      const bool alone = attempt > status().attempt;
      const bool first = member.role == Role::kPs || servers;
      if (waits && (alone || (configured && first))) Act(Run{member, attempt});
    }
    if (running && status().phase != Phase::kRunning) {
      status().phase = Phase::kRunning;
      status().reason = StrCat(status().present.size(), " members run");
      if (!status().started) status().started = now_;
    }
  }

  // ---- For people

  void TellStates() {
    for (auto& [member, known] : status().members) {
      const SeenMember& seen = Seen(member);
      if (IsOver(view_.status.phase) && !seen.agent && !known.state.empty())
        continue;  // how it ended is known
      if (!seen.pod) {
        known.state = "has no pod";
      } else if (seen.pod->ended) {
        const bool exited = seen.agent && seen.agent->state == AgentState::kExited;
        known.state = exited ? seen.agent->reason : seen.pod->cause.empty() ? "ended" : seen.pod->cause;
      } else if (!seen.pod->unscheduled.empty()) {
        known.state = StrCat("waits for a node: ", seen.pod->unscheduled);
      } else if (!seen.pod->waiting.empty()) {
        known.state = seen.pod->waiting;
      } else if (!seen.agent) {
        known.state = seen.pod->running ? "its agent does not answer yet" : "is being started";
      } else {
        known.state = StateOf(*seen.agent);
        if (!seen.pod->node.empty()) StrAppend(known.state, " on ", seen.pod->node);
      }
    }
  }

  static std::string StateOf(const SeenAgent& agent) {
    if (agent.silent_since) return "its agent does not answer";
    switch (agent.state) {
      case AgentState::kIdle:
        return "ready";
      case AgentState::kConfigured:
        return "configured";
      case AgentState::kRunning:
        return "running";
      case AgentState::kStopping:
        return "being stopped";
      case AgentState::kExited:
      case AgentState::kFailed:
        return agent.reason;
    }
    return "";
  }

  const TaskView& view_;
  const TaskSpec& spec_;
  const absl::Time now_;
  TaskPlan plan_;
};

}  // namespace

std::string HostOf(const TaskSpec& spec, const MemberId& member, const std::string& ip) {
  return spec.strategy == Strategy::kParameterServer ? StrCat(Print(member), ".", spec.name) : ip;
}

std::string Print(const Action& action) {
  struct Printer {
    std::string operator()(const CreatePod& a) const {
      return StrCat("create ", Print(a.member), " (", a.launch, ")");
    }
    std::string operator()(const DeletePod& a) const { return StrCat("delete ", a.name); }
    std::string operator()(const Configure& a) const {
      return StrCat("configure ", Print(a.member), " (", a.attempt, ")");
    }
    std::string operator()(const Run& a) const {
      return StrCat("run ", Print(a.member), " (", a.attempt, ")");
    }
    std::string operator()(const Stop& a) const { return StrCat("stop ", Print(a.member)); }
    std::string operator()(const End& a) const { return StrCat("end ", Print(a.member)); }
  };
  return std::visit(Printer(), action);
}

TaskPlan PlanTask(const TaskView& view, absl::Time now) { return Planner(view, now).Plan(); }

}  // namespace trainyard::launch
