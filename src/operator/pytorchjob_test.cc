#include "operator/pytorchjob.h"

#include <map>

#include "base/text.h"
#include "base/yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operator/tfjob_testing.h"

namespace trainyard::ops {
namespace {

using reconcile::CompactJob;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

std::string PtRole(std::string_view name, std::string_view more = "") {
  return StrCat(name, ": {", more, more.empty() ? "" : ", ",
                "template: {spec: {containers: [{name: pytorch, image: x}]}}}");
}
std::string PtSpec(std::string_view roles, std::string_view more = "") {
  return StrCat("{pytorchReplicaSpecs: {", roles, "}", more.empty() ? "" : ", ", more, "}");
}

ParsedSpec ParsePt(std::string_view yaml, std::string_view name = "mnist") {
  const Document spec = Yaml(yaml);
  return ParsePyTorchJobSpec({"team", std::string(name)}, &spec);
}

CompactJob DecodedPt(std::string_view spec) {
  const Document job = Object{
      {"apiVersion", "kubeflow.org/v1"},
      {"kind", "PyTorchJob"},
      {"metadata",
       Object{{"name", "mnist"}, {"namespace", "team"}, {"uid", "0a1b2c3d"}, {"resourceVersion", "7"}}},
      {"spec", Yaml(spec)}};
  CompactJob decoded = PyTorchJobKind().Decode(PrintJson(job)).value();
  EXPECT_EQ(decoded.invalid, "");
  return decoded;
}

Document PtPod(const CompactJob& job, std::string_view role, int index) {
  const PyTorchJobKind kind;
  return ParseJson(kind.NewMaker(job)->MakePod({.role = std::string(role), .index = index})).value();
}

// As the kubelet has it: the last value of a name counts.
std::map<std::string, std::string> VariablesOf(const Document& pod) {
  std::map<std::string, std::string> env;
  for (const Document& variable : *ArrayAt(ArrayAt(pod, {"spec", "containers"})->front(), {"env"})) {
    env[std::string(StringAt(variable, {"name"}))] = StringAt(variable, {"value"});
  }
  return env;
}

TEST(PyTorchJobSpec, HasTheDefaultsOfTheOriginal) {
  const ParsedSpec spec = ParsePt(PtSpec(PtRole("Master") + ", " + PtRole("worker", "replicas: 3")));
  ASSERT_EQ(spec.invalid, "");
  EXPECT_EQ(spec.spec.kind, "PyTorchJob");
  EXPECT_FALSE(spec.spec.names_with_uid || spec.spec.sized || spec.spec.fault_tolerant);
  EXPECT_EQ(spec.spec.clean, job::CleanPolicy::kNone);
  ASSERT_EQ(spec.spec.roles.size(), 2U);
  EXPECT_EQ(spec.spec.roles[0].restart.policy, job::RestartPolicy::kOnFailure);
  EXPECT_EQ(spec.spec.roles[1].replicas, 3);
  EXPECT_EQ(spec.spec.roles[1].ports, std::vector<int>{23456});
}

TEST(PyTorchJobSpec, LetsTheMasterDecideOrAllWorkersOrTheFirstElasticOne) {
  using enum job::EndPolicy;
  const auto ends = [](const std::string& spec) {
    std::vector<job::EndPolicy> out;
    for (const job::RoleSpec& role : ParsePt(spec).spec.roles) out.push_back(role.complete);
    return out;
  };
  EXPECT_THAT(ends(PtSpec(PtRole("Master") + ", " + PtRole("Worker"))), ElementsAre(kAll, kNone));
  EXPECT_THAT(ends(PtSpec(PtRole("Worker"))), ElementsAre(kAll));
  EXPECT_THAT(ends(PtSpec(PtRole("Worker"), "elasticPolicy: {maxReplicas: 2}")), ElementsAre(kAny));
  EXPECT_THAT(ends(PtSpec(PtRole("Master") + ", " + PtRole("Worker"), "elasticPolicy: {}")),
              ElementsAre(kAll, kNone));
}

TEST(PyTorchJobSpec, ReadsTheBoundsOfElasticWorkers) {
  struct Row {
    std::string_view policy;
    int least;
    int most;
    job::SizePolicy size = job::SizePolicy::kAuto;
  };
  const Row rows[] = {
      {"{minReplicas: 1, maxReplicas: 4}", 1, 4},
      {"{minReplicas: 2}", 2, 2},
      {"{maxReplicas: 5}", 5, 5},
      {"{}", 3, 3},
      {"{minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource}]}", 1, 4, job::SizePolicy::kManual},
      {"{minReplicas: 1, maxReplicas: 4, metrics: []}", 1, 4}};
  for (const Row& row : rows) {
    const ParsedSpec spec =
        ParsePt(PtSpec(PtRole("Worker", "replicas: 3"), StrCat("elasticPolicy: ", row.policy)));
    ASSERT_EQ(spec.invalid, "") << row.policy;
    EXPECT_TRUE(spec.spec.sized && spec.spec.fault_tolerant) << row.policy;
    EXPECT_EQ(spec.spec.roles[0].least, row.least) << row.policy;
    EXPECT_EQ(spec.spec.roles[0].most, row.most) << row.policy;
    EXPECT_EQ(spec.spec.roles[0].size, row.size) << row.policy;
  }
}

TEST(PyTorchJobSpec, NamesTheFieldThatIsWrong) {
  struct Row {
    std::string spec;
    std::string_view problem;
  };
  const auto elastic = [](std::string_view policy) {
    return PtSpec(PtRole("Worker"), StrCat("elasticPolicy: ", policy));
  };
  const Row rows[] = {
      {"{}", "spec.pytorchReplicaSpecs: is missing: it has one or more of Master and Worker"},
      {PtSpec(PtRole("PS")), "spec.pytorchReplicaSpecs.PS: is unknown"},
      {PtSpec(PtRole("Master", "replicas: 2")),
       "spec.pytorchReplicaSpecs.Master.replicas: there can be only one master"},
      {PtSpec(PtRole("Worker", "replicas: 0")),
       "spec.pytorchReplicaSpecs: the job needs a Master or a Worker"},
      {PtSpec("Worker: {template: {spec: {containers: [{name: torch, image: x}]}}}"),
       "spec.pytorchReplicaSpecs.Worker.template.spec.containers: there is no container named pytorch"},
      {PtSpec(PtRole("Worker"), "nprocPerNode: many"),
       "spec.nprocPerNode: must be auto, cpu, gpu or a number"},
      {PtSpec(PtRole("Worker"), "nprocPerNode: 0"), "spec.nprocPerNode: must be"},
      {PtSpec(PtRole("Worker"), "runPolicy: {suspend: maybe}"),
       "spec.runPolicy.suspend: must be true or false"},
      {PtSpec(PtRole("Master"), "elasticPolicy: {}"), "spec.elasticPolicy: the job has no Worker"},
      {elastic("5"), "spec.elasticPolicy: must be an object"},
      {elastic("{minReplicas: 3, maxReplicas: 2}"),
       "spec.elasticPolicy.minReplicas: is more than maxReplicas"},
      {elastic("{minReplicas: 0}"), "spec.elasticPolicy.minReplicas: must be a whole number from 1"},
      {elastic("{rdzvBackend: zeus}"), "spec.elasticPolicy.rdzvBackend: must be one of c10d, etcd, etcd-v2"},
      {elastic("{rdzvPort: 70000}"), "spec.elasticPolicy.rdzvPort: must be"},
      {elastic("{rdzvConf: [{value: x}]}"), "spec.elasticPolicy.rdzvConf[0].key: is missing"},
      {elastic("{standalone: 3}"), "spec.elasticPolicy.standalone: must be true or false"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ParsePt(row.spec).invalid, StartsWith(std::string(row.problem))) << row.spec;
  }
  const std::string long_name(53, 'a');
  EXPECT_EQ(ParsePt(PtSpec(PtRole("Worker")), long_name).invalid, "");
  EXPECT_THAT(
      ParsePt(PtSpec(PtRole("Worker"), "elasticPolicy: {minReplicas: 1, maxReplicas: 101}"), long_name)
          .invalid,
      StartsWith("metadata.name: is too long by 1"))
      << "it may grow to names of three digits";
}

TEST(PyTorchJob, TellsEveryPodItsRankAndWhereRankZeroIs) {
  const CompactJob job =
      DecodedPt(PtSpec(PtRole("Master") + ", " + PtRole("Worker", "replicas: 2"), "nprocPerNode: '4'"));
  const std::vector<std::pair<std::string, std::string>> all = {{"PYTHONUNBUFFERED", "1"},
                                                                {"MASTER_ADDR", "mnist-master-0"},
                                                                {"MASTER_PORT", "23456"},
                                                                {"WORLD_SIZE", "12"},
                                                                {"PET_MASTER_ADDR", "mnist-master-0"},
                                                                {"PET_MASTER_PORT", "23456"},
                                                                {"PET_NPROC_PER_NODE", "4"},
                                                                {"PET_NNODES", "3"}};
  const auto master = VariablesOf(PtPod(job, "master", 0));
  const auto worker = VariablesOf(PtPod(job, "worker", 1));
  EXPECT_THAT(master, IsSupersetOf(all));
  EXPECT_THAT(worker, IsSupersetOf(all));
  EXPECT_THAT(master, IsSupersetOf({Pair("RANK", "0"), Pair("PET_NODE_RANK", "0")}));
  EXPECT_THAT(worker, IsSupersetOf({Pair("RANK", "2"), Pair("PET_NODE_RANK", "2")}));
}

TEST(PyTorchJob, CountsOneProcessOfAPodWhereTorchrunDecidesHowMany) {
  const auto env =
      VariablesOf(PtPod(DecodedPt(PtSpec(PtRole("Master") + ", " + PtRole("Worker"))), "worker", 0));
  EXPECT_THAT(env, IsSupersetOf({Pair("WORLD_SIZE", "2"), Pair("PET_NPROC_PER_NODE", "auto")}));
}

TEST(PyTorchJob, TellsElasticWorkersWhereTheyMeet) {
  const auto env = VariablesOf(PtPod(
      DecodedPt(PtSpec(PtRole("Worker", "replicas: 2"),
                       "elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 100, "
                       "rdzvId: run-7, nProcPerNode: 2, "
                       "rdzvConf: [{key: timeout, value: '900'}, {key: last_call_timeout, value: '5'}]}")),
      "worker", 0));
  EXPECT_THAT(
      env, IsSupersetOf({Pair("PET_RDZV_BACKEND", "c10d"), Pair("PET_RDZV_ENDPOINT", "mnist-worker-0:23456"),
                         Pair("PET_NNODES", "1:3"), Pair("PET_MAX_RESTARTS", "100"),
                         Pair("PET_RDZV_ID", "run-7"), Pair("PET_NPROC_PER_NODE", "2"),
                         Pair("PET_RDZV_CONF", "timeout=900,last_call_timeout=5")}));
  for (const char* name : {"MASTER_ADDR", "RANK", "WORLD_SIZE", "PET_STANDALONE"}) {
    EXPECT_THAT(env, Not(Contains(Pair(name, testing::_)))) << name;
  }
  EXPECT_THAT(VariablesOf(PtPod(DecodedPt(PtSpec(PtRole("Worker"),
                                                 "elasticPolicy: {rdzvBackend: etcd-v2, rdzvHost: etcd, "
                                                 "rdzvPort: 2379, standalone: true}")),
                                "worker", 0)),
              IsSupersetOf({Pair("PET_RDZV_BACKEND", "etcd-v2"), Pair("PET_RDZV_ENDPOINT", "etcd:2379"),
                            Pair("PET_STANDALONE", "")}));
}

TEST(PyTorchJob, LabelsPodsAsTheOriginal) {
  const CompactJob job =
      DecodedPt(PtSpec(PtRole("Master") + ", " + PtRole("Worker", "restartPolicy: ExitCode")));
  const Document pod = PtPod(job, "master", 0);
  EXPECT_EQ(StringAt(pod, {"metadata", "name"}), "mnist-master-0");
  EXPECT_EQ(PrintJson(*Find(pod, {"metadata", "labels"})),
            R"({"training.kubeflow.org/operator-name":"pytorchjob-controller",)"
            R"("training.kubeflow.org/job-name":"mnist","trainyard.dev/job-uid":"0a1b2c3d",)"
            R"("training.kubeflow.org/replica-type":"master","training.kubeflow.org/replica-index":"0",)"
            R"("training.kubeflow.org/job-role":"master"})");
  EXPECT_EQ(StringAt(pod, {"spec", "restartPolicy"}), "OnFailure");
  EXPECT_EQ(PrintJson(*Find(ArrayAt(pod, {"spec", "containers"})->front(), {"ports"})),
            R"([{"name":"pytorchjob-port","containerPort":23456}])");
  const Document worker = PtPod(job, "worker", 0);
  EXPECT_EQ(StringAt(worker, {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(StringAt(worker, {"metadata", "labels", "training.kubeflow.org/job-role"}), "");
  EXPECT_EQ(PyTorchJobKind().FindPlace(*kube::ParseObjectMeta(PrintJson(worker))),
            (reconcile::Place{.job = "mnist", .role = "worker", .index = 0}));
}

TEST(PyTorchJob, ReadsAStatusAsItWroteIt) {
  CompactJob job = DecodedPt(PtSpec(PtRole("Worker"), "elasticPolicy: {maxReplicas: 3}"));
  job.status.roles["Worker"] = {.active = 2, .completed = job::IndexSet::Parse("0").value(), .size = 3};
  job.status.Set(job::State::kRunning, true, "PyTorchJobRunning", "all run", absl::FromUnixSeconds(1));
  const Document object = Object{{"metadata", Object{{"name", "mnist"}}},
                                 {"status", PyTorchJobKind().PrintStatus(job, job.status)}};
  EXPECT_EQ(PyTorchJobKind().Decode(PrintJson(object)).value().status, job.status) << PrintJson(object);
  EXPECT_EQ(StringAt(object, {"status", "replicaStatuses", "Worker", "selector"}),
            "training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name=pytorchjob-controller,"
            "training.kubeflow.org/replica-type=worker");
}

}  // namespace
}  // namespace trainyard::ops
