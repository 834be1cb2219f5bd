#include "client/elastic_manifests.h"

#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "master/pods/job_link.h"

namespace trainyard::client {
namespace {

constexpr std::string_view kFolder = "/run/trainyard/job";  // where containers see the ConfigMap
constexpr std::string_view kJobVolume = "job";
constexpr int kMasterGraceSeconds = 30;  // for its last checkpoint
constexpr int kWorkerGraceSeconds = 5;
// Of a master in one pod; the master stores their number, and the operator counts the pods.
constexpr int kMasterRestarts = 20;

graph::Resource ResourceOf(const master::PodSpec& pod) {
  return {.cpu = pod.cpu, .gpu = pod.gpu, .memory = pod.memory};
}

// A group whose pods have this container.
Object GroupOf(const ElasticSettings& settings, std::string_view name, int replicas,
               const master::PodSpec& pod, Object container) {
  container["name"] = StrCat("aitj-", name);
  container["image"] = settings.pods.image;
  if (!settings.image_pull_policy.empty()) container["imagePullPolicy"] = settings.image_pull_policy;
  container["resources"] = ResourcesOf(ResourceOf(pod));
  container["volumeMounts"] = Array{MountOf(settings.pods.storage),
                                    Object{{"name", kJobVolume}, {"mountPath", kFolder}, {"readOnly", true}}};
  const bool master = name == master::kMasterGroup;
  Object spec{{"containers", Array{std::move(container)}},
              {"volumes", Array{VolumeOf(settings.pods.storage),
                                Object{{"name", kJobVolume},
                                       {"configMap", Object{{"name", ConfigName(settings.spec.name)}}}}}},
              {"terminationGracePeriodSeconds", master ? kMasterGraceSeconds : kWorkerGraceSeconds}};
  if (!pod.priority_class.empty()) spec["priorityClassName"] = pod.priority_class;
  if (master) {
    spec["automountServiceAccountToken"] = true;  // it scales its workers and reports progress
    if (!settings.service_account.empty()) spec["serviceAccountName"] = settings.service_account;
  }
  return {{"replicas", replicas},
          {"restartPolicy", "OnNodeFailWithExitCode"},
          {"restartScope", "Pod"},
          {"restartDelaySeconds", 1},
          {"completePolicy", master ? "All" : "None"},
          {"template", Object{{"metadata", Object{{"annotations", Object{{"trainyard.dev/fenced", "true"}}}}},
                              {"spec", std::move(spec)}}}};
}

// What every process of the job is told.
Array CommonEnv(const ElasticSettings& settings) {
  return {FromSecret("TRAINYARD_JOB_TOKEN", TokenName(settings.spec.name)),
          FromField("TRAINYARD_POD_NAME", "metadata.name"), FromField("TRAINYARD_POD_IP", "status.podIP")};
}

Array MemberEnv(const ElasticSettings& settings, std::string_view index) {
  Array env = CommonEnv(settings);
  env.push_back(Variable("TRAINYARD_MASTER", StrCat(settings.spec.name, "-", master::kMasterGroup, "-0.",
                                                    settings.pods.ns, ":", kMasterPort)));
  env.push_back(FromField(index, "metadata.labels['TrainingJobReplicaIndex']"));
  return env;
}

Object MasterGroup(const ElasticSettings& settings) {
  Array env = CommonEnv(settings);
  for (Object& variable :
       std::vector<Object>{Variable("TRAINYARD_JOB_FILE", StrCat(kFolder, "/job.json")),
                           Variable("TRAINYARD_STATE_DIR", settings.state_dir),
                           FromField("TRAINYARD_POD_UID", "metadata.uid"),
                           FromField("TRAINYARD_JOB_UID", "metadata.labels['trainyard.dev/job-uid']"),
                           FromField("TRAINYARD_POD_NAMESPACE", "metadata.namespace")}) {
    env.push_back(std::move(variable));
  }
  if (!settings.store_url.empty()) env.push_back(Variable("TRAINYARD_STORE", settings.store_url));
  const Object port{{"name", StrCat("aitj-", kMasterPort)}, {"containerPort", kMasterPort}};
  return GroupOf(
      settings, master::kMasterGroup, 1, settings.spec.master_pod,
      {{"command", UnderAgent(settings.pods.program, {settings.pods.program, "master", "--log-level", "info"},
                              kMasterRestarts)},
       {"env", std::move(env)},
       {"ports", Array{port}}});
}

Object WorkerGroup(const ElasticSettings& settings) {
  Array env = MemberEnv(settings, "TRAINYARD_WORKER_INDEX");
  Array command{settings.pods.program, "worker", "--log-level", "info"};
  if (settings.spec.program.empty()) {
    command = {settings.python, "-u", "-m", "trainyard.elastic"};
    env.push_back(Variable("TRAINYARD_MODEL_COPY", StrCat(kFolder, "/model.py")));
    if (!settings.python_path.empty()) env.push_back(Variable("PYTHONPATH", settings.python_path));
    env.push_back(Variable("OMP_NUM_THREADS", std::to_string(settings.spec.threads)));
  }
  for (const auto& [name, value] : settings.env) env.push_back(Variable(name, value));
  return GroupOf(
      settings, master::kWorkerGroup, 0, settings.spec.worker_pod,
      {{"command", UnderAgent(settings.pods.program, std::move(command))}, {"env", std::move(env)}});
}

Object PserverGroup(const ElasticSettings& settings) {
  return GroupOf(settings, master::kPserverGroup, settings.spec.pservers, settings.spec.pserver_pod,
                 {{"command", UnderAgent(settings.pods.program,
                                         {settings.pods.program, "pserver", "--log-level", "info"})},
                  {"env", MemberEnv(settings, "TRAINYARD_PSERVER_INDEX")}});
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

std::string ConfigName(std::string_view job) { return StrCat(job, "-job"); }
std::string TokenName(std::string_view job) { return StrCat(job, "-token"); }

Document JobConfig(const ElasticSettings& settings) {
  Object data{{"job.json", master::Print(settings.spec)}};
  if (!settings.model_text.empty()) data["model.py"] = settings.model_text;
  return Object{{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", Metadata(settings.pods.ns, ConfigName(settings.spec.name))},
                {"data", std::move(data)}};
}

Document ElasticJobObject(const ElasticSettings& settings) {
  Object groups{{master::kMasterGroup, MasterGroup(settings)}, {master::kWorkerGroup, WorkerGroup(settings)}};
  if (settings.spec.pservers > 0) groups[master::kPserverGroup] = PserverGroup(settings);
  return JobObject(settings.pods.ns, settings.spec.name, {kElasticJobLabel, settings.spec.name},
                   "trainyard-elastic", std::move(groups));
}

}  // namespace trainyard::client
