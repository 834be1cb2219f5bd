#include "operator/pytorchjob.h"

#include "base/text.h"
#include "operator/pod_template.h"
#include "operator/pytorchjob_spec.h"

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

}  // namespace

PyTorchJobKind::PyTorchJobKind()
    : KubeflowKind({.group = "kubeflow.org", .version = "v1", .plural = "pytorchjobs", .kind = "PyTorchJob"},
                   {"pytorchjob", "pytorchjobs", "ptj"}, PyTorchDialect().container,
                   {.all = {"training.kubeflow.org/operator-name", PyTorchDialect().operator_name},
                    .job = "training.kubeflow.org/job-name",
                    .role = "training.kubeflow.org/replica-type",
                    .index = "training.kubeflow.org/replica-index"},
                   {"replicaStatuses"}) {}

const Dialect& PyTorchJobKind::DialectOf(const Document& /*job*/) const { return PyTorchDialect(); }

const Dialect& PyTorchJobKind::FindDialect(std::string_view /*version*/) const { return PyTorchDialect(); }

ParsedSpec PyTorchJobKind::ParseSpec(const Dialect& /*dialect*/, const kube::ObjectKey& job,
                                     const Document* spec) const {
  return ParsePyTorchJobSpec(job, spec);
}

std::unique_ptr<reconcile::ObjectMaker> PyTorchJobKind::NewMaker(const reconcile::CompactJob& job) const {
  return std::make_unique<PyTorchObjectMaker>(*this, job);
}

}  // namespace trainyard::ops
