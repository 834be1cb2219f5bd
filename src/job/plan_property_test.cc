// What holds of PlanJob whatever happens: random jobs in a world where anything may happen to their pods.
#include <set>

#include "gtest/gtest.h"
#include "job/job_testing.h"
#include "job/plan.h"
#include "rapidcheck/gtest.h"

namespace trainyard::job {
namespace {

EndPolicy RandomEnd() {
  return *rc::gen::element(EndPolicy::kAny, EndPolicy::kRank0, EndPolicy::kAll, EndPolicy::kNone);
}

JobView RandomAiJob() {
  std::vector<RoleSpec> roles;
  for (const std::string name : {"trainer", "pserver"}) {
    const auto restart = *rc::gen::element(
        RestartPolicy::kAlways, RestartPolicy::kOnFailure, RestartPolicy::kNever, RestartPolicy::kExitCode,
        RestartPolicy::kOnNodeFail, RestartPolicy::kOnNodeFailWithExitCode);
    RoleSpec role = AiRole(name, *rc::gen::inRange(1, 4), restart,
                           *rc::gen::element(RestartScope::kPod, RestartScope::kRole, RestartScope::kJob));
    role.complete = RandomEnd();
    role.fail = RandomEnd();
    if (*rc::gen::arbitrary<bool>()) role.restart_limit = *rc::gen::inRange(0, 4);
    role.size =
        *rc::gen::element(SizePolicy::kPlain, SizePolicy::kManual, SizePolicy::kAuto, SizePolicy::kFixed);
    role.least = 1;
    role.most = 3;
    roles.push_back(std::move(role));
    if (*rc::gen::arbitrary<bool>()) break;
  }
  JobView job = AiJob(std::move(roles));
  job.spec.clean = *rc::gen::element(CleanPolicy::kAll, CleanPolicy::kNone);
  job.spec.complete = RandomEnd();
  job.spec.fail = RandomEnd();
  job.spec.fault_tolerant = *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 4) == 0) job.spec.time_limit = absl::Seconds(*rc::gen::inRange(10, 500));
  job.policies.creation_fails = *rc::gen::arbitrary<bool>();
  return job;
}

JobView RandomTfJob() {
  const auto restart = [] {
    return *rc::gen::element(RestartPolicy::kAlways, RestartPolicy::kOnFailure, RestartPolicy::kNever,
                             RestartPolicy::kExitCode);
  };
  std::vector<RoleSpec> roles;
  roles.push_back(Role("Worker", *rc::gen::inRange(1, 4), restart(),
                       *rc::gen::element(EndPolicy::kRank0, EndPolicy::kAll, EndPolicy::kAny)));
  if (*rc::gen::arbitrary<bool>()) roles.push_back(Role("PS", *rc::gen::inRange(0, 3), restart()));
  JobView job = Job(std::move(roles));
  job.spec.clean = *rc::gen::element(CleanPolicy::kAll, CleanPolicy::kRunning, CleanPolicy::kNone);
  if (*rc::gen::arbitrary<bool>()) job.spec.restart_limit = *rc::gen::inRange(0, 5);
  if (*rc::gen::inRange(0, 4) == 0) job.spec.deadline = absl::Seconds(*rc::gen::inRange(10, 500));
  return job;
}

JobView RandomJob() { return *rc::gen::arbitrary<bool>() ? RandomTfJob() : RandomAiJob(); }

PodView* RandomPod(World& world) {
  if (world.view.pods.empty()) return nullptr;
  return &world.view.pods[*rc::gen::inRange<std::size_t>(0, world.view.pods.size())];
}

// Something happens. Returns whether the spec was changed, after which counters of indexes may fall.
bool Happen(World& world) {
  PodView* pod = RandomPod(world);
  const int exit_code = *rc::gen::element(0, 1, 130, 137, 143);
  const bool phases = world.view.spec.telling == Telling::kByPhase;
  switch (*rc::gen::inRange(0, 16)) {
    case 0:
      world.RunAll();
      return false;
    case 1:
      if (pod != nullptr && pod->main_runs) world.End(*pod, exit_code);
      return false;
    case 2:
      if (pod != nullptr && pod->main_runs && !phases) world.Restart(*pod, exit_code);
      return false;
    case 3:
      if (pod != nullptr && !pod->IsFinished()) world.Evict(*pod);
      return false;
    case 4:
      if (pod != nullptr && !pod->node.empty()) {
        world.LoseNode(*pod,
                       *rc::gen::element(NodeHealth::kGone, NodeHealth::kNotReady, NodeHealth::kUnknown));
      }
      return false;
    case 5:
      if (pod != nullptr) world.Remove(*pod);
      return false;
    case 6:
      if (!world.view.services.empty()) world.view.services.pop_back();
      return false;
    case 7:
      world.view.spec.suspend = !phases && !world.view.spec.suspend;
      return false;
    case 8:
      world.view.spec.roles[0].replicas = *rc::gen::inRange(1, 5);
      return true;
    case 9:
      if (pod != nullptr && !pod->deletion) {
        pod->deletion = Deletion{.asked = world.now, .due = world.now + absl::Seconds(30)};
      }
      return false;
    case 10:
      if (pod != nullptr && pod->deletion) world.Remove(*pod);
      return false;
    case 11:
      if (pod != nullptr && phases && pod->phase == Phase::kPending) {
        pod->node = "node-1";
        pod->creation_error = *rc::gen::arbitrary<bool>() ? "ErrImagePull" : "";
      }
      return false;
    case 12:
      if (pod != nullptr && phases && pod->main_runs) pod->accelerator_trouble = "condition GPUFailed";
      return false;
    case 13:
      if (phases) world.view.targets["trainer"] = *rc::gen::inRange(0, 6);
      return true;
    case 14:
      if (phases && *rc::gen::inRange(0, 10) == 0) {
        world.view.spec.asked =
            AskedEnd{.state = *rc::gen::element(State::kPreempted, State::kFailed, State::kNodeFail)};
      }
      return false;
    default:
      world.Pass(absl::Seconds(*rc::gen::inRange(1, 400)));
      return false;
  }
}

void CheckSteady(const JobView& view, const JobStatus& after, bool scaled) {
  const JobStatus& before = view.status;
  const bool phases = view.spec.telling == Telling::kByPhase;
  if (before.IsFinished()) {
    RC_ASSERT(after.IsFinished());
    RC_ASSERT(after.Current()->type == before.Current()->type);
    RC_ASSERT(after.completion_time == before.completion_time);
  }
  int current = 0;
  std::set<State> types;
  for (const Condition& condition : after.conditions) {
    current += condition.is_true ? 1 : 0;
    RC_ASSERT(types.insert(condition.type).second);
  }
  RC_ASSERT(current <= 1);
  if (after.completion_time) {
    RC_ASSERT(after.IsFinished());
    const Condition* running = after.Find(State::kRunning);
    RC_ASSERT((running == nullptr || !running->is_true));
  }
  for (const auto& [name, role] : before.roles) {
    const RoleStatus& now = after.roles.at(name);
    RC_ASSERT(now.restarts >= role.restarts);
    RC_ASSERT((phases || now.failed >= role.failed));
    RC_ASSERT(now.disruptions >= role.disruptions);
    // A role that is made again as a whole begins anew.
    const bool anew = phases && (now.AttemptOf(0) > role.AttemptOf(0) || now.size != role.size);
    if (!scaled && !anew) RC_ASSERT(now.completed.Count() >= role.completed.Count());
    if (!scaled && !anew) RC_ASSERT(now.given_up.Count() >= role.given_up.Count());
    for (const auto& [index, attempt] : role.attempts) {
      if (!scaled && now.size == role.size) RC_ASSERT(now.AttemptOf(index) >= attempt);
    }
  }
}

// What must be stored before it is acted on.
bool Raises(const JobStatus& before, const JobStatus& after) {
  if (before.IsFinished() != after.IsFinished()) return true;
  for (const auto& [name, role] : after.roles) {
    const auto known = before.roles.find(name);
    if (known != before.roles.end() && known->second.size && known->second.size != role.size) return true;
    for (const auto& [index, attempt] : role.attempts) {
      if (attempt > (known == before.roles.end() ? 0 : known->second.AttemptOf(index))) return true;
    }
  }
  return false;
}

// Nobody of a role that is made again as a whole is made while one of the past is there.
void CheckBarrier(const JobView& view, const CreatePod& create) {
  const auto role = std::ranges::find(view.spec.roles, create.role, &RoleSpec::slug);
  const auto known = view.status.roles.find(role->name);
  if (known == view.status.roles.end() || known->second.barrier == RestartScope::kPod) return;
  for (const PodView& pod : view.pods) {
    if (pod.role != create.role || !pod.owned) continue;
    RC_ASSERT(pod.attempt >= known->second.AttemptOf(pod.index));
  }
}

void CheckPlan(const JobView& view, const JobPlan& plan) {
  // What must survive a crash is stored first, by a plan that cannot have actions.
  if (std::holds_alternative<Act>(plan.decision)) RC_ASSERT(!Raises(view.status, plan.status));
  if (!std::holds_alternative<Act>(plan.decision)) RC_ASSERT(!(plan.status == view.status));
  const bool ends = plan.status.IsFinished() || plan.status.ending;
  const bool ended = view.status.IsFinished() || (view.status.ending && plan.status.ending);
  RC_ASSERT((ends && !ended) == std::holds_alternative<End>(plan.decision));
  const auto limit = view.spec.restart_limit;
  RC_ASSERT((!limit || plan.status.CountRestarts() <= *limit || plan.status.IsFinished()));
  std::set<std::string> made;
  for (const Action& action : plan.actions()) {
    // Under an epoch that is stored, so that none ever means two things.
    if (const auto* write = std::get_if<WriteMembers>(&action))
      RC_ASSERT(write->epoch == view.status.members.epoch);
    const auto* create = std::get_if<CreatePod>(&action);
    if (create == nullptr) continue;
    RC_ASSERT(!view.status.IsFinished());
    RC_ASSERT(!view.spec.suspend);
    RC_ASSERT(made.insert(ShortName(create->role, create->index)).second);
    for (const PodView& pod : view.pods) RC_ASSERT((pod.role != create->role || pod.index != create->index));
    CheckBarrier(view, *create);
  }
}

RC_GTEST_PROP(PlanJobProperties, HoldWhateverHappens, ()) {
  World world(RandomJob());
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const bool scaled = i > 0 && Happen(world);
    // Now and then the world goes on before the plan has come to its end.
    const int most = *rc::gen::inRange(0, 3) == 0 ? 1 : 30;
    for (int round = 0; round < most; ++round) {
      const JobPlan plan = world.Plan();
      RC_ASSERT((plan == world.Plan()));
      CheckPlan(world.view, plan);
      CheckSteady(world.view, plan.status, scaled);
      const JobStatus before = world.view.status;
      world.Step();
      RC_ASSERT(!world.twice);
      RC_ASSERT(!world.lost_epochs);
      if (plan.actions().empty() && plan.status == before) break;
      RC_ASSERT(round < 25);  // it comes to rest
    }
  }
}

// If nobody disturbs it any more, a job whose pods end well ends well, unless it has failed.
RC_GTEST_PROP(PlanJobProperties, NeverHang, ()) {
  World world(RandomJob());
  const int steps = *rc::gen::inRange(0, 20);
  for (int i = 0; i < steps; ++i) {
    Happen(world);
    world.Settle();
  }
  world.view.spec.suspend = false;
  world.view.avoid_nodes.clear();
  for (int i = 0; i < 100 && !world.view.status.IsFinished(); ++i) {
    for (PodView& pod : world.view.pods) {
      if (pod.main_runs && !pod.deletion && pod.node_health == NodeHealth::kReady) world.End(pod, 0);
    }
    RC_ASSERT(world.Settle() >= 0);
    world.RunAll();
    for (PodView& pod : world.view.pods) {
      pod.creation_error.clear();
      if (pod.node_health == NodeHealth::kUnknown) pod.node_health = NodeHealth::kReady;
    }
    std::erase_if(world.view.pods,
                  [](const PodView& pod) { return pod.deletion && pod.node_health == NodeHealth::kReady; });
    world.Pass(absl::Minutes(1));
  }
  RC_ASSERT(world.view.status.IsFinished());
}

}  // namespace
}  // namespace trainyard::job
