#include "client/manifests.h"

#include "base/base64.h"
#include "base/status.h"
#include "base/text.h"
#include "client/graph_jobs.h"
#include "kube/quantity.h"

namespace trainyard::client {
namespace {

constexpr std::string_view kGroup = "elasticdeeplearning.ai";

absl::StatusOr<std::string> CheckAmount(std::string_view what, std::string_view text, bool whole) {
  if (text.empty()) return std::string();
  const auto wrong = [&](std::string_view why, std::string_view instead) {
    return absl::InvalidArgumentError(
        StrCat(what, ": '", Shortened(Escaped(text), 80), "' ", why, ": write ", instead));
  };
  const std::string_view instead = what == "mem" ? "512Mi or 2Gi" : whole ? "a whole number" : "1 or 500m";
  const absl::StatusOr<kube::Quantity> amount = kube::Quantity::Parse(text);
  if (!amount.ok()) return wrong("is no amount", instead);
  if (amount->Sign() < 0) return wrong("is negative", instead);
  if (whole && *amount != kube::Quantity::FromUnits(amount->Units().value_or(0)))
    return wrong("is not whole", instead);
  return amount->Sign() == 0 ? std::string() : amount->Print();
}

Object PodSpec(const PodSettings& pods, Object container) {
  container["image"] = pods.image;
  container["volumeMounts"] = Array{MountOf(pods.storage)};
  return {{"containers", Array{std::move(container)}}, {"volumes", Array{VolumeOf(pods.storage)}}};
}

}  // namespace

const kube::Resource& AITrainingJobs() {
  static const auto* const resource = new kube::Resource{
      .group = std::string(kGroup), .version = "v1", .plural = "aitrainingjobs", .kind = "AITrainingJob"};
  return *resource;
}

absl::StatusOr<graph::Resource> CheckResource(const graph::Resource& resource) {
  graph::Resource checked;
  TY_ASSIGN_OR_RETURN(checked.cpu, CheckAmount("cpu", resource.cpu, false));
  TY_ASSIGN_OR_RETURN(checked.gpu, CheckAmount("gpu", resource.gpu, true));
  TY_ASSIGN_OR_RETURN(checked.memory, CheckAmount("mem", resource.memory, true));
  return checked;
}

std::string_view GroupName(graph::GraphRole role) { return graph::Name(role); }

Document GroupObject(const JobSettings& job, const GroupSettings& group) {
  const bool pserver = group.role == graph::GraphRole::kPserver;
  Array env{Variable("TRAINYARD_STORE", job.store_url),
            Variable("TRAINYARD_JOB", StrCat(job.pods.ns, "/", job.name)),
            FromField("TRAINYARD_POD_NAME", "metadata.name"), FromField("TRAINYARD_POD_IP", "status.podIP"),
            FromSecret("TRAINYARD_JOB_TOKEN", StrCat(ObjectName(job.name), "-token"))};
  if (job.store_has_token) env.push_back(FromSecret("TRAINYARD_ETCD_TOKEN", kStoreName));
  if (pserver) env.push_back(Variable("TRAINYARD_CHECKPOINT_DIR", job.checkpoints));
  Array command{job.pods.program, "graph-worker", "--log-level", "info"};
  if (group.threads != 1) {
    command.push_back("--threads");
    command.push_back(Document(std::to_string(group.threads)));
  }
  Object pod = PodSpec(job.pods, {{"name", StrCat("aitj-", GroupName(group.role))},
                                  {"command", UnderAgent(job.pods.program, std::move(command))},
                                  {"env", std::move(env)},
                                  {"resources", ResourcesOf(group.resource)}});
  Object out{{"replicas", group.replicas},
             {"restartPolicy", "OnNodeFailWithExitCode"},
             {"restartScope", "Pod"},
             {"completePolicy", pserver ? "None" : "All"},
             {"template", Object{{"spec", std::move(pod)}}}};
  if (group.restart_limit) out["restartLimit"] = *group.restart_limit;
  if (group.elastic) {
    out["edlPolicy"] = "Auto";
    out["minReplicas"] = group.elastic->least;
    out["maxReplicas"] = group.elastic->most;
  }
  return out;
}

Document JobObject(std::string_view ns, std::string_view name,
                   std::pair<std::string_view, std::string_view> label, std::string_view framework,
                   Object groups) {
  Object metadata = Metadata(ns, name);
  metadata["labels"].get_object()[label.first] = label.second;
  return Object{{"apiVersion", AITrainingJobs().ApiVersion()},
                {"kind", AITrainingJobs().kind},
                {"metadata", std::move(metadata)},
                {"spec", Object{{"faultTolerant", true},
                                {"cleanPodPolicy", "None"},
                                {"restartingExitCode",
                                 StrCat("1-", kFinalExitCode - 1, ",", kFinalExitCode + 1, "-255")},
                                {"frameworkType", framework},
                                {"replicaSpecs", std::move(groups)}}}};
}

Document GraphJobObject(const JobSettings& job) {
  return JobObject(job.pods.ns, ObjectName(job.name), {kJobLabel, job.name}, "trainyard-graph", Object{});
}

Document TokenSecret(std::string_view ns, std::string_view name, std::string_view token) {
  return Object{{"apiVersion", "v1"},
                {"kind", "Secret"},
                {"metadata", Metadata(ns, name)},
                {"type", "Opaque"},
                {"data", Object{{kTokenKey, EncodeBase64(token)}}}};
}

Document OwnerPatch(const Document& owner) {
  return Object{{"metadata",
                 Object{{"ownerReferences", Array{Object{{"apiVersion", AITrainingJobs().ApiVersion()},
                                                         {"kind", AITrainingJobs().kind},
                                                         {"name", StringAt(owner, {"metadata", "name"})},
                                                         {"uid", StringAt(owner, {"metadata", "uid"})}}}}}}};
}

Document ServiceJob(std::string_view ns, std::string_view name, std::string_view group, Object pod,
                    Object annotations) {
  Object metadata = Metadata(ns, name);
  metadata["labels"].get_object()[kServiceLabel] = name;
  Object pods{{"metadata", Object{{"annotations", std::move(annotations)}}}, {"spec", std::move(pod)}};
  return Object{{"apiVersion", AITrainingJobs().ApiVersion()},
                {"kind", AITrainingJobs().kind},
                {"metadata", std::move(metadata)},
                {"spec", Object{{"replicaSpecs", Object{{group, Object{{"replicas", 1},
                                                                       {"restartPolicy", "Always"},
                                                                       {"restartScope", "Pod"},
                                                                       {"restartDelaySeconds", 1},
                                                                       {"template", std::move(pods)}}}}}}}};
}

Document StoreJob(const PodSettings& pods) {
  Object container{
      {"name", "aitj-store"},
      {"command",
       UnderAgent(pods.program,
                  {pods.program, "store", "--path", StrCat(MountPath(pods.storage), "/store/", pods.ns),
                   "--listen", StrCat(":", kStorePort), "--gateway", StrCat(":", kGatewayPort)})},
      {"env", Array{FromSecret("TRAINYARD_ETCD_TOKEN", kStoreName)}},
      {"ports", Array{Object{{"name", StrCat("aitj-", kStorePort)}, {"containerPort", kStorePort}},
                      Object{{"name", StrCat("aitj-", kGatewayPort)}, {"containerPort", kGatewayPort}}}},
      {"readinessProbe", Object{{"tcpSocket", Object{{"port", kGatewayPort}}}, {"periodSeconds", 1}}}};
  return ServiceJob(pods.ns, kStoreName, "store", PodSpec(pods, std::move(container)));
}

Document StoreService(std::string_view ns) {
  const auto port = [](std::string_view name, int number) {
    return Object{{"name", name}, {"port", number}, {"targetPort", number}};
  };
  return Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", Metadata(ns, kStoreName)},
      {"spec", Object{{"selector", Object{{"TrainingJobName", kStoreName}}},
                      {"ports", Array{port("client", kStorePort), port("gateway", kGatewayPort)}}}}};
}

std::string StoreUrl(std::string_view ns) { return StrCat("etcd://", kStoreName, ".", ns, ":", kStorePort); }

}  // namespace trainyard::client
