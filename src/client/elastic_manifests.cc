#include "client/elastic_manifests.h"

#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "master/pods/keeper.h"

namespace trainyard::client {
namespace {

constexpr std::string_view kFolder = "/run/trainyard/job";  // where containers see the ConfigMap
constexpr std::string_view kJobVolume = "job";
constexpr int kMasterGraceSeconds = 30;  // for its last checkpoint
constexpr int kWorkerGraceSeconds = 5;

Object LabelsOf(const ElasticSettings& settings, std::string_view role) {
  return {{master::kElasticJobLabel, settings.spec.name}, {master::kElasticRoleLabel, role}};
}

graph::Resource ResourceOf(const master::PodSpec& pod) {
  return {.cpu = pod.cpu, .gpu = pod.gpu, .memory = pod.memory};
}

Object PodSpecOf(const ElasticSettings& settings, const master::PodSpec& pod, Object container) {
  container["image"] = settings.pods.image;
  if (!settings.image_pull_policy.empty()) container["imagePullPolicy"] = settings.image_pull_policy;
  container["resources"] = ResourcesOf(ResourceOf(pod));
  container["volumeMounts"] = Array{MountOf(settings.pods.storage),
                                    Object{{"name", kJobVolume}, {"mountPath", kFolder}, {"readOnly", true}}};
  Object spec{{"containers", Array{std::move(container)}},
              {"volumes", Array{VolumeOf(settings.pods.storage),
                                Object{{"name", kJobVolume},
                                       {"configMap", Object{{"name", ConfigName(settings.spec.name)}}}}}}};
  if (!pod.priority_class.empty()) spec["priorityClassName"] = pod.priority_class;
  return spec;
}

// That its master makes, and makes anew.
Document PodOf(const ElasticSettings& settings, std::string_view role, const master::PodSpec& pod,
               Object container) {
  Object spec = PodSpecOf(settings, pod, std::move(container));
  spec["restartPolicy"] = "Never";
  spec["terminationGracePeriodSeconds"] = kWorkerGraceSeconds;
  return Object{{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", Object{{"labels", LabelsOf(settings, role)}}},
                {"spec", std::move(spec)}};
}

}  // namespace

absl::Status ResolvePaths(ElasticSettings& settings) {
  master::JobSpec& spec = settings.spec;
  for (const auto& [flag, path] :
       {std::pair("--checkpoint-dir", &spec.checkpoint_dir), std::pair("--output", &spec.output),
        std::pair("--init-from", &spec.init_from)}) {
    if (path->empty()) continue;
    if (settings.pods.sees_client) {
      *path = AbsolutePath(*path);
    } else if (path != &spec.init_from ||
               !path->starts_with('/')) {  // an image may have a model to begin with
      TY_ASSIGN_OR_RETURN(*path, PathInStorage(settings.pods.storage, flag, *path));
    }
  }
  return absl::OkStatus();
}

std::string MasterName(std::string_view job) { return StrCat(job, "-master"); }
std::string ConfigName(std::string_view job) { return StrCat(job, "-job"); }
std::string TokenName(std::string_view job) { return StrCat(job, "-token"); }

Document WorkerPod(const ElasticSettings& settings) {
  const bool python = settings.spec.program.empty();
  Array env{FromSecret("TRAINYARD_JOB_TOKEN", TokenName(settings.spec.name)),
            FromField("TRAINYARD_POD_NAME", "metadata.name")};
  Array command{settings.pods.program, "worker", "--log-level", "info"};
  if (python) {
    command = {settings.python, "-u", "-m", "trainyard.elastic"};
    env.push_back(Variable("TRAINYARD_MODEL_COPY", StrCat(kFolder, "/model.py")));
    if (!settings.python_path.empty()) env.push_back(Variable("PYTHONPATH", settings.python_path));
    env.push_back(Variable("OMP_NUM_THREADS", std::to_string(settings.spec.threads)));
  }
  for (const auto& [name, value] : settings.env) env.push_back(Variable(name, value));
  return PodOf(settings, "worker", settings.spec.worker_pod,
               {{"name", "worker"}, {"command", std::move(command)}, {"env", std::move(env)}});
}

Document PserverPod(const ElasticSettings& settings) {
  return PodOf(settings, "pserver", settings.spec.pserver_pod,
               {{"name", "pserver"},
                {"command", Array{settings.pods.program, "pserver", "--log-level", "info"}},
                {"env", Array{FromSecret("TRAINYARD_JOB_TOKEN", TokenName(settings.spec.name)),
                              FromField("TRAINYARD_POD_NAME", "metadata.name"),
                              FromField("TRAINYARD_POD_IP", "status.podIP")}}});
}

Document JobConfig(const ElasticSettings& settings) {
  Object data{{"job.json", master::Print(settings.spec)}, {"worker.json", PrintJson(WorkerPod(settings))}};
  if (settings.spec.pservers > 0) data["pserver.json"] = PrintJson(PserverPod(settings));
  if (!settings.model_text.empty()) data["model.py"] = settings.model_text;
  Object metadata = Metadata(settings.pods.ns, ConfigName(settings.spec.name));
  metadata["labels"].get_object()[master::kElasticJobLabel] = settings.spec.name;
  return Object{{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", std::move(metadata)},
                {"data", std::move(data)}};
}

Document MasterPod(const ElasticSettings& settings) {
  Array env{Variable("TRAINYARD_JOB_FILE", StrCat(kFolder, "/job.json")),
            Variable("TRAINYARD_WORKER_FILE", StrCat(kFolder, "/worker.json")),
            Variable("TRAINYARD_PSERVER_FILE", StrCat(kFolder, "/pserver.json")),
            Variable("TRAINYARD_STATE_DIR", settings.state_dir),
            FromField("TRAINYARD_POD_NAME", "metadata.name"),
            FromField("TRAINYARD_POD_UID", "metadata.uid"),
            FromField("TRAINYARD_POD_NAMESPACE", "metadata.namespace"),
            FromField("TRAINYARD_POD_IP", "status.podIP"),
            FromSecret("TRAINYARD_JOB_TOKEN", TokenName(settings.spec.name))};
  if (!settings.store_url.empty()) env.push_back(Variable("TRAINYARD_STORE", settings.store_url));
  Object spec = PodSpecOf(settings, settings.spec.master_pod,
                          {{"name", "master"},
                           {"command", Array{settings.pods.program, "master", "--log-level", "info"}},
                           {"env", std::move(env)},
                           {"ports", Array{Object{{"name", "master"}, {"containerPort", kMasterPort}}}}});
  spec["restartPolicy"] = "OnFailure";
  spec["terminationGracePeriodSeconds"] = kMasterGraceSeconds;
  spec["automountServiceAccountToken"] = true;  // it makes pods
  if (!settings.service_account.empty()) spec["serviceAccountName"] = settings.service_account;
  Object metadata = Metadata(settings.pods.ns, MasterName(settings.spec.name));
  for (const auto& label : LabelsOf(settings, "master"))
    metadata["labels"].get_object()[label.key()] = label.value();
  return Object{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

}  // namespace trainyard::client
