// Jobs and pods for tests, and a small world in which plans come true.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "job/job_view.h"
#include "job/names.h"
#include "job/plan.h"

namespace trainyard::job {

inline const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

inline RoleSpec Role(std::string name, int replicas, RestartPolicy restart,
                     EndPolicy complete = EndPolicy::kNone) {
  std::string slug = name;
  std::ranges::transform(slug, slug.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return {.name = std::move(name),
          .slug = std::move(slug),
          .replicas = replicas,
          .restart = TfRestartRules(restart),
          .complete = complete};
}

inline JobView Job(std::vector<RoleSpec> roles) {
  return {.name = "mnist",
          .ns = "default",
          .uid = "0a1b2c3d-0000-4000-8000-000000000000",
          .generation = 1,
          .spec = {.kind = "TFJob", .roles = std::move(roles)}};
}

// A role of an AITrainingJob, with the defaults that users get.
inline RoleSpec AiRole(std::string name, int replicas, RestartPolicy restart = RestartPolicy::kNever,
                       RestartScope scope = RestartScope::kJob) {
  RoleSpec role = Role(std::move(name), replicas, restart, EndPolicy::kAll);
  role.restart = AiRestartRules(restart, ExitCodes(128, 255));
  role.scope = scope;
  role.main_alone = true;
  return role;
}

inline JobView AiJob(std::vector<RoleSpec> roles) {
  JobView job = Job(std::move(roles));
  job.spec.kind = "AITrainingJob";
  job.spec.reasons = "TrainingJob";
  job.spec.telling = Telling::kByPhase;
  job.spec.names_with_uid = false;
  job.spec.sized = true;
  job.spec.clean = CleanPolicy::kAll;
  return job;
}

// Worker 0 decides.
inline JobView Workers(int replicas, RestartPolicy restart) {
  return Job({Role("Worker", replicas, restart, EndPolicy::kRank0)});
}

// Does what plans say, as a cluster would, and what a test wants to happen to the pods.
class World {
 public:
  explicit World(JobView job) : view(std::move(job)) {}

  JobView view;
  absl::Time now = kStart;
  std::vector<Event> events;
  int made = 0;  // pods so far

  JobPlan Plan() const { return PlanJob(view, now); }

  // One plan comes true. What the plan did not wait for, pods that end, happens at once unless their node is
  // lost.
  JobPlan Step() {
    JobPlan plan = Plan();
    for (const Action& action : plan.actions()) {
      std::visit([this](const auto& one) { Do(one); }, action);
    }
    view.status = plan.status;
    events.insert(events.end(), plan.events.begin(), plan.events.end());
    return plan;
  }
  // Until there is nothing left to do now; how many plans that took, or -1 if it does not end.
  int Settle(int most = 20) {
    for (int i = 0; i < most; ++i) {
      const JobStatus before = view.status;
      const JobPlan plan = Step();
      if (plan.actions().empty() && plan.status == before) return i;
    }
    return -1;
  }
  void Pass(absl::Duration time) { now += time; }

  PodView* Find(std::string_view role, int index) {
    const auto found = std::ranges::find_if(
        view.pods, [&](const PodView& pod) { return pod.role == role && pod.index == index; });
    return found == view.pods.end() ? nullptr : &*found;
  }

  // ---- what happens to pods

  static void Run(PodView& pod, std::string node = "node-1") {
    pod.phase = Phase::kRunning;
    pod.main_runs = true;
    pod.node = std::move(node);
    pod.node_health = NodeHealth::kReady;
  }
  void RunAll() {
    for (PodView& pod : view.pods) {
      if (pod.phase == Phase::kPending) Run(pod);
    }
  }
  // It ends, and nobody starts it again.
  void End(PodView& pod, int exit_code, std::string reason = "Error") const {
    pod.main_runs = false;
    pod.phase = exit_code == 0 ? Phase::kSucceeded : Phase::kFailed;
    pod.main_succeeded |= exit_code == 0;
    if (exit_code != 0)
      pod.end = ContainerEnd{.exit_code = exit_code, .reason = std::move(reason), .at = now};
  }
  // The same, and its other containers go on.
  void EndMainOnly(PodView& pod, int exit_code) const {
    End(pod, exit_code);
    pod.phase = Phase::kRunning;
    pod.main_failed = true;
  }
  // It ends, and the kubelet starts it again.
  void Restart(PodView& pod, int exit_code) const {
    ++pod.restarts;
    pod.restarted_after_success = exit_code == 0;
    pod.main_succeeded |= exit_code == 0;
    if (exit_code != 0) pod.end = ContainerEnd{.exit_code = exit_code, .reason = "Error", .at = now};
  }
  void Evict(PodView& pod) const {
    pod.phase = Phase::kFailed;
    pod.main_runs = false;
    pod.reason = "Evicted";
    pod.since = now;
  }
  void LoseNode(PodView& pod, NodeHealth health) const {
    pod.node_health = health;
    pod.node_since = now;
  }
  void Remove(const PodView& pod) {
    std::erase_if(view.pods, [uid = pod.uid](const PodView& other) { return other.uid == uid; });
  }

 private:
  void Do(const CreatePod& create) {
    const std::string name = PodName(view.Naming(), create.role, create.index);
    for (const PodView& pod : view.pods) twice |= pod.name == name;
    view.pods.push_back({.name = name,
                         .uid = "pod-" + std::to_string(++made),
                         .role = create.role,
                         .index = create.index,
                         .attempt = create.attempt,
                         .since = now});
  }
  void Do(const CreateService& create) {
    view.services.push_back({.name = PodName(view.Naming(), create.role, create.index),
                             .uid = "service-" + std::to_string(++made),
                             .role = create.role,
                             .index = create.index});
  }
  void Do(const DeletePod& remove) {
    const auto pod = std::ranges::find(view.pods, remove.uid, &PodView::uid);
    if (pod == view.pods.end()) return;
    const bool answers = pod->node_health != NodeHealth::kNotReady && pod->node_health != NodeHealth::kGone;
    if (remove.force || answers || pod->IsFinished()) {
      view.pods.erase(pod);
    } else if (!pod->deletion) {
      pod->deletion = Deletion{.asked = now, .due = now + absl::Seconds(30)};
    }
  }
  void Do(const DeleteService& remove) {
    std::erase_if(view.services, [&](const ServiceView& service) { return service.uid == remove.uid; });
  }
  void Do(const StopPod& stop) {
    const auto pod = std::ranges::find(view.pods, stop.uid, &PodView::uid);
    if (pod == view.pods.end()) return;
    pod->stopped = true;
    pod->phase = Phase::kFailed;
    pod->main_runs = false;
    pod->reason = "DeadlineExceeded";
    pod->since = now;
  }
  void Do(const WriteMembers& write) {
    lost_epochs |= view.members && write.epoch <= epoch;
    epoch = write.epoch;
    view.members = ConfigMapView{
        .name = "members", .uid = "members", .version = std::to_string(++made), .text = write.text};
  }
  void Do(const WriteConfig&) {
    view.config = ConfigMapView{
        .name = "config", .uid = "config", .version = std::to_string(++made), .text = view.wanted_config};
  }
  void Do(const DeleteConfigMap& remove) { (remove.name == "config" ? view.config : view.members).reset(); }
  void Do(const RelabelPod& relabel) {
    std::ranges::find(view.pods, relabel.name, &PodView::name)->mislabelled = false;
  }
  void Do(const RepairService& repair) {
    std::ranges::find(view.services, repair.name, &ServiceView::name)->altered = false;
  }
  void Do(const AdoptPod& adopt) {
    for (PodView& pod : view.pods) pod.owned |= pod.uid == adopt.uid;
  }
  void Do(const AdoptService& adopt) {
    for (ServiceView& service : view.services) service.owned |= service.uid == adopt.uid;
  }
  void Do(const DeleteJob&) { view.leaving = true; }

 public:
  bool twice = false;        // a pod was made whose name was taken
  bool lost_epochs = false;  // members were told of others under an epoch that was used
  std::int64_t epoch = 0;    // that the members were told of last
};

inline State StateOf(const JobStatus& status) {
  const Condition* current = status.Current();
  return current == nullptr ? State::kCreated : current->type;
}
inline std::string MessageOf(const JobStatus& status) {
  const Condition* current = status.Current();
  return current == nullptr ? "" : current->message;
}

// A world whose job has come to run.
inline World Running(JobView job) {
  World world(std::move(job));
  EXPECT_GE(world.Settle(), 0);
  world.RunAll();
  EXPECT_GE(world.Settle(), 0);
  EXPECT_EQ(StateOf(world.view.status), State::kRunning);
  return world;
}

}  // namespace trainyard::job
