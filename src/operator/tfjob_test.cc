#include "operator/tfjob.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operator/tfjob_testing.h"

namespace trainyard::ops {
namespace {

using testing::ElementsAre;

reconcile::CompactJob Decoded(const Object& job) { return TfJobKind().Decode(PrintJson(job)).value(); }

Document Pod(const reconcile::CompactJob& job, std::string_view role, int index, int attempt = 0) {
  return ParseJson(TfJobKind().NewMaker(job)->MakePod(
                       {.role = std::string(role), .index = index, .attempt = attempt}))
      .value();
}

std::string EnvOf(const Document& container, std::string_view name) {
  std::string value = "(none)";
  if (const Array* env = ArrayAt(container, {"env"})) {
    for (const Document& variable : *env) {
      if (StringAt(variable, {"name"}) == name) value = StringAt(variable, {"value"});  // the last one counts
    }
  }
  return value;
}
const Document& ContainerOf(const Document& pod, std::size_t i = 0) {
  return ArrayAt(pod, {"spec", "containers"})->at(i);
}

TEST(TfJob, TellsEveryTaskWhereTheOthersAre) {
  const reconcile::CompactJob job =
      Decoded(TfJob({{"Worker", TfRole(2)}, {"PS", TfRole(1)}, {"Eval", TfRole(1)}}));
  EXPECT_EQ(
      EnvOf(ContainerOf(Pod(job, "worker", 1)), "TF_CONFIG"),
      R"({"cluster":{"worker":["mnist-worker-0-0a1b2.team.svc:2222","mnist-worker-1-0a1b2.team.svc:2222"],)"
      R"("ps":["mnist-ps-0-0a1b2.team.svc:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_THAT(EnvOf(ContainerOf(Pod(job, "eval", 0)), "TF_CONFIG"),
              testing::EndsWith(R"("task":{"type":"evaluator","index":0}})"));
}

TEST(TfJob, TellsAJobOfOneItsClusterToo) {
  EXPECT_EQ(
      EnvOf(ContainerOf(Pod(Decoded(TfJob({{"Chief", TfRole(1)}})), "chief", 0)), "TF_CONFIG"),
      R"({"cluster":{"chief":["mnist-chief-0-0a1b2.team.svc:2222"]},"task":{"type":"chief","index":0}})");
}

TEST(TfJob, LeavesTheUsersPodAsItIsAndAddsItsOwn) {
  Object role = TfRole(2, "ExitCode");
  role["template"] = Yaml(R"(
metadata: {labels: {mine: yes-it-is, tf_job_name: stolen}, annotations: {a: b}}
spec:
  restartPolicy: Always
  nodeSelector: {gpu: big}
  initContainers: [{name: init, image: i}]
  containers:
  - {name: sidecar, image: s}
  - {name: tensorflow, image: tf, args: [--steps, "5"], env: [{name: A, value: "1"}], ports: [{name: web, containerPort: 80}]}
)");
  const Document pod = Pod(Decoded(TfJob({{"Worker", std::move(role)}})), "worker", 1, 3);
  EXPECT_EQ(StringAt(pod, {"metadata", "name"}), "mnist-worker-1-0a1b2");
  EXPECT_EQ(StringAt(pod, {"metadata", "namespace"}), "team");
  EXPECT_EQ(PrintJson(*Find(pod, {"metadata", "labels"})),
            R"({"group_name":"kubeflow.org","tf_job_name":"mnist",)"
            R"("trainyard.dev/job-uid":"0a1b2c3d-0000-4000-8000-000000000000","tf-replica-type":"worker",)"
            R"("tf-replica-index":"1","mine":"yes-it-is"})");
  EXPECT_EQ(PrintJson(*Find(pod, {"metadata", "annotations"})), R"({"a":"b","trainyard.dev/attempt":"3"})");
  EXPECT_EQ(PrintJson(*Find(pod, {"metadata", "ownerReferences"})),
            R"([{"apiVersion":"kubeflow.org/v1alpha2","kind":"TFJob","name":"mnist",)"
            R"("uid":"0a1b2c3d-0000-4000-8000-000000000000","controller":true,"blockOwnerDeletion":true}])");
  EXPECT_EQ(StringAt(pod, {"spec", "restartPolicy"}), "Never") << "it is restarted by us";
  EXPECT_EQ(StringAt(pod, {"spec", "nodeSelector", "gpu"}), "big");
  for (std::size_t i : {0U, 1U}) {
    EXPECT_NE(EnvOf(ContainerOf(pod, i), "TF_CONFIG"), "(none)") << i;
    EXPECT_EQ(EnvOf(ContainerOf(pod, i), "TRAINYARD_ATTEMPT"), "3") << i;
  }
  EXPECT_EQ(EnvOf(ContainerOf(pod, 1), "A"), "1");
  EXPECT_EQ(PrintJson(*Find(ContainerOf(pod, 1), {"args"})), R"(["--steps","5"])");
  EXPECT_EQ(PrintJson(*Find(ContainerOf(pod, 1), {"ports"})),
            R"([{"name":"web","containerPort":80},{"name":"tfjob-port","containerPort":2222}])");
  EXPECT_EQ(Find(ContainerOf(pod, 0), {"ports"}), nullptr);
}

TEST(TfJob, MakesAHeadlessServiceForEachPod) {
  const reconcile::CompactJob job = Decoded(TfJob({{"Worker", TfRole(2)}}));
  const Document service =
      ParseJson(TfJobKind().NewMaker(job)->MakeService({.role = "worker", .index = 1})).value();
  EXPECT_EQ(StringAt(service, {"metadata", "name"}), "mnist-worker-1-0a1b2");
  EXPECT_EQ(StringAt(service, {"spec", "clusterIP"}), "None");
  EXPECT_TRUE(BoolAt(service, {"spec", "publishNotReadyAddresses"}));
  EXPECT_EQ(PrintJson(*Find(service, {"spec", "selector"})),
            PrintJson(*Find(service, {"metadata", "labels"})));
  EXPECT_EQ(PrintJson(*Find(service, {"spec", "ports"})),
            R"([{"name":"tfjob-port","port":2222,"targetPort":2222}])");
}

TEST(TfJob, TellsPodsOfALargeJobOfEachOtherInAFile) {
  const reconcile::CompactJob job = Decoded(TfJob({{"Worker", TfRole(10'000)}, {"PS", TfRole(100)}}));
  ASSERT_EQ(job.invalid, "");
  ASSERT_TRUE(job.spec.config_in_file);
  const Document pod = Pod(job, "worker", 7, 0);
  EXPECT_EQ(EnvOf(ContainerOf(pod, 0), "TF_CONFIG"), "(none)");
  EXPECT_EQ(EnvOf(ContainerOf(pod, 0), "TF_CONFIG_FILE"), "/var/run/trainyard/config/TF_CONFIG");
  EXPECT_EQ(EnvOf(ContainerOf(pod, 0), "TF_CONFIG_TASK"), R"({"type":"worker","index":7})");
  EXPECT_EQ(PrintJson(*Find(pod, {"spec", "volumes"})),
            R"([{"name":"trainyard-config","configMap":{"name":"mnist-config-0a1b2"}}])");
  EXPECT_EQ(PrintJson(*Find(ContainerOf(pod, 0), {"volumeMounts"})),
            R"([{"name":"trainyard-config","mountPath":"/var/run/trainyard/config","readOnly":true}])");
  EXPECT_LT(PrintJson(pod).size(), 2'000U);
  const Object data = TfJobKind().NewMaker(job)->MakeConfigData();
  EXPECT_LT(PrintJson(data).size(), std::size_t{1} << 20) << "a ConfigMap holds it";
  const Document config = ParseJson(Text(data.at("TF_CONFIG"))).value();
  EXPECT_EQ(ArrayAt(config, {"cluster", "worker"})->size(), 10'000);
  EXPECT_EQ(Text(ArrayAt(config, {"cluster", "ps"})->back()), "mnist-ps-99-0a1b2.team.svc:2222");
}

TEST(TfJob, ReadsAnyObjectHoweverBadItIs) {
  for (const std::string_view rest :
       {R"("spec":null)", R"("spec":5)", R"("status":[])", R"("spec":{"tfReplicaSpecs":7})",
        R"("status":{"conditions":5,"restarts":[],"tfReplicaStatuses":"x"})"}) {
    const auto job =
        TfJobKind().Decode(R"({"metadata":{"name":"x","namespace":"y"},)" + std::string(rest) + "}");
    ASSERT_TRUE(job.ok()) << rest;
    EXPECT_NE(job->invalid, "") << rest;
  }
  EXPECT_FALSE(TfJobKind().Decode("{").ok());
}

TEST(DecodeJob, KeepsTheLastValidSpecOfAJobWhoseEditIsNotValid) {
  const TfJobKind kind;
  Object object = TfJob({{"Worker", TfRole(2)}});
  const auto known = std::make_shared<const reconcile::CompactJob>(Decoded(object));
  object["spec"].as_object()["cleanPodPolicy"] = "Al";
  const auto find = [&](const kube::ObjectKey& key) {
    EXPECT_EQ(key.Str(), "team/mnist");
    return known;
  };
  const reconcile::CompactJob edited = reconcile::DecodeJob(kind, PrintJson(object), find).value();
  EXPECT_EQ(edited.invalid, "");
  EXPECT_THAT(edited.edit_problem, testing::StartsWith("spec.cleanPodPolicy: must be one of"));
  EXPECT_EQ(edited.spec, known->spec);

  // Another operator knows it from the status alone.
  job::JobStatus status;
  status.start_time = absl::FromUnixSeconds(1'700'000'000);
  status.spec_problem = job::SpecProblem{.message = edited.edit_problem,
                                         .since = absl::FromUnixSeconds(1'700'000'000),
                                         .last_valid = edited.spec_text};
  object["status"] = kind.PrintStatus(edited, status);
  const auto unknown = [](const kube::ObjectKey&) { return std::shared_ptr<const reconcile::CompactJob>(); };
  const reconcile::CompactJob restarted = reconcile::DecodeJob(kind, PrintJson(object), unknown).value();
  EXPECT_EQ(restarted.spec, known->spec);
  EXPECT_EQ(restarted.edit_problem, edited.edit_problem);
  EXPECT_EQ(restarted.status.spec_problem, status.spec_problem);
  EXPECT_EQ(restarted.status.Current(), nullptr) << "it is no state";

  object.erase("status");
  EXPECT_THAT(reconcile::DecodeJob(kind, PrintJson(object), unknown).value().invalid,
              testing::StartsWith("spec.cleanPodPolicy"));
}

TEST(TfJob, DropsTheTemplatesOfAJobThatHasEnded) {
  Object job = TfJob({{"Worker", TfRole(1)}});
  EXPECT_NE(Decoded(job).spec_text, "");
  job["status"] = Object{{"conditions", Array{Object{{"type", "Succeeded"}, {"status", "True"}}}}};
  EXPECT_EQ(Decoded(job).spec_text, "");
}

TEST(TfJob, ReadsAStatusAsItWroteIt) {
  const absl::Time then = absl::FromUnixSeconds(1'700'000'000);
  job::JobStatus status{.observed_generation = 3,
                        .ready = 2,
                        .wanted = 4,
                        .start_time = then,
                        .completion_time = then + absl::Seconds(9),
                        .last_reconcile_time = then + absl::Seconds(5)};
  job::RoleStatus& worker = status.roles["Worker"];
  worker = {.active = 2,
            .succeeded = 1,
            .failed = 3,
            .completed = job::IndexSet::Parse("0,2-3").value(),
            .attempts = {{1, 2}},
            .restarts = 5,
            .seen = {{1, 4}},
            .disruptions = 1,
            .last_cause = "worker-1 \"fell\"",
            .last_time = then};
  status.roles["PS"].active = 1;
  status.Set(job::State::kRunning, true, "TFJobRunning", "all run", then);
  status.Set(job::State::kRestarting, false, "TFJobRestarting", "it was so", then);
  Object job = TfJob({{"Worker", TfRole(1)}});
  job["status"] = TfJobKind().PrintStatus(Decoded(job), status);
  EXPECT_EQ(Decoded(job).status, status) << PrintJson(job["status"]);
  EXPECT_EQ(StringAt(job["status"], {"ready"}), "2/4");
  EXPECT_EQ(IntAt(job["status"], {"restartCount"}), 5);
}

TEST(TfJob, KnowsItsObjectsByTheLabelsOfTheOriginal) {
  const auto place = [](std::string_view labels) {
    const auto meta =
        kube::ParseObjectMeta(R"({"metadata":{"name":"x","labels":)" + std::string(labels) + "}}");
    return TfJobKind().FindPlace(*meta);
  };
  EXPECT_EQ(place(R"({"tf_job_name":"mnist","tf-replica-type":"worker","tf-replica-index":"2"})"),
            (reconcile::Place{.job = "mnist", .role = "worker", .index = 2}));
  EXPECT_EQ(place(R"({"tf_job_name":"mnist","tf-replica-type":"worker","tf-replica-index":"two"})"),
            std::nullopt);
  EXPECT_EQ(place(R"({"tf_job_name":"mnist"})"), std::nullopt);
}

// ---- v1

Object TfJobV1(Object roles, Object more = {}) {
  Object job = TfJob(std::move(roles));
  job["apiVersion"] = "kubeflow.org/v1";
  Object& spec = job["spec"].as_object();
  spec["dialect"] = "v1";
  for (const auto& member : more) spec[member.key()] = member.value();
  return job;
}

TEST(TfJobV1, TellsTheContainerThatWorksWhereTheOthersAre) {
  Object worker = TfRole(2);
  worker["template"] =
      Yaml("{spec: {containers: [{name: sidecar, image: s}, {name: tensorflow, image: tf}]}}");
  const CompactJob job =
      Decoded(TfJobV1({{"Worker", std::move(worker)}, {"PS", TfRole(1)}, {"Evaluator", TfRole(1)}}));
  const Document pod = Pod(job, "worker", 1);
  EXPECT_EQ(EnvOf(ContainerOf(pod, 0), "TF_CONFIG"), "(none)");
  EXPECT_EQ(EnvOf(ContainerOf(pod, 1), "TF_CONFIG"),
            R"({"cluster":{"worker":["mnist-worker-0.team.svc:2222","mnist-worker-1.team.svc:2222"],)"
            R"("ps":["mnist-ps-0.team.svc:2222"],"evaluator":["mnist-evaluator-0.team.svc:2222"]},)"
            R"("task":{"type":"worker","index":1},"environment":"cloud"})");
}

TEST(TfJobV1, TellsAJobOfOnePodNothing) {
  EXPECT_EQ(EnvOf(ContainerOf(Pod(Decoded(TfJobV1({{"Worker", TfRole(1)}})), "worker", 0)), "TF_CONFIG"),
            "(none)");
}

TEST(TfJobV1, TellsDynamicWorkersOfThemselvesAndTheParameterServers) {
  const CompactJob job =
      Decoded(TfJobV1({{"Worker", TfRole(2)}, {"PS", TfRole(2)}}, {{"enableDynamicWorker", true}}));
  EXPECT_EQ(
      EnvOf(ContainerOf(Pod(job, "worker", 1)), "TF_CONFIG"),
      R"({"cluster":{"worker":{"1":"mnist-worker-1.team.svc:2222"},)"
      R"("ps":["mnist-ps-0.team.svc:2222","mnist-ps-1.team.svc:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(EnvOf(ContainerOf(Pod(job, "ps", 1)), "TF_CONFIG"),
            R"({"cluster":{"worker":{},"ps":["mnist-ps-1.team.svc:2222"]},"task":{"type":"ps","index":1}})");
}

TEST(TfJobV1, NamesAndLabelsPodsAsTheOriginal) {
  const CompactJob job = Decoded(TfJobV1({{"Worker", TfRole(2)}, {"PS", TfRole(1)}}));
  const Document pod = Pod(job, "worker", 0);
  EXPECT_EQ(StringAt(pod, {"metadata", "name"}), "mnist-worker-0");
  EXPECT_EQ(StringAt(ArrayAt(pod, {"metadata", "ownerReferences"})->front(), {"apiVersion"}),
            "kubeflow.org/v1");
  const Document& labels = *Find(pod, {"metadata", "labels"});
  for (const auto& [label, value] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"job-name", "mnist"},
                                                                  {"operator-name", "tfjob-controller"},
                                                                  {"replica-type", "worker"},
                                                                  {"replica-index", "0"},
                                                                  {"job-role", "master"}}) {
    EXPECT_EQ(StringAt(labels, {"training.kubeflow.org/" + std::string(label)}), value) << label;
  }
  EXPECT_EQ(StringAt(Pod(job, "worker", 1), {"metadata", "labels", "training.kubeflow.org/job-role"}), "");
  EXPECT_EQ(TfJobKind().FindPlace(*kube::ParseObjectMeta(PrintJson(pod))),
            (reconcile::Place{.job = "mnist", .role = "worker", .index = 0}));
}

TEST(TfJobV1, WritesItsStatusForReadersOfBothVersions) {
  const absl::Time then = absl::FromUnixSeconds(1'700'000'000);
  job::JobStatus status;
  status.start_time = then;
  status.roles["Worker"] = {.active = 2, .given_up = job::IndexSet::Parse("1").value(), .size = 3};
  status.Set(job::State::kCreated, true, "TFJobCreated", "all exist", then);
  status.Set(job::State::kRunning, true, "TFJobRunning", "all run", then);
  Object object = TfJobV1({{"Worker", TfRole(3)}});
  object["status"] = TfJobKind().PrintStatus(Decoded(object), status);
  const Document& printed = object["status"];
  EXPECT_EQ(IntAt(printed, {"replicaStatuses", "Worker", "active"}), 2);
  EXPECT_EQ(*Find(printed, {"replicaStatuses"}), *Find(printed, {"tfReplicaStatuses"}));
  EXPECT_EQ(StringAt(printed, {"replicaStatuses", "Worker", "selector"}),
            "training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name=tfjob-controller,"
            "training.kubeflow.org/replica-type=worker");
  const Array& conditions = *ArrayAt(printed, {"conditions"});
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(StringAt(conditions[0], {"type"}), "Created");
  EXPECT_EQ(StringAt(conditions[0], {"status"}), "True") << "it was accepted, and stays so";
  EXPECT_EQ(StringAt(conditions[1], {"type"}), "Running");
  EXPECT_EQ(Decoded(object).status, status) << "and Running is the current state";
}

TEST(TfJobV1, ReadsEveryStatusAsItWroteIt) {
  const absl::Time then = absl::FromUnixSeconds(1'700'000'000);
  std::vector<job::JobStatus> statuses(5);
  statuses[0].Set(job::State::kCreated, false, "TFJobCreating", "0 of 2 pods exist", then);
  statuses[1].Set(job::State::kCreated, false, "FailedCreate", "no quota", then);
  statuses[2].Set(job::State::kCreated, true, "TFJobCreated", "all exist", then);
  statuses[3] = statuses[2];
  statuses[3].Set(job::State::kSuspended, true, "TFJobSuspended", "it rests", then);
  statuses[4] = statuses[3];
  statuses[4].Set(job::State::kSuspended, false, "TFJobResumed", "it goes on", then);
  statuses[4].Set(job::State::kCreated, false, "TFJobCreating", "0 of 2 pods exist", then);
  for (const job::JobStatus& status : statuses) {
    Object object = TfJobV1({{"Worker", TfRole(2)}});
    object["status"] = TfJobKind().PrintStatus(Decoded(object), status);
    EXPECT_EQ(Decoded(object).status, status) << PrintJson(object["status"]);
    for (const Document& condition : *ArrayAt(object["status"], {"conditions"})) {
      if (StringAt(condition, {"type"}) != "Created") continue;
      EXPECT_EQ(StringAt(condition, {"status"}), "True") << PrintJson(object["status"]);
    }
  }
}

}  // namespace
}  // namespace trainyard::ops
