#include "tests/sim/schedule.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/document.h"
#include "base/ids.h"
#include "base/text.h"
#include "kube/event_recorder.h"
#include "operator/autoscaler.h"
#include "operator/kinds.h"
#include "operator/metrics.h"
#include "reconcile/controller.h"
#include "tests/sim/cluster.h"
#include "tests/sim/documents.h"
#include "tests/sim/faulty_transport.h"
#include "tests/sim/promises.h"

namespace trainyard::sim {
namespace {

using kube::ObjectKey;
using kube::Resource;

constexpr int kNodes = 3;
constexpr int kSteps = 60;         // of what may happen
constexpr int kQuietRounds = 200;  // afterwards, for all to come to an end

std::string NodeName(std::uint64_t number) { return StrCat("node-", number); }

// An operator process: it may crash, and another then takes its place.
struct Process {
  std::unique_ptr<FaultyTransport> transport;
  std::unique_ptr<kube::Api> api;
  std::unique_ptr<ops::Metrics> metrics;
  std::unique_ptr<kube::EventRecorder> events;
  std::unique_ptr<reconcile::Surroundings> surroundings;
  std::unique_ptr<ops::Autoscaler> autoscaler;
  std::vector<std::unique_ptr<reconcile::Controller>> controllers;  // by kind

  ~Process() {
    controllers.clear();
    events.reset();
  }
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, bool trace) : random_(seed), cluster_(random_.Next(), trace) {}

  ScheduleResult Run() {
    Prepare();
    for (int step = 0; step < kSteps && Kept(); ++step) {
      ++result_.steps;
      Happen();
      RunProcesses(Below(6));
      promises_.Check();
    }
    if (Kept()) Calm();
    for (const std::string& what : promises_.broken())
      result_.broken.push_back(StrCat("step ", result_.steps, ": ", what));
    return std::move(result_);
  }

 private:
  bool Kept() const { return promises_.broken().empty(); }

  // ---- chance

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }
  bool Chance(int percent) { return Below(100) < static_cast<std::uint64_t>(percent); }
  template <typename T>
  const auto& OneOf(const T& values) {
    return values[Below(values.size())];
  }
  void Tell(std::string_view what) const { cluster_.story().Tell(what); }

  // ---- the beginning

  void Prepare() {
    for (int i = 1; i <= kNodes; ++i) cluster_.MakeNode(NodeName(static_cast<std::uint64_t>(i)));
    const int jobs = 1 + static_cast<int>(Below(3));
    for (int i = 0; i < jobs; ++i)
      MakeJob(StrCat("job-", i), *cluster_.kinds()[Below(cluster_.kinds().size())]);
    rates_ = {.refused = static_cast<int>(Below(4)) * 20,
              .lost = static_cast<int>(Below(4)) * 20,
              .stale = static_cast<int>(Below(4)) * 20,
              .broken_watch = static_cast<int>(Below(3)) * 10};
    const std::size_t count = Chance(20) ? 2 : 1;
    processes_.resize(count);
    for (auto& process : processes_) StartProcess(process);
  }

  Object MakeRole(int replicas, std::string_view container = "tensorflow") {
    static const std::vector<std::string> policies = {"Always", "OnFailure", "Never", "ExitCode"};
    return {{"replicas", replicas},
            {"restartPolicy", OneOf(policies)},
            {"template",
             Object{{"spec", Object{{"terminationGracePeriodSeconds", 5},
                                    {"containers", Array{Object{{"name", container}, {"image", "x"}}}}}}}}};
  }

  Object MakeAiRole() {
    static const std::vector<std::string> policies = {"Always",   "OnFailure",  "Never",
                                                      "ExitCode", "OnNodeFail", "OnNodeFailWithExitCode"};
    static const std::vector<std::string> scopes = {"Pod", "Replica", "All"};
    static const std::vector<std::string> ends = {"Any", "Rank0", "All", "None"};
    Object role = MakeRole(1 + static_cast<int>(Below(3)));
    const Object half{{"requests", Object{{"cpu", "500m"}}}};
    MakeObjectAt(role["template"], {"spec"})["containers"] =
        Array{Object{{"name", "aitj-main"}, {"image", "x"}, {"resources", half}}};
    role["restartPolicy"] = OneOf(policies);
    role["restartScope"] = OneOf(scopes);
    if (Chance(40)) role["failPolicy"] = OneOf(ends);
    if (Chance(40)) role["completePolicy"] = OneOf(ends);
    if (Chance(50)) role["restartLimit"] = static_cast<int>(Below(4));
    static const std::vector<std::string> sizes = {"Never", "Manual", "Auto"};
    if (Chance(30)) role["edlPolicy"] = OneOf(sizes);
    if (Chance(20) || role.contains("edlPolicy")) role["maxReplicas"] = 3;
    return role;
  }

  Object MakeAiSpec() {
    static const std::vector<std::string> ends = {"Any", "Rank0", "All", "None"};
    Object roles{{"trainer", MakeAiRole()}};
    if (Chance(40)) roles["pserver"] = MakeAiRole();
    Object spec{{"replicaSpecs", std::move(roles)},
                {"cleanPodPolicy", Chance(50) ? "All" : "None"},
                {"restartingExitCode", "130, 137-143"},
                {"faultTolerant", Chance(30)}};
    if (Chance(20)) spec["failPolicy"] = OneOf(ends);
    if (Chance(20)) spec["completePolicy"] = OneOf(ends);
    if (Chance(15)) spec["timeLimit"] = static_cast<int>(30 + Below(600));
    return spec;
  }

  Object MakePolicies() {
    static const std::vector<std::string> cleans = {"All", "Running", "None"};
    Object policies{{"cleanPodPolicy", OneOf(cleans)}};
    if (Chance(40)) policies["backoffLimit"] = static_cast<int>(Below(5));
    if (Chance(15)) policies["activeDeadlineSeconds"] = static_cast<int>(30 + Below(600));
    return policies;
  }

  Object MakeTfSpec(bool v1) {
    Object roles{{"Worker", MakeRole(1 + static_cast<int>(Below(3)))}};
    if (Chance(30)) roles["Chief"] = MakeRole(1);
    if (Chance(30)) roles["PS"] = MakeRole(1 + static_cast<int>(Below(2)));
    Object spec = v1 ? Object{{"runPolicy", MakePolicies()}} : MakePolicies();
    spec["tfReplicaSpecs"] = std::move(roles);
    if (v1 && Chance(20)) spec["enableDynamicWorker"] = true;
    if (Chance(15)) spec["successPolicy"] = "AllWorkers";
    return spec;
  }

  Object MakePyTorchSpec() {
    const bool elastic = Chance(40);
    Object roles;
    if (elastic || Chance(80)) roles["Worker"] = MakeRole(1 + static_cast<int>(Below(3)), "pytorch");
    if (roles.empty() || Chance(60)) roles["Master"] = MakeRole(1, "pytorch");
    Object spec{{"pytorchReplicaSpecs", std::move(roles)}, {"runPolicy", MakePolicies()}};
    if (elastic) spec["elasticPolicy"] = Object{{"minReplicas", 1}, {"maxReplicas", 1 + Below(4)}};
    return spec;
  }

  void MakeJob(const std::string& name, const reconcile::Kind& kind) {
    kube::Resource resource = kind.resource();
    Object spec;
    if (kind.telling() == job::Telling::kByPhase) {
      spec = MakeAiSpec();
    } else if (resource.kind == "PyTorchJob") {
      spec = MakePyTorchSpec();
    } else {
      if (Chance(50)) resource.version = "v1alpha2";
      spec = MakeTfSpec(resource.version == "v1");
    }
    const Object job{{"apiVersion", resource.ApiVersion()},
                     {"kind", resource.kind},
                     {"metadata", Object{{"name", name}}},
                     {"spec", std::move(spec)}};
    const auto made = cluster_.user().Create(resource, kNamespace, PrintJson(job));
    if (!made.ok()) return promises_.Break(StrCat("a job is not taken: ", made.status().ToString()));
    Tell(StrCat("a job is made: ", PrintJson(job)));
    if (kind.is_elastic()) promises_.WasScaled(name);  // the autoscaler may do so at any time
  }

  // ---- what happens

  void Happen() {
    static const std::vector<int> exits = {0, 1, 130, 137, 143};
    switch (Below(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return RunKubelets(70);
      case 6:
        return EndOne(OneOf(exits));
      case 7:
        return EvictOne();
      case 8:
        return LoseOrMendNode();
      case 9:
        return DeleteOnePod();
      case 10:
        return DeleteOneService();
      case 11:
        return ChangeOneJob();
      case 12:
        if (Chance(20)) DeleteAndRemakeJob();
        return;
      case 13:
        if (Chance(10)) AskForEnd();
        return;
      case 14:
        return StickOne();
      default:
        return Pass(absl::Seconds(static_cast<int>(Below(Chance(10) ? 400 : 20))));
    }
  }

  void Pass(absl::Duration time) {
    cluster_.clock().Advance(time);
    Tell(StrCat("time passes: ", absl::FormatDuration(time)));
  }

  // Each pod may move on by one: bound, started, or gone when it was told to go.
  void RunKubelets(int percent) {
    const Objects pods = cluster_.ListPods();
    for (const Document& pod : pods) {
      if (!Chance(percent)) continue;
      if (IsLeaving(pod)) {
        if (!cluster_.IsOnLostNode(pod)) cluster_.RemovePod(pod);
      } else if (StringAt(pod, {"spec", "nodeName"}).empty()) {
        const std::string node = NodeName(1 + Below(kNodes));
        if (!cluster_.IsLost(node) && cluster_.HasNode(node)) cluster_.Bind(pod, node);
      } else if (StringAt(pod, {"status", "phase"}) == "Pending" && !cluster_.IsOnLostNode(pod)) {
        cluster_.StartPod(pod);
      } else if (StringAt(pod, {"status", "phase"}) == "Running" && IsStopped(pod) &&
                 !cluster_.IsOnLostNode(pod)) {
        cluster_.StopPod(pod);
      }
    }
  }
  static bool IsStopped(const Document& pod) {
    return Find(pod, {"spec", "activeDeadlineSeconds"}) != nullptr;
  }

  std::optional<Document> OneRunningPod() {
    std::vector<Document> found;
    for (const Document& pod : cluster_.ListPods()) {
      const bool runs = StringAt(pod, {"status", "phase"}) == "Running";
      if (runs && !cluster_.IsOnLostNode(pod)) found.push_back(pod);
    }
    if (found.empty()) return std::nullopt;
    return OneOf(found);
  }
  void EndOne(int exit_code) {
    const auto pod = OneRunningPod();
    if (!pod) return;
    std::function<void()> seen;
    if (Chance(50)) seen = [this] { RunProcesses(Below(4)); };
    cluster_.EndPod(*pod, exit_code, seen);
  }
  void EvictOne() {
    if (const auto pod = OneRunningPod()) cluster_.Evict(*pod);
  }

  void StickOne() {
    std::vector<Document> found;
    for (const Document& pod : cluster_.ListPods()) {
      const bool waits = StringAt(pod, {"status", "phase"}) == "Pending";
      if (waits && !StringAt(pod, {"spec", "nodeName"}).empty() && !IsLeaving(pod)) found.push_back(pod);
    }
    if (!found.empty()) cluster_.StickPod(OneOf(found), Chance(70));
  }

  void LoseOrMendNode() {
    const std::string name = NodeName(1 + Below(kNodes));
    if (cluster_.IsLost(name) || !cluster_.HasNode(name)) {
      cluster_.MakeNode(name);
      return Tell(StrCat(name, " is back, or new"));
    }
    cluster_.LoseNode(name, Chance(30));
    Tell(StrCat(name, " is lost"));
  }

  void DeleteOnePod() {
    const Objects pods = cluster_.ListPods();
    if (pods.empty()) return;
    const Document& pod = OneOf(pods);
    (void)cluster_.user().Delete(Resource::Pods(), KeyOf(pod));
    Tell(StrCat("a user deletes ", KeyOf(pod).name));
  }
  void DeleteOneService() {
    std::vector<Document> services;
    for (const Document& service : cluster_.List(Resource::Services())) {
      if (KeyOf(service).name != "kubernetes") services.push_back(service);
    }
    if (services.empty()) return;
    (void)cluster_.user().Delete(Resource::Services(), KeyOf(OneOf(services)));
    Tell("a user deletes a service");
  }

  std::optional<Document> OneJob() {
    const auto jobs = cluster_.ListJobs();
    if (jobs.empty()) return std::nullopt;
    return OneOf(jobs);
  }
  void ChangeOneJob() {
    const auto job = OneJob();
    if (!job) return;
    const std::string name = KeyOf(*job).name;
    const bool ai = HasPhase(*job);
    const std::string_view roles = ai                                         ? "replicaSpecs"
                                   : StringAt(*job, {"kind"}) == "PyTorchJob" ? "pytorchReplicaSpecs"
                                                                              : "tfReplicaSpecs";
    const std::string_view role = ai ? "trainer" : "Worker";
    Document patch;
    if (!ai && (Chance(50) || Find(*job, {"spec", roles, role}) == nullptr)) {
      patch = PolicyPatch(*job, Object{{"suspend", Chance(50)}});
      promises_.WasSuspended(name);
    } else {
      patch = Object{{"spec", Object{{roles, Object{{role, Object{{"replicas", 1 + Below(4)}}}}}}}};
      promises_.WasScaled(name);
    }
    PatchJob(*job, PrintJson(patch));
    Tell(StrCat("a user changes ", name, ": ", PrintJson(patch)));
  }
  void PatchJob(const Document& job, std::string patch) {
    (void)cluster_.user().Patch(cluster_.KindOf(job).resource(), KeyOf(job), std::move(patch),
                                {.type = kube::PatchType::kMerge});
  }
  void DeleteAndRemakeJob() {
    const auto job = OneJob();
    if (!job) return;
    Tell(StrCat("a user deletes ", KeyOf(*job).name, " and makes it again"));
    (void)cluster_.user().Delete(cluster_.KindOf(*job).resource(), KeyOf(*job));
    cluster_.ExpectGarbage();
    MakeJob(KeyOf(*job).name, cluster_.KindOf(*job));
  }
  void AskForEnd() {
    const auto job = OneJob();
    if (!job || cluster_.KindOf(*job).telling() != job::Telling::kByPhase) return;
    if (IsFinished(*job) || Find(*job, {"status", "ending"}) != nullptr) return;
    if (Find(*job, {"metadata", "annotations", "asked"}) != nullptr) return;  // once is enough
    static const std::vector<std::string> states = {"Preempted", "Failed", "NodeFail"};
    const std::string& state = OneOf(states);
    PatchJob(*job, PrintJson(Object{
                       {"metadata", Object{{"annotations", Object{{state, "please"}, {"asked", "yes"}}}}}}));
    promises_.WasAsked(UidOf(*job), state);
    Tell(StrCat("a user asks ", KeyOf(*job).name, " to be ", state));
  }

  // ---- the operators

  void StartProcess(std::unique_ptr<Process>& process) {
    process = std::make_unique<Process>();
    process->transport = std::make_unique<FaultyTransport>(
        cluster_.transport(), random_.Next(),
        FaultyTransport::Hooks{
            .before_write = [this](const kube::Request& request) { promises_.JudgeWrite(request); },
            .disturb = [this](const kube::Request& request) { Disturb(request); }});
    process->transport->rates = rates_;
    if (!calm_ && Chance(50)) process->transport->writes_until_crash = static_cast<int>(Below(40));
    ManualClock& clock = cluster_.clock();
    process->api = std::make_unique<kube::Api>(*process->transport, clock, IdSource(random_.Next()),
                                               kube::RetryPolicy{.attempts = 1});
    process->metrics = std::make_unique<ops::Metrics>();
    process->events = std::make_unique<kube::EventRecorder>(
        *process->api, clock, IdSource(random_.Next()),
        kube::EventRecorder::Options{.component = "sim", .instance = "sim"});
    process->surroundings = std::make_unique<reconcile::Surroundings>(
        *process->api, clock, reconcile::Surroundings::Options{.seed = random_.Next()});
    process->autoscaler =
        std::make_unique<ops::Autoscaler>(clock, *process->surroundings, ops::AutoscalerOptions());
    for (const auto& kind : cluster_.kinds()) {
      process->controllers.push_back(std::make_unique<reconcile::Controller>(
          *process->api, clock, *kind, *process->surroundings, *process->events, *process->metrics,
          reconcile::ControllerOptions{
              .policies = policies_,
              .find_targets = [autoscaler = process->autoscaler.get()](
                                  const std::string& uid) { return autoscaler->FindTargets(uid); },
              .seed = random_.Next()}));
      if (kind->is_elastic()) process->autoscaler->Watch(*kind, *process->controllers.back());
    }
    Tell("an operator starts");
  }

  // Somebody else writes to the object that a request is about to write to.
  void Disturb(const kube::Request& request) {
    for (const auto& kind : cluster_.kinds()) {
      const std::string place = StrCat("/", kind->resource().plural, "/");
      const std::size_t at = request.target.find(place);
      if (at == std::string::npos) continue;
      std::string name = request.target.substr(at + place.size());
      name = name.substr(0, name.find_first_of("/?"));
      (void)cluster_.user().Patch(
          kind->resource(), {std::string(kNamespace), name},
          StrCat(R"({"metadata":{"annotations":{"disturbed":")", random_.Next(), R"("}}})"),
          {.type = kube::PatchType::kMerge});
    }
  }

  void RunProcesses(std::uint64_t most) {
    bool busy = true;
    for (std::uint64_t i = 0; i < most && busy; ++i) {
      busy = false;
      for (auto& process : processes_) {
        if (process->transport->crashed) {
          Tell("an operator has crashed");
          ++result_.crashes;
          result_.writes += process->transport->writes;
          StartProcess(process);
        }
        busy |= process->surroundings->Step();
        if (Chance(10)) process->autoscaler->Pass();
        for (const auto& controller : process->controllers) busy |= controller->Step();
      }
    }
    cluster_.CollectGarbage();
  }

  // ---- the end: nothing goes wrong any more, and every job must come to its own

  void Calm() {
    Tell("calm");
    calm_ = true;
    rates_ = {};
    for (auto& process : processes_) {
      process->transport->rates = {};
      process->transport->writes_until_crash.reset();
    }
    for (int i = 1; i <= kNodes; ++i) cluster_.MakeNode(NodeName(static_cast<std::uint64_t>(i)));
    for (const Document& job : cluster_.ListJobs()) {
      if (!HasPhase(job)) PatchJob(job, PrintJson(PolicyPatch(job, Object{{"suspend", false}})));
    }
    for (int round = 0; round < kQuietRounds && Kept(); ++round) {
      RunKubelets(100);
      const Objects pods = cluster_.ListPods();
      for (const Document& pod : pods) {
        if (StringAt(pod, {"status", "phase"}) == "Running" && !IsLeaving(pod)) cluster_.EndPod(pod, 0, {});
      }
      RunProcesses(100);
      promises_.Check();
      if (promises_.AllSettled()) break;
      cluster_.clock().Advance(absl::Seconds(20));
    }
    if (Kept()) result_.finished = promises_.CheckEnds();
    for (const auto& process : processes_) result_.writes += process->transport->writes;
  }

  IdSource random_;
  const job::Policies policies_{
      .node_grace = absl::Seconds(30), .creation_patience = absl::Minutes(2), .creation_fails = Chance(50)};
  Cluster cluster_;
  Promises promises_{cluster_};
  ScheduleResult result_;
  FaultRates rates_;
  bool calm_ = false;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace

ScheduleResult RunSchedule(std::uint64_t seed, bool trace) { return Schedule(seed, trace).Run(); }

}  // namespace trainyard::sim
