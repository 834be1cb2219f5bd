#include "launch/plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "kube/pod_end.h"

namespace trainyard::launch {
namespace {

constexpr absl::Duration kLookAgain = absl::Seconds(1);

// It has ended a run of the script, or has not begun one.
bool IsStill(const SeenAgent& agent) {
  return agent.state != AgentState::kRunning && agent.state != AgentState::kStopping;
}

bool HasEnded(const kube::CompactPod& pod) { return pod.IsFinished() || pod.IsBeingDeleted(); }

// Why no node has it yet; "": one has.
std::string_view UnscheduledBecause(const kube::CompactPod& pod) {
  if (pod.phase != kube::PodPhase::kPending || pod.scheduled.status != kube::ConditionStatus::kFalse)
    return "";
  return pod.unscheduled.empty() ? "no node has room" : pod.unscheduled.view();
}

// Why its containers do not begin: "ImagePullBackOff: ..."; "": nothing is known to be wrong.
std::string WaitsBecause(const kube::CompactPod& pod) {
  for (const auto* const containers : {&pod.init_containers, &pod.containers}) {
    for (const kube::ContainerStatus& container : *containers) {
      const std::string_view reason = container.state.reason.view();
      if (container.state.kind != kube::ContainerState::Kind::kWaiting || reason.empty() ||
          reason == "PodInitializing" || reason == "ContainerCreating")
        continue;
      return StrCat(reason, container.state.message.empty() ? "" : ": ", container.state.message);
    }
  }
  return "";
}

// Of a pod that is being deleted. A node that is lost takes its agents with it, before its pods are deleted.
std::string DescribeDeletion(const SeenMember& seen) {
  const kube::CompactPod& pod = *seen.pod;
  const absl::Time asked =
      *pod.meta.deletion_time - absl::Seconds(pod.meta.deletion_grace_seconds.value_or(0));
  const bool silent = seen.agent && seen.agent->silent_since && *seen.agent->silent_since < asked;
  return silent && !pod.node.empty() ? StrCat("was lost with ", pod.node.view()) : "was deleted";
}

class Planner {
 public:
  Planner(const TaskView& view, absl::Time now) : view_(view), spec_(view.spec), now_(now) {
    plan_.status = view.status;
  }

  TaskPlan Plan() {
    NoteWhoIsDone();
    if (IsOver(status().phase)) {
      EndAll();
    } else if (view_.job.ends) {
      EndAs(view_.job.succeeded ? Phase::kSucceeded : Phase::kFailed, view_.job.message);
    } else if (view_.cancel) {
      Cancel();
    } else if (!Succeed() && !TakeLosses()) {
      Advance();
    }
    if (plan_.store) plan_.actions.clear();
    TellStates();
    return plan_;
  }

 private:
  Progress& status() { return plan_.status; }
  job::MemberProgress& StatusOf(const MemberId& member) { return status().members[member]; }
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

  void EndAs(Phase phase, std::string reason) {
    status().phase = phase;
    status().reason = std::move(reason);
    status().ended = now_;
    plan_.store = true;
  }

  // Agents of a task that is over end, and the operator ends the job with what they leave.
  void EndAll() {
    const bool succeeded = status().phase == Phase::kSucceeded;
    if (!succeeded && !view_.job.asked && !view_.job.ends) Act(Fail{status().reason});
    if (!view_.job.over) WakeAt(now_ + kLookAgain);
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (!seen.pod || HasEnded(*seen.pod) || !seen.agent || seen.agent->silent_since) continue;
      if (seen.agent->state == AgentState::kRunning) Act(Stop{member, seen.agent->attempt});
      if (IsStill(*seen.agent)) Act(End{member, succeeded});
    }
  }

  void Cancel() {
    bool runs = false;
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (!seen.pod || HasEnded(*seen.pod) || (seen.agent && IsStill(*seen.agent))) continue;
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
    std::string pod;                         // the uid of the pod that is lost; "": only the script is
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
    const job::MemberProgress& known = StatusOf(member);
    if (IsDone(known)) return std::nullopt;
    const kube::CompactPod* const pod = seen.pod.get();
    const bool placed = !known.pod.empty();
    if (placed && (pod == nullptr || pod->meta.uid != known.pod))
      return Loss{member, "its pod was deleted", known.pod};
    // The operator replaces a pod that is counted, and one that went before it had anything to run.
    if (pod == nullptr || pod->meta.uid == known.lost) return std::nullopt;
    if (pod->IsFinished()) return Loss{member, kube::DescribeEnd(*pod), pod->meta.uid};
    if (pod->IsBeingDeleted())
      return placed ? std::optional(Loss{member, DescribeDeletion(seen), pod->meta.uid}) : std::nullopt;
    if (const auto since = SilentSince(seen)) {
      const absl::Time due = *since + spec_.agent_timeout;
      if (now_ < due) {
        WakeAt(due);
        return std::nullopt;
      }
      return Loss{member,
                  StrCat("its agent has not answered for ", absl::FormatDuration(spec_.agent_timeout)),
                  pod->meta.uid};
    }
    if (!seen.agent) return std::nullopt;
    const bool ran = !status().present.empty() && seen.agent->attempt == known.attempt;
    if (ran && seen.agent->state == AgentState::kExited && IsBad(member, *seen.agent))
      return Loss{member, seen.agent->reason, "", seen.agent->ended.value_or(absl::InfinitePast())};
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
      job::MemberProgress& known = StatusOf(loss.member);
      if (!loss.pod.empty()) {
        known.lost = loss.pod;
        known.pod.clear();
      }
      // Before it is decided who is in the attempt of all, no member has one of its own.
      if (!all && known.attempt > 0 && !status().present.empty()) ++known.attempt;
      if (!all) Record(loss, Wanted(loss.member), 1);
    }
    if (all) Record(*whole, NextAttempt(), losses.size());
    if (all) {
      status().attempt = NextAttempt();
      status().present.clear();
      status().since = now_;
      status().phase = Phase::kRestarting;
      ForgetPodsThatWent();
    }
    status().reason = StrCat(status().history.back().member, " ", status().history.back().cause, "; restart ",
                             status().restarts, " of ", spec_.max_restarts);
    return true;
  }

  // Also of members that were done: they need another for the next attempt, and that is no loss more.
  void ForgetPodsThatWent() {
    for (auto& [member, known] : status().members) {
      const SeenMember& seen = Seen(member);
      if (seen.pod && HasEnded(*seen.pod)) known.lost = seen.pod->meta.uid;
      if (!seen.pod || seen.pod->meta.uid != known.pod || seen.pod->meta.uid == known.lost) known.pod.clear();
    }
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
    if (status().history.size() > job::kMostScriptRestarts) status().history.erase(status().history.begin());
  }

  // ---- The good way

  // What it had to do in this attempt is done, whatever becomes of its pod.
  bool IsDone(const job::MemberProgress& known) const {
    return !plan_.status.present.empty() && known.attempt > 0 && known.done == known.attempt;
  }

  bool Succeed() {
    if (status().present.empty()) return false;
    for (const MemberId& member : status().present) {
      if (Decides(spec_, member.role) && !IsDone(StatusOf(member))) return false;
    }
    EndAs(Phase::kSucceeded, "all that matter exited 0");
    return true;
  }

  bool IsReady(const MemberId& member) {
    const SeenMember& seen = Seen(member);
    return seen.pod && !HasEnded(*seen.pod) && seen.pod->meta.uid != StatusOf(member).lost &&
           !seen.pod->pod_ip.empty() && seen.agent && !seen.agent->silent_since;
  }

  void Advance() {
    for (const auto& [member, known] : view_.status.members) {
      const SeenMember& seen = Seen(member);
      if (seen.pod && seen.pod->meta.uid == known.lost && !HasEnded(*seen.pod)) Act(Replace{member});
      const bool old =
          seen.agent && seen.agent->state == AgentState::kRunning && seen.agent->attempt < Wanted(member);
      if (old) Act(Stop{member, seen.agent->attempt});
    }
    if (const int workers = WantedWorkers(); spec_.IsElastic() && workers != view_.job.workers)
      Act(Resize{workers});
    if (!status().present.empty()) return RunAll();
    DecidePresent();
  }

  // Those that found no room do not hold any when they find it in the middle of an attempt.
  int WantedWorkers() const {
    int workers = 0;
    for (const MemberId& member : plan_.status.present) {
      if (member.role == Role::kWorker) workers = std::max(workers, member.index + 1);
    }
    return plan_.status.present.empty() ? spec_.MostWorkers() : workers;
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
      only_room =
          only_room && member.role == Role::kWorker && seen.pod && !UnscheduledBecause(*seen.pod).empty();
      only_extra = only_extra && member.index >= spec_.workers;
    }
    const absl::Time due = only_extra ? now_ : status().since + kRoomPatience;
    const bool enough = only_room && workers >= spec_.LeastWorkers();
    if (!missing.empty() && enough && now_ < due) WakeAt(due);
    if (!missing.empty() && !(enough && now_ >= due)) return TellMissing(missing);
    for (const MemberId& member : ready) {
      StatusOf(member).attempt = status().attempt;
      StatusOf(member).pod = Seen(member).pod->meta.uid;
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
    if (const std::string why = MissingBecause(seen); !why.empty()) StrAppend(text, ": ", why);
    if (status().phase == Phase::kRestarting && !status().history.empty())
      StrAppend(text, "; restarted because ", status().history.back().member, " ",
                status().history.back().cause);
    status().reason = std::move(text);
  }

  std::string MissingBecause(const SeenMember& seen) {
    if (!view_.job.taken_up) {
      const absl::Time due = view_.created + kOperatorPatience;
      if (now_ >= due)
        return "no operator has taken the job up: `kubectl apply -k deploy/` installs one, and `trainyard "
               "operator` runs one";
      WakeAt(due);
      return "";
    }
    if (!seen.pod) return view_.job.message;
    const std::string_view unscheduled = UnscheduledBecause(*seen.pod);
    return unscheduled.empty() ? WaitsBecause(*seen.pod) : std::string(unscheduled);
  }

  Lineup MakeLineup() {
    Lineup lineup{.present = status().present, .attempt = status().attempt};
    for (const MemberId& member : lineup.present)
      lineup.hosts[member] = HostOf(spec_, member, Seen(member).pod ? Seen(member).pod->pod_ip : "");
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
      job::MemberProgress& known = StatusOf(member);
      if (IsDone(known)) continue;
      const bool here = seen.agent && !seen.agent->silent_since && seen.agent->attempt >= known.attempt;
      const bool runs = here && seen.agent->state != AgentState::kConfigured;
      // A member that comes back alone waits for nobody, and nobody for it.
      const bool alone = known.attempt > status().attempt;
      configured = configured && (here || alone);
      servers = servers && (runs || member.role != Role::kPs);
      running = running && runs;
      if (IsReady(member) && known.pod.empty()) {
        // Stored before it is given anything to run, so that nothing is run twice should it go.
        known.pod = seen.pod->meta.uid;
        plan_.store = true;
      } else if (!here && placed && IsReady(member) && IsStill(*seen.agent)) {
        Lineup own = lineup;
        own.attempt = known.attempt;
        Act(Configure{member, known.attempt, EnvironmentOf(spec_, own, member)});
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
      if (!status().started) status().started = now_;
    }
    if (status().phase == Phase::kRunning) TellRunning();
  }

  void TellRunning() {
    status().reason = StrCat(status().present.size(), " members run");
    for (const MemberId& member : status().present) {
      const SeenMember& seen = Seen(member);
      if (IsDone(StatusOf(member)) || !seen.agent || !seen.agent->silent_since) continue;
      status().reason = StrCat("the agent of ", Print(member), " does not answer");
      return;
    }
  }

  // ---- For people

  void TellStates() {
    status().running = 0;
    for (auto& [member, known] : status().members) {
      const SeenMember& seen = Seen(member);
      const bool runs = seen.agent && !seen.agent->silent_since && seen.agent->attempt == known.attempt &&
                        seen.agent->state == AgentState::kRunning;
      status().running += IsPresent(member) && (runs || IsDone(known)) ? 1 : 0;
      if (IsOver(view_.status.phase) && !seen.agent && !known.state.empty())
        continue;  // how it ended is known
      known.state = seen.pod ? StateOf(seen) : "has no pod";
    }
  }

  static std::string StateOf(const SeenMember& seen) {
    const kube::CompactPod& pod = *seen.pod;
    if (HasEnded(pod)) {
      if (seen.agent && seen.agent->state == AgentState::kExited) return seen.agent->reason;
      return pod.IsFinished() ? kube::DescribeEnd(pod) : DescribeDeletion(seen);
    }
    if (const std::string_view why = UnscheduledBecause(pod); !why.empty())
      return StrCat("waits for a node: ", why);
    if (std::string why = WaitsBecause(pod); !why.empty()) return why;
    if (!seen.agent)
      return pod.phase == kube::PodPhase::kRunning ? "its agent does not answer yet" : "is being started";
    return StrCat(StateOf(*seen.agent), pod.node.empty() ? "" : " on ", pod.node.view());
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
  return spec.strategy == Strategy::kParameterServer ? StrCat(spec.name, "-", Print(member)) : ip;
}

std::string Print(const Action& action) {
  struct Printer {
    std::string operator()(const Configure& a) const {
      return StrCat("configure ", Print(a.member), " (", a.attempt, ")");
    }
    std::string operator()(const Run& a) const {
      return StrCat("run ", Print(a.member), " (", a.attempt, ")");
    }
    std::string operator()(const Stop& a) const { return StrCat("stop ", Print(a.member)); }
    std::string operator()(const End& a) const { return StrCat("end ", Print(a.member)); }
    std::string operator()(const Replace& a) const { return StrCat("replace ", Print(a.member)); }
    std::string operator()(const Resize& a) const { return StrCat("resize to ", a.workers, " workers"); }
    std::string operator()(const Fail& a) const { return StrCat("fail: ", a.why); }
  };
  return std::visit(Printer(), action);
}

TaskPlan PlanTask(const TaskView& view, absl::Time now) { return Planner(view, now).Plan(); }

}  // namespace trainyard::launch
