#include "operator/tfjob.h"

#include <array>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "job/members.h"
#include "job/names.h"
#include "operator/pod_template.h"

namespace trainyard::ops {
namespace {

constexpr std::string_view kTfConfig = "TF_CONFIG";
constexpr std::string_view kEval = "eval";

// What TensorFlow calls the task of a role.
std::string_view TaskType(std::string_view role) { return role == kEval ? "evaluator" : role; }

class TfObjectMaker final : public KubeflowMaker {
 public:
  TfObjectMaker(const KubeflowKind& kind, const reconcile::CompactJob& job)
      : KubeflowMaker(kind, job), dynamic_(BoolAt(spec(), {"enableDynamicWorker"})) {
    std::vector<job::TfTaskGroup> groups;
    for (const job::RoleSpec& role : job.spec.roles) {
      // The evaluator follows the others' checkpoints, and nobody speaks with it; v1 names it all the same.
      if (role.slug == kEval || role.replicas == 0) continue;
      job::TfTaskGroup& group =
          groups.emplace_back(job::TfTaskGroup{.type = std::string(TaskType(role.slug))});
      for (int index = 0; index < role.replicas; ++index)
        group.addresses.push_back(Address(role.slug, index));
      if (role.slug == "ps") servers_ = group.addresses;
    }
    cluster_ = job::PrintTfCluster(groups);
  }

  Object MakeConfigData() const override {
    return {{kTfConfig, JsonObject().AddRaw("cluster", cluster_).Str()}};
  }

 private:
  std::string Address(std::string_view role, int index) const {
    return StrCat(Name(role, index), ".", job().meta.ns.view(), ".svc:", FindRole(role)->port);
  }

  void AddVariables(Array& env, const reconcile::Place& place, bool main) const override {
    // As the original's v1: only the container that does the work knows, and one pod alone has no cluster.
    if (dialect().IsV1() && (!main || job().spec.CountPods() == 1)) return;
    if (job().spec.config_in_file) {
      AddEnv(env, StrCat(kTfConfig, "_FILE"), StrCat(reconcile::kConfigFolder, "/", kTfConfig));
      AddEnv(env, StrCat(kTfConfig, "_TASK"), job::PrintTfTask(TaskType(place.role), place.index));
    } else {
      AddEnv(env, kTfConfig, PrintConfig(place));
    }
  }

  std::string PrintConfig(const reconcile::Place& place) const {
    const std::string_view type = TaskType(place.role);
    if (dynamic_) return job::PrintTfConfig(PrintSparseCluster(place), type, place.index);
    if (!dialect().IsV1()) return job::PrintTfConfig(cluster_, type, place.index);
    return JsonObject()
        .AddRaw("cluster", cluster_)
        .AddRaw("task", job::PrintTfTask(type, place.index))
        .Add("environment", "cloud")
        .Str();
  }

  // Itself and all parameter servers; of a parameter server itself alone.
  std::string PrintSparseCluster(const reconcile::Place& place) const {
    Object worker;
    if (place.role == "worker") worker[StrCat(place.index)] = Address(place.role, place.index);
    Array servers;
    if (place.role == "ps") {
      servers.emplace_back(Address(place.role, place.index));
    } else {
      for (const std::string& server : servers_) servers.emplace_back(server);
    }
    return PrintJson(Object{{"worker", std::move(worker)}, {"ps", std::move(servers)}});
  }

  const bool dynamic_;
  std::vector<std::string> servers_;
  std::string cluster_;
};

constexpr std::array<ReplicaType, 4> kAlphaTypes = {{{"Chief", "chief", "Master", true},
                                                     {"Worker", "worker", "", false},
                                                     {"PS", "ps", "", false},
                                                     {"Eval", "eval", "Evaluator", false}}};
constexpr std::array<ReplicaType, 5> kV1Types = {{{"Chief", "chief", "", true},
                                                  {"Master", "master", "", true},
                                                  {"Worker", "worker", "", false},
                                                  {"PS", "ps", "", false},
                                                  {"Evaluator", "evaluator", "", false}}};

constexpr Dialect kAlpha = {.kind = "TFJob",
                            .version = "v1alpha2",
                            .replicas = "tfReplicaSpecs",
                            .types = kAlphaTypes,
                            .container = "tensorflow",
                            .port_name = "tfjob-port",
                            .port = 2222,
                            .restart = job::RestartPolicy::kAlways,
                            .operator_name = ""};
constexpr Dialect kV1 = {.kind = "TFJob",
                         .version = "v1",
                         .replicas = "tfReplicaSpecs",
                         .types = kV1Types,
                         .container = "tensorflow",
                         .port_name = "tfjob-port",
                         .port = 2222,
                         .restart = job::RestartPolicy::kNever,
                         .operator_name = "tfjob-controller"};

class TfJobReader final : public KubeflowReader {
 public:
  using KubeflowReader::KubeflowReader;

 private:
  void ReadRest(const Document& spec) override {
    const bool all_workers =
        OneOf<bool, 2>(spec, "spec", "successPolicy", {{{"", false}, {"AllWorkers", true}}});
    const bool dynamic = Flag(spec, "spec", "enableDynamicWorker").value_or(false);
    if (dynamic && !dialect_.IsV1())
      Problem("spec.enableDynamicWorker", "the job follows v1alpha2, which does not have it");
    if (FindRole("chief") != nullptr && FindRole("master") != nullptr)
      Problem(PathOf("Master"), "is the same as Chief, and there can be only one");
    DecideEnd(all_workers);
    // Workers come and go, and the others do not know of them.
    if (job::RoleSpec* worker = FindRole("worker"); dynamic && worker != nullptr)
      worker->fail = job::EndPolicy::kNone;
    MeasureTfConfig(dynamic);
  }

  // The chief decides, or worker 0 where there is none.
  void DecideEnd(bool all_workers) {
    using job::EndPolicy;
    job::RoleSpec* chief = FindRole("chief") != nullptr ? FindRole("chief") : FindRole("master");
    job::RoleSpec* worker = FindRole("worker");
    if (chief != nullptr) chief->complete = EndPolicy::kAll;
    if (worker != nullptr && all_workers) {
      worker->complete = EndPolicy::kAll;
    } else if (worker != nullptr && chief == nullptr) {
      worker->complete = EndPolicy::kRank0;
    }
    if (chief == nullptr && worker == nullptr) {
      Problem("spec.tfReplicaSpecs",
              "the job needs a Chief or a Worker with at least 1 replica, which decides when it has ended");
    }
  }

  // Each pod gets the addresses of all others in TF_CONFIG.
  void MeasureTfConfig(bool dynamic) {
    constexpr std::string_view kAround = R"("..svc:65535",)";
    Told told;
    for (const job::RoleSpec& role : out_.roles) {
      if (role.slug == "eval" || (dynamic && role.slug != "ps")) continue;
      const std::size_t name = job::LongestPodName(Naming(), role.slug, role.replicas);
      told.bytes += static_cast<std::size_t>(role.replicas) * (name + job_.ns.size() + kAround.size());
      told.pods += role.replicas;
    }
    told.longest = told.bytes;
    out_.config_in_file = NeedsConfigFile("spec.tfReplicaSpecs", told);
    if (out_.config_in_file && dynamic) {
      Problem("spec.enableDynamicWorker",
              StrCat("the addresses of ", told.pods, " parameter servers do not fit into TF_CONFIG"));
    }
  }
};

}  // namespace

// Pods and services carry the labels of v1alpha2, and those of a v1 job also that version's.
TfJobKind::TfJobKind()
    : KubeflowKind({.group = "kubeflow.org", .version = "v1", .plural = "tfjobs", .kind = "TFJob"},
                   {"tfjob", "tfjobs", "tfj"}, "tensorflow",
                   {.all = {"group_name", "kubeflow.org"},
                    .job = "tf_job_name",
                    .role = "tf-replica-type",
                    .index = "tf-replica-index"},
                   job::kTfJobStatus) {}

bool TfJobKind::Serves(std::string_view api_version) const {
  return api_version == "kubeflow.org/v1alpha2" || api_version == resource().ApiVersion();
}

const Dialect& TfJobKind::DialectOf(const Document& job) const { return TfDialectOf(job); }

const Dialect& TfJobKind::FindDialect(std::string_view version) const { return TfDialect(version); }

ParsedSpec TfJobKind::ParseSpec(const Dialect& dialect, const kube::ObjectKey& job,
                                const Document* spec) const {
  return ParseTfJobSpec(dialect, job, spec);
}

std::unique_ptr<reconcile::ObjectMaker> TfJobKind::NewMaker(const reconcile::CompactJob& job) const {
  return std::make_unique<TfObjectMaker>(*this, job);
}

const Dialect& TfDialect(std::string_view version) { return version == kV1.version ? kV1 : kAlpha; }

const Dialect& TfDialectOf(const Document& job) {
  const std::string_view noted = StringAt(job, {"spec", "dialect"});
  if (!noted.empty()) return TfDialect(noted);
  const bool stored = !StringAt(job, {"metadata", "resourceVersion"}).empty();
  return !stored && StringAt(job, {"apiVersion"}) == "kubeflow.org/v1" ? kV1 : kAlpha;
}

ParsedSpec ParseTfJobSpec(const Dialect& dialect, const kube::ObjectKey& job, const Document* spec) {
  return TfJobReader(dialect, job).Read(spec);
}

}  // namespace trainyard::ops
