#include "operator/pytorchjob.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "operator/pod_template.h"

namespace trainyard::ops {
namespace {

constexpr std::string_view kMaster = "master";
constexpr std::string_view kWorker = "worker";

// The text of a field that may be written as a number; empty: there is none.
std::string TextOf(const Document& object, std::string_view key) {
  const Document* value = Find(object, {key});
  if (value == nullptr || value->is_null()) return "";
  return value->is_string() ? std::string(Text(*value)) : PrintJson(*value);
}

// "timeout=900,read_timeout=60".
std::string PrintSettings(const Array& settings) {
  std::string out;
  for (const Document& setting : settings) {
    StrAppend(out, out.empty() ? "" : ",", TextOf(setting, "key"), "=", TextOf(setting, "value"));
  }
  return out;
}

// The original has an init container in which workers wait for the name of the master. There is none here:
// services exist before their pods are ready, torch's store looks a name up again until it has one, and a
// cluster need not have the image.
class PyTorchObjectMaker final : public KubeflowMaker {
 public:
  using KubeflowMaker::KubeflowMaker;

 private:
  void AddVariables(Array& env, const reconcile::Place& place, bool /*main*/) const override {
    const std::string processes = ProcessesPerNode(spec());
    const int pods = job().spec.CountPods();
    AddEnv(env, "PYTHONUNBUFFERED", "1");
    if (const Role* master = FindRole(kMaster); master != nullptr) {
      for (const std::string_view prefix : {"", "PET_"}) {
        AddEnv(env, StrCat(prefix, "MASTER_ADDR"), Name(kMaster, 0));
        AddEnv(env, StrCat(prefix, "MASTER_PORT"), StrCat(master->port));
      }
      const std::string rank = StrCat(place.role == kMaster ? 0 : place.index + 1);
      AddEnv(env, "WORLD_SIZE", StrCat(pods * ParseNumber<int>(processes).value_or(1)));
      AddEnv(env, "RANK", rank);
      AddEnv(env, "PET_NODE_RANK", rank);
    }
    AddEnv(env, "PET_NPROC_PER_NODE", processes);
    const Document* policy = Find(spec(), {"elasticPolicy"});
    if (policy == nullptr || policy->is_null()) return AddEnv(env, "PET_NNODES", StrCat(pods));
    AddElastic(env, *policy);
  }

  void AddElastic(Array& env, const Document& policy) const {
    const Role& worker = *FindRole(kWorker);
    const std::string host = TextOf(policy, "rdzvHost");
    const std::string port = TextOf(policy, "rdzvPort");
    const std::string backend = TextOf(policy, "rdzvBackend");
    AddEnv(env, "PET_RDZV_ENDPOINT",
           StrCat(host.empty() ? Name(kWorker, 0) : host, ":", port.empty() ? StrCat(worker.port) : port));
    AddEnv(env, "PET_RDZV_BACKEND", backend.empty() ? "c10d" : backend);
    AddEnv(env, "PET_NNODES", StrCat(worker.spec->least, ":", worker.spec->most));
    for (const auto& [name, key] :
         {std::pair("PET_MAX_RESTARTS", "maxRestarts"), std::pair("PET_RDZV_ID", "rdzvId")}) {
      if (std::string value = TextOf(policy, key); !value.empty()) AddEnv(env, name, std::move(value));
    }
    if (const Array* settings = ArrayAt(policy, {"rdzvConf"}); settings != nullptr && !settings->empty()) {
      AddEnv(env, "PET_RDZV_CONF", PrintSettings(*settings));
    }
    if (BoolAt(policy, {"standalone"})) AddEnv(env, "PET_STANDALONE", "");
  }
};

constexpr std::array<ReplicaType, 2> kTypes = {
    {{"Master", "master", "", true}, {"Worker", "worker", "", false}}};

constexpr Dialect kDialect = {.kind = "PyTorchJob",
                              .version = "v1",
                              .replicas = "pytorchReplicaSpecs",
                              .types = kTypes,
                              .container = "pytorch",
                              .port_name = "pytorchjob-port",
                              .port = 23456,
                              .restart = job::RestartPolicy::kOnFailure,
                              .operator_name = "pytorchjob-controller"};

constexpr std::string_view kElastic = "spec.elasticPolicy";

bool IsPositive(std::string_view text) { return ParseNumber<int>(text).value_or(0) > 0; }

class PyTorchJobReader final : public KubeflowReader {
 public:
  using KubeflowReader::KubeflowReader;

 private:
  void ReadRest(const Document& spec) override {
    const std::string processes = Word(spec, "spec", "nprocPerNode").value_or("auto");
    if (processes != "auto" && processes != "cpu" && processes != "gpu" && !IsPositive(processes)) {
      Problem("spec.nprocPerNode", StrCat("must be auto, cpu, gpu or a number from 1 on, not ",
                                          Shortened(Escaped(processes), kShown)));
    }
    const bool elastic = Map(spec, "spec", "elasticPolicy") != nullptr;
    if (elastic) {
      ReadSize(*Find(spec, {"elasticPolicy"}), spec);
      ReadRendezvous(*Find(spec, {"elasticPolicy"}));
    }
    DecideEnd(elastic);
  }

  // The master decides. Without one all workers do, or the first one that is done where they are elastic:
  // torchrun ends them together.
  void DecideEnd(bool elastic) {
    using job::EndPolicy;
    job::RoleSpec* master = FindRole("master");
    job::RoleSpec* worker = FindRole("worker");
    if (master != nullptr) {
      master->complete = EndPolicy::kAll;
    } else if (worker != nullptr) {
      worker->complete = elastic ? EndPolicy::kAny : EndPolicy::kAll;
    } else {
      Problem("spec.pytorchReplicaSpecs",
              "the job needs a Master or a Worker with at least 1 replica, which decides when it has ended");
    }
  }

  void ReadSize(const Document& policy, const Document& spec) {
    job::RoleSpec* worker = FindRole("worker");
    if (worker == nullptr) return Problem(kElastic, "the job has no Worker that could grow and shrink");
    const auto least = Number(policy, kElastic, "minReplicas", kMostReplicas, 1);
    const auto most = Number(policy, kElastic, "maxReplicas", kMostReplicas, 1);
    worker->least = static_cast<int>(least.value_or(most.value_or(worker->replicas)));
    worker->most = static_cast<int>(most.value_or(worker->least));
    if (worker->least > worker->most) {
      Problem(StrCat(kElastic, ".minReplicas"),
              StrCat("is more than maxReplicas: ", worker->least, " and ", worker->most));
    }
    // Metrics are for a HorizontalPodAutoscaler, which writes replicas as a user does.
    const Array* metrics = List(policy, kElastic, "metrics");
    worker->size =
        metrics != nullptr && !metrics->empty() ? job::SizePolicy::kManual : job::SizePolicy::kAuto;
    out_.sized = true;
    out_.fault_tolerant = true;
    CheckNames(*worker, worker->most);
    const Document* replica = FindReplicaSpec(dialect_, spec, worker->slug);
    const int more = std::max(worker->most - worker->replicas, 0);
    AddPods(PathOf(worker->name), static_cast<std::size_t>(more), Find(*replica, {"template"}));
  }

  void ReadRendezvous(const Document& policy) {
    (void)OneOf<int, 3>(policy, kElastic, "rdzvBackend", {{{"c10d", 0}, {"etcd", 1}, {"etcd-v2", 2}}});
    (void)Number(policy, kElastic, "rdzvPort", kMostPort, 1);
    (void)Number(policy, kElastic, "maxRestarts", kMostSeconds);
    (void)Number(policy, kElastic, "nProcPerNode", kMostReplicas, 1);
    (void)Word(policy, kElastic, "rdzvHost");
    (void)Word(policy, kElastic, "rdzvId");
    (void)Flag(policy, kElastic, "standalone");
    const Array* settings = List(policy, kElastic, "rdzvConf");
    for (std::size_t i = 0; settings != nullptr && i < settings->size(); ++i) {
      const std::string path = StrCat(kElastic, ".rdzvConf[", i, "]");
      if (Word((*settings)[i], path, "key").value_or("").empty()) Problem(path + ".key", "is missing");
      (void)Word((*settings)[i], path, "value");
    }
  }
};

}  // namespace

PyTorchJobKind::PyTorchJobKind()
    : KubeflowKind({.group = "kubeflow.org", .version = "v1", .plural = "pytorchjobs", .kind = "PyTorchJob"},
                   {"pytorchjob", "pytorchjobs", "ptj"}, PyTorchDialect().container,
                   {.all = {"training.kubeflow.org/operator-name", PyTorchDialect().operator_name},
                    .job = "training.kubeflow.org/job-name",
                    .role = "training.kubeflow.org/replica-type",
                    .index = "training.kubeflow.org/replica-index"},
                   job::kPyTorchJobStatus) {}

const Dialect& PyTorchJobKind::DialectOf(const Document& /*job*/) const { return PyTorchDialect(); }

const Dialect& PyTorchJobKind::FindDialect(std::string_view /*version*/) const { return PyTorchDialect(); }

ParsedSpec PyTorchJobKind::ParseSpec(const Dialect& /*dialect*/, const kube::ObjectKey& job,
                                     const Document* spec) const {
  return ParsePyTorchJobSpec(job, spec);
}

std::unique_ptr<reconcile::ObjectMaker> PyTorchJobKind::NewMaker(const reconcile::CompactJob& job) const {
  return std::make_unique<PyTorchObjectMaker>(*this, job);
}

const Dialect& PyTorchDialect() { return kDialect; }

ParsedSpec ParsePyTorchJobSpec(const kube::ObjectKey& job, const Document* spec) {
  return PyTorchJobReader(kDialect, job).Read(spec);
}

std::string ProcessesPerNode(const Document& spec) {
  const auto text = [](const Document& value) {
    return value.is_string() ? std::string(Text(value)) : PrintJson(value);
  };
  // The older place wins where both are given, as it stands last in the environment.
  for (const Document* value :
       {Find(spec, {"elasticPolicy", "nProcPerNode"}), Find(spec, {"nprocPerNode"})}) {
    if (value != nullptr && !value->is_null()) return text(*value);
  }
  return "auto";
}

}  // namespace trainyard::ops
