#include "tests/sim/schedule.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/document.h"
#include "base/text.h"
#include "job/index_set.h"
#include "kube/api.h"
#include "kube/event_recorder.h"
#include "kube/rfc3339.h"
#include "kv/memory_store.h"
#include "local/api/direct_transport.h"
#include "local/api/server.h"
#include "operator/controller.h"
#include "operator/definitions.h"
#include "operator/metrics.h"
#include "operator/tfjob.h"
#include "tests/sim/faulty_transport.h"

namespace trainyard::sim {
namespace {

using kube::ObjectKey;
using kube::Resource;

constexpr int kNodes = 3;
constexpr int kSteps = 60;         // of what may happen
constexpr int kQuietRounds = 200;  // afterwards, for all to come to an end
const std::string kNamespace = "default";

// An operator process: it may crash, and another then takes its place.
struct Process {
  std::unique_ptr<FaultyTransport> transport;
  std::unique_ptr<kube::Api> api;
  std::unique_ptr<ops::Metrics> metrics;
  std::unique_ptr<kube::EventRecorder> events;
  std::unique_ptr<ops::Controller> controller;

  ~Process() {
    controller.reset();
    events.reset();
  }
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, bool trace) : random_(seed), trace_(trace) {}

  ScheduleResult Run() {
    Prepare();
    for (int step = 0; step < kSteps && result_.broken.empty(); ++step) {
      ++result_.steps;
      Happen();
      RunProcesses(Below(6));
      Check();
    }
    Calm();
    return std::move(result_);
  }

 private:
  // ---- chance

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }
  bool Chance(int percent) { return Below(100) < static_cast<std::uint64_t>(percent); }
  template <typename T>
  const T& OneOf(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  void Trace(std::string_view what) {
    if (trace_) std::cerr << absl::FormatDuration(clock_.Now() - kBegin) << " " << what << "\n";
  }
  void Break(std::string what) {
    Trace(StrCat("BROKEN: ", what));
    result_.broken.push_back(StrCat("step ", result_.steps, ": ", what));
  }

  // ---- the beginning

  void Prepare() {
    if (!ops::InstallDefinitions(user_).ok()) return Break("the definitions are not taken");
    for (int i = 1; i <= kNodes; ++i) MakeNode(i);
    const int jobs = 1 + static_cast<int>(Below(3));
    for (int i = 0; i < jobs; ++i) MakeJob(StrCat("job-", i));
    rates_ = {.refused = static_cast<int>(Below(4)) * 20,
              .lost = static_cast<int>(Below(4)) * 20,
              .stale = static_cast<int>(Below(4)) * 20,
              .broken_watch = static_cast<int>(Below(3)) * 10};
    const std::size_t count = Chance(20) ? 2 : 1;
    processes_.resize(count);
    for (auto& process : processes_) StartProcess(process);
  }

  void StartProcess(std::unique_ptr<Process>& process) {
    process = std::make_unique<Process>();
    process->transport = std::make_unique<FaultyTransport>(
        direct_, random_.Next(),
        FaultyTransport::Hooks{.before_write = [this](const kube::Request& request) { JudgeWrite(request); },
                               .disturb = [this](const kube::Request& request) { Disturb(request); }});
    process->transport->rates = rates_;
    if (!calm_ && Chance(50)) process->transport->writes_until_crash = static_cast<int>(Below(40));
    process->api = std::make_unique<kube::Api>(*process->transport, clock_, IdSource(random_.Next()),
                                               kube::RetryPolicy{.attempts = 1});
    process->metrics = std::make_unique<ops::Metrics>();
    process->events = std::make_unique<kube::EventRecorder>(
        *process->api, clock_, IdSource(random_.Next()),
        kube::EventRecorder::Options{.component = "sim", .instance = "sim"});
    process->controller = std::make_unique<ops::Controller>(
        *process->api, clock_, kind_, *process->events, *process->metrics,
        ops::ControllerOptions{.node_grace = absl::Seconds(30), .seed = random_.Next()});
    Trace("an operator starts");
  }

  Object MakeRole(int replicas) {
    static const std::vector<std::string> policies = {"Always", "OnFailure", "Never", "ExitCode"};
    return {
        {"replicas", replicas},
        {"restartPolicy", OneOf(policies)},
        {"template",
         Object{{"spec", Object{{"terminationGracePeriodSeconds", 5},
                                {"containers", Array{Object{{"name", "tensorflow"}, {"image", "x"}}}}}}}}};
  }

  void MakeJob(const std::string& name) {
    Object roles{{"Worker", MakeRole(1 + static_cast<int>(Below(3)))}};
    if (Chance(30)) roles["Chief"] = MakeRole(1);
    if (Chance(30)) roles["PS"] = MakeRole(1 + static_cast<int>(Below(2)));
    static const std::vector<std::string> cleans = {"All", "Running", "None"};
    Object spec{{"tfReplicaSpecs", std::move(roles)}, {"cleanPodPolicy", OneOf(cleans)}};
    if (Chance(40)) spec["backoffLimit"] = static_cast<int>(Below(5));
    if (Chance(15)) spec["activeDeadlineSeconds"] = static_cast<int>(30 + Below(600));
    if (Chance(15)) spec["successPolicy"] = "AllWorkers";
    const Object job{{"apiVersion", "kubeflow.org/v1alpha2"},
                     {"kind", "TFJob"},
                     {"metadata", Object{{"name", name}}},
                     {"spec", std::move(spec)}};
    const auto made = user_.Create(kind_.resource(), kNamespace, PrintJson(job));
    if (!made.ok()) return Break(StrCat("a job is not taken: ", made.status().ToString()));
    Trace(StrCat("a job is made: ", PrintJson(job)));
  }

  void MakeNode(int number) {
    const std::string name = StrCat("node-", number);
    (void)user_.Create(
        Resource::Nodes(), "",
        PrintJson(Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", Object{{"name", name}}}}));
    SetNodeReady(name, true);
  }
  void SetNodeReady(const std::string& name, bool ready) {
    const Object patch{
        {"status",
         Object{{"conditions", Array{Object{{"type", "Ready"},
                                            {"status", ready ? "True" : "Unknown"},
                                            {"lastTransitionTime", kube::PrintTime(clock_.Now())}}}}}}};
    (void)user_.Patch(Resource::Nodes(), {"", name}, PrintJson(patch), {.type = kube::PatchType::kMerge},
                      "status");
    if (ready) lost_nodes_.erase(name);
    if (!ready) lost_nodes_.insert(name);
  }

  // ---- what happens

  void Happen() {
    static const std::vector<std::string> exits = {"0", "1", "130", "137", "143"};
    switch (Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return RunKubelets(70);
      case 6:
        return EndOne(std::stoi(OneOf(exits)), Chance(50));
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
      default:
        return Pass(absl::Seconds(static_cast<int>(Below(Chance(10) ? 400 : 20))));
    }
  }

  void Pass(absl::Duration time) {
    clock_.Advance(time);
    Trace(StrCat("time passes: ", absl::FormatDuration(time)));
  }

  std::vector<Document> List(const Resource& resource) {
    std::vector<Document> objects;
    const auto page = user_.ListAll(resource, resource.namespaced ? kNamespace : "", {});
    if (!page.ok()) {
      Break(StrCat("cannot list ", resource.plural, ": ", page.status().ToString()));
      return objects;
    }
    for (const std::string& item : page->items) objects.push_back(ParseJson(item).value());
    return objects;
  }
  static ObjectKey KeyOf(const Document& object) {
    return {kNamespace, std::string(StringAt(object, {"metadata", "name"}))};
  }
  static bool IsLeaving(const Document& object) {
    return Find(object, {"metadata", "deletionTimestamp"}) != nullptr;
  }
  bool IsOnLostNode(const Document& pod) const {
    return lost_nodes_.contains(std::string(StringAt(pod, {"spec", "nodeName"})));
  }

  void PatchPodStatus(const Document& pod, Object status, std::string_view what) {
    const auto patched =
        user_.Patch(Resource::Pods(), KeyOf(pod), PrintJson(Object{{"status", std::move(status)}}),
                    {.type = kube::PatchType::kMerge}, "status");
    if (!patched.ok()) return Break(StrCat("a kubelet cannot write: ", patched.status().ToString()));
    Trace(StrCat(what, " ", KeyOf(pod).name));
  }
  Object Terminated(int exit_code) const {
    return {{"terminated", Object{{"exitCode", exit_code},
                                  {"reason", exit_code == 0 ? "Completed" : "Error"},
                                  {"startedAt", kube::PrintTime(clock_.Now())},
                                  {"finishedAt", kube::PrintTime(clock_.Now())}}}};
  }
  static std::int64_t RestartsOf(const Document& pod) {
    const Array* containers = ArrayAt(pod, {"status", "containerStatuses"});
    return containers == nullptr || containers->empty()
               ? 0
               : IntAt((*containers)[0], {"restartCount"}).value_or(0);
  }
  static Array Container(Object state, std::int64_t restarts, std::optional<Object> last = {}) {
    Object container{{"name", "tensorflow"},
                     {"image", "x"},
                     {"imageID", ""},
                     {"ready", true},
                     {"restartCount", restarts},
                     {"state", std::move(state)}};
    if (last) container["lastState"] = *std::move(last);
    return {std::move(container)};
  }
  Object Running() const { return {{"running", Object{{"startedAt", kube::PrintTime(clock_.Now())}}}}; }

  // Each pod may move on by one: bound, started, or gone when it was told to go.
  void RunKubelets(int percent) {
    for (const Document& pod : List(Resource::Pods())) {
      if (!Chance(percent)) continue;
      const std::string node(StringAt(pod, {"spec", "nodeName"}));
      const std::string_view phase = StringAt(pod, {"status", "phase"});
      if (IsLeaving(pod)) {
        if (IsOnLostNode(pod)) continue;
        (void)user_.Delete(Resource::Pods(), KeyOf(pod), {.grace_seconds = 0});
        Trace(StrCat("a kubelet ends ", KeyOf(pod).name));
      } else if (node.empty()) {
        Bind(pod);
      } else if (phase == "Pending" && !IsOnLostNode(pod)) {
        PatchPodStatus(pod, {{"phase", "Running"}, {"containerStatuses", Container(Running(), 0)}},
                       "a kubelet starts");
      }
    }
  }
  void Bind(const Document& pod) {
    const std::string node = StrCat("node-", 1 + Below(kNodes));
    if (lost_nodes_.contains(node) || !user_.Get(Resource::Nodes(), {"", node}).ok()) return;
    const Object binding{{"apiVersion", "v1"},
                         {"kind", "Binding"},
                         {"metadata", Object{{"name", KeyOf(pod).name}}},
                         {"target", Object{{"kind", "Node"}, {"name", node}}}};
    kube::Request request{
        .method = "POST",
        .target = kube::ResourcePath(Resource::Pods(), kNamespace, KeyOf(pod).name, "binding"),
        .body = PrintJson(binding)};
    (void)direct_.DoAll({request});
  }

  std::optional<Document> OnePod(std::string_view phase) {
    std::vector<Document> found;
    for (Document& pod : List(Resource::Pods())) {
      if (StringAt(pod, {"status", "phase"}) == phase && !IsOnLostNode(pod)) found.push_back(std::move(pod));
    }
    if (found.empty()) return std::nullopt;
    return found[Below(found.size())];
  }

  // A process ends; what follows is the pod's restart policy.
  void EndOne(int exit_code, bool seen_before_restart) {
    const auto pod = OnePod("Running");
    if (pod) End(*pod, exit_code, seen_before_restart);
  }
  void End(const Document& pod, int exit_code, bool seen_before_restart) {
    const std::string_view policy = StringAt(pod, {"spec", "restartPolicy"});
    const std::int64_t restarts = RestartsOf(pod);
    const bool again = !IsLeaving(pod) && (policy == "Always" || (policy == "OnFailure" && exit_code != 0));
    if (!again) {
      return PatchPodStatus(pod,
                            {{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
                             {"containerStatuses", Container(Terminated(exit_code), restarts)}},
                            StrCat("exit ", exit_code, " of"));
    }
    if (seen_before_restart) {
      PatchPodStatus(pod, {{"containerStatuses", Container(Terminated(exit_code), restarts)}},
                     StrCat("exit ", exit_code, ", to be restarted, of"));
      RunProcesses(Below(4));
    }
    PatchPodStatus(pod, {{"containerStatuses", Container(Running(), restarts + 1, Terminated(exit_code))}},
                   StrCat("restart after exit ", exit_code, " of"));
  }
  void EvictOne() {
    const auto pod = OnePod("Running");
    if (pod) PatchPodStatus(*pod, {{"phase", "Failed"}, {"reason", "Evicted"}}, "eviction of");
  }
  void LoseOrMendNode() {
    const std::string name = StrCat("node-", 1 + Below(kNodes));
    if (!user_.Get(Resource::Nodes(), {"", name}).ok()) {
      MakeNode(name.back() - '0');
      return Trace(StrCat(name, " is new"));
    }
    if (lost_nodes_.contains(name)) {
      SetNodeReady(name, true);
      return Trace(StrCat(name, " is back"));
    }
    SetNodeReady(name, false);
    if (Chance(30)) (void)user_.Delete(Resource::Nodes(), {"", name});
    Trace(StrCat(name, " is lost"));
  }
  void DeleteOnePod() {
    const auto pods = List(Resource::Pods());
    if (pods.empty()) return;
    const Document& pod = OneOf(pods);
    (void)user_.Delete(Resource::Pods(), KeyOf(pod));
    Trace(StrCat("a user deletes ", KeyOf(pod).name));
  }
  void DeleteOneService() {
    std::vector<Document> services;
    for (Document& service : List(Resource::Services())) {
      if (KeyOf(service).name != "kubernetes") services.push_back(std::move(service));
    }
    if (services.empty()) return;
    (void)user_.Delete(Resource::Services(), KeyOf(OneOf(services)));
    Trace("a user deletes a service");
  }
  void ChangeOneJob() {
    const auto jobs = List(kind_.resource());
    if (jobs.empty()) return;
    const ObjectKey key = KeyOf(OneOf(jobs));
    Object spec;
    if (Chance(50)) {
      spec["suspend"] = Chance(50);
      suspended_.insert(key.name);
    } else {
      spec["tfReplicaSpecs"] = Object{{"Worker", Object{{"replicas", 1 + Below(4)}}}};
      scaled_.insert(key.name);
    }
    (void)user_.Patch(kind_.resource(), key, PrintJson(Object{{"spec", spec}}),
                      {.type = kube::PatchType::kMerge});
    Trace(StrCat("a user changes ", key.name, ": ", PrintJson(spec)));
  }
  void DeleteAndRemakeJob() {
    const auto jobs = List(kind_.resource());
    if (jobs.empty()) return;
    const std::string name = KeyOf(OneOf(jobs)).name;
    Trace(StrCat("a user deletes ", name, " and makes it again"));
    (void)user_.Delete(kind_.resource(), {kNamespace, name});
    garbage_ = true;
    MakeJob(name);
  }

  // Somebody else writes to the object that a request is about to write to.
  void Disturb(const kube::Request& request) {
    const std::size_t at = request.target.find("/tfjobs/");
    if (at == std::string::npos) return;
    std::string name = request.target.substr(at + 8);
    name = name.substr(0, name.find_first_of("/?"));
    (void)user_.Patch(kind_.resource(), {kNamespace, name},
                      StrCat(R"({"metadata":{"annotations":{"disturbed":")", random_.Next(), R"("}}})"),
                      {.type = kube::PatchType::kMerge});
  }

  // What belongs to a job that is no more is nobody's.
  void CollectGarbage() {
    if (!std::exchange(garbage_, false)) return;
    std::set<std::string> uids;
    for (const Document& job : List(kind_.resource())) uids.emplace(StringAt(job, {"metadata", "uid"}));
    for (const Resource* resource : {&Resource::Pods(), &Resource::Services()}) {
      for (const Document& object : List(*resource)) {
        const Array* owners = ArrayAt(object, {"metadata", "ownerReferences"});
        if (owners == nullptr || owners->empty() || IsLeaving(object)) continue;
        if (uids.contains(std::string(StringAt((*owners)[0], {"uid"})))) continue;
        garbage_ = true;  // until it is gone
        (void)user_.Delete(*resource, KeyOf(object));
      }
    }
  }

  // ---- the operators

  void RunProcesses(std::uint64_t most) {
    bool busy = true;
    for (std::uint64_t i = 0; i < most && busy; ++i) {
      busy = false;
      for (auto& process : processes_) {
        if (process->transport->crashed) {
          Trace("an operator has crashed");
          ++result_.crashes;
          result_.writes += process->transport->writes;
          StartProcess(process);
        }
        busy |= process->controller->Step();
      }
    }
    CollectGarbage();
  }

  // ---- promises

  static std::map<std::string, std::int64_t> CountersOf(const Document& job) {
    std::map<std::string, std::int64_t> counters;
    if (const Object* roles = ObjectAt(job, {"status", "tfReplicaStatuses"})) {
      for (const auto& role : *roles) {
        for (const std::string_view what : {"succeeded", "failed"}) {
          counters[StrCat(Key(role), " ", what)] = IntAt(role.value(), {what}).value_or(0);
        }
      }
    }
    if (const Object* restarts = ObjectAt(job, {"status", "restarts"})) {
      for (const auto& role : *restarts) {
        for (const std::string_view what : {"count", "disruptions"}) {
          counters[StrCat(Key(role), " ", what)] = IntAt(role.value(), {what}).value_or(0);
        }
      }
    }
    return counters;
  }
  static std::string StateOf(const Document& job) {
    std::string state;
    if (const Array* conditions = ArrayAt(job, {"status", "conditions"})) {
      for (const Document& condition : *conditions) {
        if (StringAt(condition, {"status"}) == "True") StrAppend(state, StringAt(condition, {"type"}));
      }
    }
    return state;
  }
  static bool IsFinished(const Document& job) {
    const std::string state = StateOf(job);
    return state == "Succeeded" || state == "Failed";
  }
  static std::string LabelOf(const Document& object, std::string_view label) {
    return std::string(StringAt(object, {"metadata", "labels", label}));
  }

  void Check() {
    for (const Document& job : List(kind_.resource())) CheckJob(job);
    std::set<std::string> seats;
    for (const Document& pod : List(Resource::Pods())) {
      const std::string seat = StrCat(LabelOf(pod, "trainyard.dev/job-uid"), " ",
                                      LabelOf(pod, "tf-replica-type"), "-", LabelOf(pod, "tf-replica-index"));
      if (!seats.insert(seat).second) Break(StrCat("two pods of one index: ", seat));
    }
  }

  void CheckJob(const Document& job) {
    const std::string uid(StringAt(job, {"metadata", "uid"}));
    const std::string name = KeyOf(job).name;
    static const std::set<std::string> states = {"",          "Created",   "Running", "Restarting",
                                                 "Suspended", "Succeeded", "Failed"};
    const std::string state = StateOf(job);
    if (!states.contains(state)) Break(StrCat(name, " is in two states at once: ", state));
    Known& known = known_[uid];
    if ((known.state == "Succeeded" || known.state == "Failed") && state != known.state) {
      Break(StrCat(name, " went from ", known.state, " to ", state));
    }
    const bool ended = Find(job, {"status", "completionTime"}) != nullptr;
    if (ended != IsFinished(job)) Break(StrCat(name, " has a completion time and is ", state));
    for (const auto& [what, before] : known.counters) {
      const auto counters = CountersOf(job);
      const auto now = counters.find(what);
      const bool may_fall = scaled_.contains(name) && what.ends_with("succeeded");
      if ((now == counters.end() ? 0 : now->second) < before && !may_fall) {
        Break(StrCat(name, ": ", what, " fell from ", before));
      }
    }
    if (state != known.state) Trace(StrCat(name, " is ", state));
    known.state = state;
    known.counters = CountersOf(job);
    const auto limit = IntAt(job, {"spec", "backoffLimit"});
    if (!limit || IsFinished(job)) return;
    if (IntAt(job, {"status", "restartCount"}).value_or(0) > *limit)
      Break(StrCat(name, " has gone beyond its limit"));
  }

  // What an operator writes must be right by what is stored at that moment.
  void JudgeWrite(const kube::Request& request) {
    const std::string_view target(request.target);
    Trace(StrCat("  ", request.method, " ", target));
    const std::size_t at = target.find("/pods");
    if (at == std::string_view::npos) return;
    if (request.method == "POST") return JudgeCreate(ParseJson(request.body).value());
    if (request.method != "DELETE") return;
    std::string name(target.substr(at + 6));
    name = name.substr(0, name.find('?'));
    const auto text = user_.Get(Resource::Pods(), {kNamespace, name});
    if (!text.ok()) return;
    const Document pod = ParseJson(*text).value();
    const auto options = ParseJson(request.body);
    if (!options.ok() || StringAt(*options, {"preconditions", "uid"}).empty()) {
      return Break(StrCat(name, " is deleted whoever it is"));
    }
    // The server will refuse it: another has the name by now.
    if (StringAt(*options, {"preconditions", "uid"}) != StringAt(pod, {"metadata", "uid"})) return;
    JudgeDelete(pod);
  }
  std::optional<Document> OwnerOf(const Document& pod) {
    const Array* owners = ArrayAt(pod, {"metadata", "ownerReferences"});
    if (owners == nullptr || owners->empty()) return std::nullopt;
    const auto text =
        user_.Get(kind_.resource(), {kNamespace, std::string(StringAt((*owners)[0], {"name"}))});
    if (!text.ok()) return std::nullopt;
    Document job = ParseJson(*text).value();
    if (StringAt(job, {"metadata", "uid"}) != StringAt((*owners)[0], {"uid"})) return std::nullopt;
    return job;
  }
  static int AttemptOf(const Document& pod) {
    return ParseNumber<int>(StringAt(pod, {"metadata", "annotations", "trainyard.dev/attempt"})).value_or(0);
  }
  static int StoredAttempt(const job::JobStatus& status, const Document& pod) {
    for (const auto& [name, role] : status.roles) {
      std::string slug = name;
      std::ranges::transform(slug, slug.begin(), [](char c) { return static_cast<char>(c | 0x20); });
      if (slug != LabelOf(pod, "tf-replica-type")) continue;
      return role.AttemptOf(ParseNumber<int>(LabelOf(pod, "tf-replica-index")).value_or(0));
    }
    return 0;
  }
  job::JobStatus StatusOf(const Document& job) const { return kind_.Decode(PrintJson(job)).value().status; }

  void JudgeCreate(const Document& pod) {
    const auto job = OwnerOf(pod);
    if (!job) {  // it was deleted just now
      garbage_ = true;
      return;
    }
    if (IsFinished(*job)) Break(StrCat("a pod is made for ", KeyOf(*job).name, ", which has ended"));
    // A scale-down forgets indexes, and with them their numbers.
    const int stored = StoredAttempt(StatusOf(*job), pod);
    if (!scaled_.contains(KeyOf(*job).name) && AttemptOf(pod) > stored) {
      Break(
          StrCat(KeyOf(pod).name, " is made under number ", AttemptOf(pod), ", and ", stored, " is stored"));
    }
  }
  void JudgeDelete(const Document& pod) {
    const auto job = OwnerOf(pod);
    if (!job || IsFinished(*job) || scaled_.contains(KeyOf(*job).name) ||
        suspended_.contains(KeyOf(*job).name))
      return;
    if (IsLeaving(pod) || AttemptOf(pod) < StoredAttempt(StatusOf(*job), pod)) return;
    Break(StrCat(KeyOf(pod).name, " is deleted, and its failure is not stored"));
  }
  // ---- the end: nothing goes wrong any more, and every job must come to its own

  void Calm() {
    if (!result_.broken.empty()) return;
    Trace("calm");
    calm_ = true;
    rates_ = {};
    for (auto& process : processes_) {
      process->transport->rates = {};
      process->transport->writes_until_crash.reset();
    }
    for (int i = 1; i <= kNodes; ++i) MakeNode(i);
    for (const Document& job : List(kind_.resource())) {
      (void)user_.Patch(kind_.resource(), KeyOf(job), R"({"spec":{"suspend":false}})",
                        {.type = kube::PatchType::kMerge});
    }
    for (int round = 0; round < kQuietRounds && result_.broken.empty(); ++round) {
      RunKubelets(100);
      for (const Document& pod : List(Resource::Pods())) {
        if (StringAt(pod, {"status", "phase"}) == "Running" && !IsLeaving(pod)) End(pod, 0, false);
      }
      RunProcesses(100);
      Check();
      if (AllSettled()) break;
      clock_.Advance(absl::Seconds(20));
    }
    CheckEnds();
    for (const auto& process : processes_) result_.writes += process->transport->writes;
  }
  bool AllSettled() {
    const auto jobs = List(kind_.resource());
    if (!std::ranges::all_of(jobs, IsFinished)) return false;
    const auto pods = List(Resource::Pods());
    return std::ranges::all_of(jobs, [&](const Document& job) { return LeftOf(job, pods).empty(); });
  }
  // A pod that should have been cleaned up.
  static std::string LeftOf(const Document& job, const std::vector<Document>& pods) {
    const std::string_view clean = StringAt(job, {"spec", "cleanPodPolicy"});
    if (clean == "None") return "";
    for (const Document& pod : pods) {
      if (LabelOf(pod, "trainyard.dev/job-uid") != StringAt(job, {"metadata", "uid"})) continue;
      const std::string_view phase = StringAt(pod, {"status", "phase"});
      if (clean == "All" || (phase != "Succeeded" && phase != "Failed")) return KeyOf(pod).name;
    }
    return "";
  }
  void CheckEnds() {
    if (!result_.broken.empty()) return;
    const auto pods = List(Resource::Pods());
    for (const Document& job : List(kind_.resource())) {
      if (!IsFinished(job)) {
        Break(StrCat(KeyOf(job).name, " hangs in state '", StateOf(job),
                     "': ", PrintJson(*Find(job, {"status"}))));
        continue;
      }
      ++result_.finished;
      if (const std::string left = LeftOf(job, pods); !left.empty()) Break(StrCat(left, " is left behind"));
    }
  }

  struct Known {
    std::string state;
    std::map<std::string, std::int64_t> counters;
  };

  const absl::Time kBegin = absl::FromUnixSeconds(1'714'557'600);
  IdSource random_;
  const bool trace_;
  ScheduleResult result_;
  ManualClock clock_{kBegin};
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  const std::unique_ptr<local::ApiServer> server_ =
      local::ApiServer::Start(
          {.store = store_.get(), .clock = &clock_, .seed = random_.Next(), .threads = false})
          .value();
  local::DirectTransport direct_{*server_, "sim"};
  kube::Api user_{direct_, clock_, IdSource(random_.Next()), {.attempts = 1}};
  const ops::TfJobKind kind_;
  FaultRates rates_;
  bool calm_ = false;
  bool garbage_ = false;
  std::vector<std::unique_ptr<Process>> processes_;
  std::set<std::string> lost_nodes_;
  // Jobs whose spec was changed so; an operator may see it later than it is so.
  std::set<std::string> scaled_;
  std::set<std::string> suspended_;
  std::map<std::string, Known> known_;
};

}  // namespace

ScheduleResult RunSchedule(std::uint64_t seed, bool trace) { return Schedule(seed, trace).Run(); }

}  // namespace trainyard::sim
