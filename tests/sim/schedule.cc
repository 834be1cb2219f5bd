#include "tests/sim/schedule.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/document.h"
#include "base/ids.h"
#include "base/text.h"
#include "client/elastic_manifests.h"
#include "kube/event_recorder.h"
#include "operator/autoscaler.h"
#include "operator/gatekeeper.h"
#include "operator/kinds.h"
#include "operator/metrics.h"
#include "reconcile/controller.h"
#include "tests/sim/cluster.h"
#include "tests/sim/documents.h"
#include "tests/sim/elastic.h"
#include "tests/sim/faulty_transport.h"
#include "tests/sim/jobs.h"
#include "tests/sim/launched.h"
#include "tests/sim/promises.h"

namespace trainyard::sim {
namespace {

using kube::ObjectKey;
using kube::Resource;

constexpr int kNodes = 3;
constexpr int kSteps = 60;                                  // of what may happen
constexpr int kQuietRounds = 200;                           // afterwards, for all to come to an end
constexpr absl::Duration kMasterBound = absl::Seconds(30);  // beyond the grace of its node
constexpr absl::Duration kGangBound = absl::Seconds(90);    // a minute, and what it takes to notice

std::string NodeName(std::uint64_t number) { return StrCat("node-", number); }

// An operator process: it may crash, and another then takes its place.
struct Process {
  std::unique_ptr<FaultyTransport> transport;
  std::unique_ptr<kube::Api> api;
  std::unique_ptr<ops::Metrics> metrics;
  std::unique_ptr<kube::EventRecorder> events;
  std::unique_ptr<reconcile::Surroundings> surroundings;
  std::unique_ptr<ops::Autoscaler> autoscaler;
  std::unique_ptr<ops::Gatekeeper> gatekeeper;                      // null: nobody starts gangs
  std::vector<std::unique_ptr<reconcile::Controller>> controllers;  // by kind

  ~Process() {
    controllers.clear();
    events.reset();
  }
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, bool trace)
      : random_(seed),
        cluster_(random_.Next(), trace),
        elastic_(cluster_, promises_, random_.Next()),
        launcher_(cluster_, promises_, random_.Next()) {}

  ScheduleResult Run() {
    Prepare();
    for (int step = 0; step < kSteps && Kept(); ++step) {
      ++result_.steps;
      if (step >= lose_master_at_) LoseMaster();
      Happen();
      RunProcesses(Below(6));
      promises_.Check();
    }
    if (gangs_ && Kept()) RunShort();
    if (Kept()) Calm();
    result_.writes += elastic_.writes() + launcher_.writes();
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
    for (int i = 0; i < jobs; ++i) MakeAnyJob(StrCat("job-", i), /*elastic=*/i == 0 ? 35 : 10);
    rates_ = {.refused = static_cast<int>(Below(4)) * 20,
              .lost = static_cast<int>(Below(4)) * 20,
              .stale = static_cast<int>(Below(4)) * 20,
              .broken_watch = static_cast<int>(Below(3)) * 10};
    const std::size_t count = Chance(20) ? 2 : 1;
    processes_.resize(count);
    SetWeather(/*fair=*/false);
    for (auto& process : processes_) StartProcess(process);
  }

  // Whether anything may go wrong between processes and the server.
  void SetWeather(bool fair) {
    fair_ = fair;
    const FaultRates rates = fair ? FaultRates() : rates_;
    for (auto& process : processes_) {
      if (process == nullptr) continue;
      process->transport->rates = rates;
      if (fair) process->transport->writes_until_crash.reset();
    }
    elastic_.SetRates(rates, !fair);
    launcher_.SetRates(rates, !fair);
  }

  void MakeAnyJob(const std::string& name, int elastic) {
    if (Chance(elastic)) return Submit(elastic_.MakeJob(name));
    if (Chance(20)) {
      const auto task = launcher_.Create(name);
      if (!task.ok()) return promises_.Break(StrCat("a task is not taken: ", task.status().ToString()));
      return Submit(*task);
    }
    MakeJob(name, *cluster_.kinds()[Below(cluster_.kinds().size())]);
  }

  void MakeJob(const std::string& name, const reconcile::Kind& kind) {
    kube::Resource resource = kind.resource();
    Object spec;
    if (kind.telling() == job::Telling::kByPhase) {
      spec = maker_.MakeAiSpec(gangs_);
    } else if (resource.kind == "PyTorchJob") {
      spec = maker_.MakePyTorchSpec(gangs_);
    } else {
      if (Chance(50)) resource.version = "v1alpha2";
      spec = maker_.MakeTfSpec(resource.version == "v1");
    }
    Submit(Object{{"apiVersion", resource.ApiVersion()},
                  {"kind", resource.kind},
                  {"metadata", Object{{"name", name}}},
                  {"spec", std::move(spec)}});
  }

  void Submit(const Document& job) {
    const reconcile::Kind& kind = cluster_.KindOf(job);
    kube::Resource resource = kind.resource();
    const std::string_view version = StringAt(job, {"apiVersion"});
    resource.version = version.substr(version.find('/') + 1);
    const auto made = cluster_.user().Create(resource, kNamespace, PrintJson(job));
    if (!made.ok()) return promises_.Break(StrCat("a job is not taken: ", made.status().ToString()));
    Tell(StrCat("a job is made: ", PrintJson(job)));
    if (kind.is_elastic()) promises_.WasScaled(KeyOf(job).name);  // the autoscaler may do so at any time
  }

  // One whose pods end when its master or its launcher lets them.
  static bool IsActors(const Document& object) {
    return Launcher::IsTask(object) || !LabelOf(object, client::kElasticJobLabel).empty();
  }

  // ---- what happens

  void Happen() {
    static const std::vector<int> exits = {0, 1, 130, 137, 143};
    switch (Below(19)) {
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
      case 15:
        return elastic_.KillOne();
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
    auto rooms = cluster_.FindRoom();
    for (const Document& pod : pods) {
      if (!Chance(percent)) continue;
      if (IsLeaving(pod)) {
        if (!cluster_.IsOnLostNode(pod)) cluster_.RemovePod(pod);
      } else if (StringAt(pod, {"spec", "nodeName"}).empty()) {
        const std::string node = NodeName(1 + Below(kNodes));
        const auto room = rooms.find(node);
        const std::int64_t millis = Cluster::MillisOf(pod);
        if (room == rooms.end() || room->second.pods < 1 || room->second.millis < millis || IsGated(pod))
          continue;
        --room->second.pods;
        room->second.millis -= millis;
        cluster_.Bind(pod, node);
      } else if (StringAt(pod, {"status", "phase"}) == "Pending" && !cluster_.IsOnLostNode(pod)) {
        cluster_.StartPod(pod);
      } else if (StringAt(pod, {"status", "phase"}) == "Running" && IsStopped(pod) &&
                 !cluster_.IsOnLostNode(pod)) {
        cluster_.StopPod(pod);
      }
    }
  }
  static bool IsGated(const Document& pod) {
    const Array* const gates = ArrayAt(pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
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
    if (!pod || (IsActors(*pod) && exit_code == 0)) return;
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
    LoseNode(name);
  }
  void LoseNode(const std::string& name) {
    for (const Document& pod : elastic_.WorkingPods()) {
      if (StringAt(pod, {"spec", "nodeName"}) == name) result_.lost_masters = 1;
    }
    const bool power = Chance(50);
    cluster_.LoseNode(name, Chance(30));
    Tell(StrCat(name, " is lost, ", power ? "and its processes go on" : "and its processes have ended"));
    elastic_.NodeIsLost(name, power);
  }
  void LoseMaster() {
    const std::vector<Document> working = elastic_.WorkingPods();
    if (working.empty()) return;
    lose_master_at_ = kSteps;  // once
    const Document& pod = OneOf(working);
    LoseNode(std::string(StringAt(pod, {"spec", "nodeName"})));
    if (Chance(50)) AwaitNewMaster(pod);
  }

  // When nothing else goes wrong, another master has the job soon.
  void AwaitNewMaster(const Document& lost) {
    const std::string uid = LabelOf(lost, "trainyard.dev/job-uid");
    const int claims = elastic_.ClaimsOf(uid);
    const absl::Time due = cluster_.clock().Now() + policies_.node_grace + kMasterBound;
    for (int i = 1; i <= kNodes; ++i) {
      const std::string node = NodeName(static_cast<std::uint64_t>(i));
      if (node != StringAt(lost, {"spec", "nodeName"})) cluster_.MakeNode(node);
    }
    SetWeather(/*fair=*/true);
    while (Kept() && elastic_.ClaimsOf(uid) == claims && MayStartMaster(uid, lost)) {
      if (cluster_.clock().Now() > due)
        promises_.Break(StrCat(KeyOf(lost).name, " was lost with its node, and has not begun elsewhere"));
      PassQuietly(absl::Seconds(5));
    }
    if (elastic_.ClaimsOf(uid) > claims) ++result_.recreated_masters;
    SetWeather(/*fair=*/false);
  }
  // The job goes on, and there is room for its master.
  bool MayStartMaster(const std::string& uid, const Document& lost) {
    const auto job = cluster_.Get(client::AITrainingJobs(), LabelOf(lost, "TrainingJobName"));
    if (!job || UidOf(*job) != uid || IsFinished(*job) || Find(*job, {"status", "ending"}) != nullptr)
      return false;
    const std::int64_t millis = Cluster::MillisOf(lost);
    const auto rooms = cluster_.FindRoom();
    const bool room = std::ranges::any_of(
        rooms, [&](const auto& one) { return one.second.pods > 0 && one.second.millis >= millis; });
    const auto pod = cluster_.Get(Resource::Pods(), KeyOf(lost).name);
    const bool waits = pod && StringAt(*pod, {"spec", "nodeName"}).empty();
    return room || !waits;
  }
  // Everybody does all that there is to do, and then time passes.
  void PassQuietly(absl::Duration time) {
    RunKubelets(100);
    RunProcesses(100);
    promises_.Check();
    Pass(time);
  }

  // A gang that needs more room than there is: it holds no part of it for long, and says so.
  void RunShort() {
    Tell("room is short");
    SetWeather(/*fair=*/true);
    for (int i = 1; i < kNodes; ++i) cluster_.MakeNode(NodeName(static_cast<std::uint64_t>(i)));
    if (cluster_.HasNode(NodeName(kNodes))) LoseNode(NodeName(kNodes));
    const std::string name = "gang";
    const int pods = 1 + static_cast<int>((kNodes - 1) * Cluster::kNodeMillis / 1000);
    Submit(Object{{"apiVersion", client::AITrainingJobs().ApiVersion()},
                  {"kind", client::AITrainingJobs().kind},
                  {"metadata", Object{{"name", name}}},
                  {"spec", maker_.MakeGangSpec(pods)}});
    int held = 0;
    bool holds = false;
    bool told = false;
    absl::Time since;
    for (int round = 0; round < 60 && Kept(); ++round) {
      PassQuietly(absl::Seconds(5));
      int bound = 0;
      for (const Document& pod : cluster_.ListPods()) {
        const bool has =
            LabelOf(pod, "TrainingJobName") == name && !StringAt(pod, {"spec", "nodeName"}).empty();
        bound += has && !IsLeaving(pod) ? 1 : 0;
      }
      const absl::Time now = cluster_.clock().Now();
      if (bound != held) since = now;
      held = bound;
      holds |= held > 0;
      if (held > 0 && now - since > kGangBound)
        promises_.Break(StrCat("a gang holds ", held, " of ", pods, " nodes and does not give them back"));
      const auto job = cluster_.Get(client::AITrainingJobs(), name);
      told |= PrintJson(*Find(*job, {"status"})).find("gave them back") != std::string::npos;
    }
    if (holds && knows_gates_) promises_.Break("a gang holds a part of its nodes though there are gates");
    if (holds != told)
      promises_.Break(StrCat("a gang held a part of its nodes: ", holds, "; it said so: ", told));
    if (told) ++result_.gangs_gave_back;
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
    if (IsActors(*job)) return;
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
    if (!job || Launcher::IsTask(*job)) return;
    const std::string name = KeyOf(*job).name;
    Tell(StrCat("a user deletes ", name, " and makes it again"));
    (void)cluster_.user().Delete(cluster_.KindOf(*job).resource(), KeyOf(*job));
    cluster_.ExpectGarbage();
    if (ElasticMasters::IsElastic(*job)) return Submit(elastic_.MakeJob(name));
    MakeJob(name, cluster_.KindOf(*job));
  }
  void AskForEnd() {
    const auto job = OneJob();
    if (!job || cluster_.KindOf(*job).telling() != job::Telling::kByPhase) return;
    if (Launcher::IsTask(*job)) return;  // its launcher asks too
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
            .disturb = [this](const kube::Request& request) { Disturb(request); },
            .after_write = [this](const kube::Request& request) { promises_.JudgeWritten(request); }});
    process->transport->knows_gates = knows_gates_;
    process->transport->rates = fair_ ? FaultRates() : rates_;
    if (!fair_ && Chance(50)) process->transport->writes_until_crash = static_cast<int>(Below(40));
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
    if (policies_.gang == job::GangScheduler::kGates)
      process->gatekeeper = std::make_unique<ops::Gatekeeper>(*process->api, clock, IdSource(random_.Next()),
                                                              *process->surroundings);
    for (const auto& kind : cluster_.kinds()) {
      process->controllers.push_back(std::make_unique<reconcile::Controller>(
          *process->api, clock, *kind, *process->surroundings, *process->events, *process->metrics,
          reconcile::ControllerOptions{
              .policies = policies_,
              .find_targets = [autoscaler = process->autoscaler.get()](
                                  const std::string& uid) { return autoscaler->FindTargets(uid); },
              .find_gang = process->gatekeeper == nullptr
                               ? std::function<job::GangView(const std::string&)>()
                               : [gatekeeper = process->gatekeeper.get()](
                                     const std::string& uid) { return gatekeeper->FindGang(uid); },
              .seed = random_.Next()}));
      if (kind->is_elastic()) process->autoscaler->Watch(*kind, *process->controllers.back());
      if (process->gatekeeper != nullptr) process->gatekeeper->Watch(*process->controllers.back());
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
        if (process->gatekeeper != nullptr && Chance(fair_ && i == 0 ? 100 : 10)) process->gatekeeper->Pass();
        for (const auto& controller : process->controllers) busy |= controller->Step();
      }
    }
    elastic_.Step();
    launcher_.Step(calm_);
    cluster_.CollectGarbage();
  }

  // ---- the end: nothing goes wrong any more, and every job must come to its own

  void Calm() {
    Tell("calm");
    calm_ = true;
    SetWeather(/*fair=*/true);
    for (int i = 1; i <= kNodes; ++i) cluster_.MakeNode(NodeName(static_cast<std::uint64_t>(i)));
    for (const Document& job : cluster_.ListJobs()) {
      if (!HasPhase(job)) PatchJob(job, PrintJson(PolicyPatch(job, Object{{"suspend", false}})));
    }
    for (int round = 0; round < kQuietRounds && Kept(); ++round) {
      RunKubelets(100);
      const Objects pods = cluster_.ListPods();
      for (const Document& pod : pods) {
        const bool runs = StringAt(pod, {"status", "phase"}) == "Running" && !IsLeaving(pod);
        if (runs && !IsActors(pod)) cluster_.EndPod(pod, 0, {});
      }
      RunProcesses(100);
      promises_.Check();
      if (promises_.AllSettled()) break;
      cluster_.clock().Advance(absl::Seconds(20));
    }
    if (Kept()) result_.finished = promises_.CheckEnds();
    for (const Document& job : cluster_.ListJobs()) {
      if (ElasticMasters::IsElastic(job) && StateOf(job) == "Succeed") elastic_.CheckEnd(job);
    }
    for (const auto& process : processes_) result_.writes += process->transport->writes;
  }

  IdSource random_;
  const bool gangs_ = Chance(12);        // some jobs are gangs, and somebody starts them
  const bool knows_gates_ = Chance(50);  // the server
  int lose_master_at_ =
      Chance(70) ? static_cast<int>(Below(40)) : kSteps;  // the first step at which its node may go
  const job::Policies policies_{.node_grace = absl::Seconds(30),
                                .creation_patience = absl::Minutes(2),
                                .gang = gangs_ ? job::GangScheduler::kGates : job::GangScheduler::kNone,
                                .creation_fails = Chance(50)};
  JobMaker maker_{random_};
  Cluster cluster_;
  Promises promises_{cluster_};
  ElasticMasters elastic_;
  Launcher launcher_;
  ScheduleResult result_;
  FaultRates rates_;
  bool fair_ = false;
  bool calm_ = false;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace

ScheduleResult RunSchedule(std::uint64_t seed, bool trace) { return Schedule(seed, trace).Run(); }

}  // namespace trainyard::sim
