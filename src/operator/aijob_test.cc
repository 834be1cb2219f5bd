#include "operator/aijob.h"

#include <cstdint>
#include <limits>

#include "base/text.h"
#include "base/yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/status_document.h"
#include "job/telling.h"
#include "operator/aijob_spec.h"
#include "placement/gang.h"
#include "reconcile/labels.h"

namespace trainyard::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Document AiYaml(std::string_view text) { return ParseYaml(text).value().front(); }

constexpr std::string_view kTemplate = "template: {spec: {containers: [{name: aitj-main, image: x}]}}";
std::string Role(std::string_view name, std::string_view more = "") {
  return StrCat(name, ": {", kTemplate, more.empty() ? "" : ", ", more, "}");
}
Document Job(std::string_view roles, std::string_view more = "", std::string_view name = "mnist",
             std::string_view metadata = "") {
  return AiYaml(StrCat("{apiVersion: elasticdeeplearning.ai/v1, kind: AITrainingJob, metadata: {name: ", name,
                       ", namespace: team, uid: 0a1b2c3d-0000, resourceVersion: \"7\", generation: 1",
                       metadata, "}, spec: {replicaSpecs: {", roles, "}", more.empty() ? "" : ", ", more,
                       "}}"));
}
AiJobSpec Parse(const Document& job) { return ParseAiJobSpec(job, {"nvidia.com/gpu"}); }

reconcile::CompactJob Decoded(const Document& job) { return AiJobKind().Decode(PrintJson(job)).value(); }
Document Pod(const reconcile::CompactJob& job, const job::CreatePod& create) {
  return ParseJson(AiJobKind().NewMaker(job)->MakePod(create)).value();
}
std::string PodEnv(const Document& pod, std::string_view name, std::string_view list = "containers") {
  std::string value = "(none)";
  for (const Document& variable : *ArrayAt(ArrayAt(pod, {"spec", list})->front(), {"env"})) {
    if (StringAt(variable, {"name"}) == name) value = StringAt(variable, {"value"});  // the last one counts
  }
  return value;
}

// ---- the spec

TEST(AiJobSpec, HasTheDefaultsOfTheKind) {
  const AiJobSpec read = Parse(Job(Role("trainer")));
  ASSERT_EQ(read.invalid, "");
  EXPECT_EQ(read.spec.clean, job::CleanPolicy::kAll);
  EXPECT_EQ(read.spec.fail, job::EndPolicy::kAny);
  EXPECT_EQ(read.spec.complete, job::EndPolicy::kAll);
  EXPECT_FALSE(read.spec.fault_tolerant || read.spec.time_limit || read.spec.asked);
  ASSERT_EQ(read.spec.roles.size(), 1U);
  const job::RoleSpec& role = read.spec.roles[0];
  EXPECT_EQ(role.replicas, 1);
  EXPECT_EQ(role.restart.policy, job::RestartPolicy::kNever);
  EXPECT_EQ(role.restart.in_place, job::InPlace::kNothing);
  EXPECT_EQ(role.scope, job::RestartScope::kJob);
  EXPECT_EQ(role.fail, job::EndPolicy::kAny);
  EXPECT_EQ(role.complete, job::EndPolicy::kAll);
  EXPECT_EQ(role.size, job::SizePolicy::kPlain);
  EXPECT_FALSE(role.restart_limit || role.accelerated);
}

TEST(AiJobSpec, ReadsEveryField) {
  const AiJobSpec read = Parse(Job(
      Role("Trainer",
           "replicas: 3, minReplicas: 2, maxReplicas: 5, edlPolicy: Manual, restartLimit: 4, restartPolicy: "
           "OnNodeFailWithExitCode, restartScope: Replica, failPolicy: Rank0, completePolicy: None"),
      "restartingExitCode: \"137, 128-130\", cleanPodPolicy: None, failPolicy: All, completePolicy: Any, "
      "timeLimit: 60, faultTolerant: true, priority: high, frameworkType: paddle, schedulerName: mine"));
  ASSERT_EQ(read.invalid, "");
  EXPECT_EQ(read.spec.clean, job::CleanPolicy::kNone);
  EXPECT_EQ(read.spec.fail, job::EndPolicy::kAll);
  EXPECT_EQ(read.spec.complete, job::EndPolicy::kAny);
  EXPECT_EQ(read.spec.time_limit, absl::Minutes(1));
  EXPECT_TRUE(read.spec.fault_tolerant);
  const job::RoleSpec& role = read.spec.roles[0];
  EXPECT_EQ(role.name, "Trainer");
  EXPECT_EQ(role.slug, "trainer");
  EXPECT_EQ(role.replicas, 3);
  EXPECT_EQ(role.least, 2);
  EXPECT_EQ(role.most, 5);
  EXPECT_EQ(role.size, job::SizePolicy::kManual);
  EXPECT_EQ(role.restart_limit, 4);
  EXPECT_EQ(role.restart.policy, job::RestartPolicy::kOnNodeFailWithExitCode);
  EXPECT_EQ(role.restart.codes->Print(), "137,128-130");
  EXPECT_EQ(role.scope, job::RestartScope::kRole);
  EXPECT_EQ(role.fail, job::EndPolicy::kRank0);
  EXPECT_EQ(role.complete, job::EndPolicy::kNone);
}

TEST(AiJobSpec, TakesOneExitCodeForATextThoughYamlDoesNot) {
  EXPECT_EQ(
      Parse(Job(Role("t", "restartPolicy: ExitCode"), "restartingExitCode: 137")).spec.roles[0].restart.codes,
      job::ExitCodes(137, 137));
}

TEST(AiJobSpec, KnowsWhoAsksForAccelerators) {
  const auto accelerated = [](std::string_view resources) {
    return Parse(Job(StrCat("t: {template: {spec: {containers: [{name: aitj-a, image: x, resources: {",
                            resources, "}}]}}}")))
        .spec.roles[0]
        .accelerated;
  };
  EXPECT_TRUE(accelerated("limits: {nvidia.com/gpu: 1}"));
  EXPECT_TRUE(accelerated("requests: {nvidia.com/gpu: \"2\"}"));
  EXPECT_FALSE(accelerated("limits: {nvidia.com/gpu: 0}"));
  EXPECT_FALSE(accelerated("limits: {cpu: 1}"));
}

TEST(AiJobSpec, TakesTheEndThatAnAnnotationAsksFor) {
  const auto asked = [](std::string_view annotations) {
    return Parse(Job(Role("t"), "", "mnist", StrCat(", annotations: {", annotations, "}"))).spec.asked;
  };
  EXPECT_EQ(asked("Preempted: why not"), (job::AskedEnd{job::State::kPreempted, "why not"}));
  EXPECT_EQ(asked("Failed: \"\""), (job::AskedEnd{job::State::kFailed, ""}));
  EXPECT_EQ(asked("NodeFail: x"), (job::AskedEnd{job::State::kNodeFail, "x"}));
  EXPECT_EQ(asked("nodefailed: x"), (job::AskedEnd{job::State::kNodeFail, "x"}));
  EXPECT_EQ(asked("preempted: x"), (job::AskedEnd{job::State::kPreempted, "x"}));
  EXPECT_EQ(asked("Succeed: x, Timeout: x, mine: x"), std::nullopt);
}

TEST(AiJobSpec, SaysWhatIsWrongAndWhere) {
  const std::pair<Document, std::string_view> rows[] = {
      {AiYaml("{metadata: {name: x}}"), "spec: is missing"},
      {AiYaml("{metadata: {name: x}, spec: []}"), "spec: must be an object"},
      {AiYaml("{metadata: {name: x}, spec: {}}"), "spec.replicaSpecs: is missing"},
      {Job("trainer: null"), "spec.replicaSpecs.trainer: is empty: it needs a template"},
      {Job(Role("t", "replicas: -1")),
       "spec.replicaSpecs.t.replicas: must be a whole number from 0 to 100000, not -1"},
      {Job(Role("t", "replicas: 0")), "spec.replicaSpecs: there is no pod to run: all have 0 replicas"},
      {Job(Role("t", "edlPolicy: Manual, maxReplicas: 0")), "spec.replicaSpecs: there is no pod to run"},
      {Job(Role("t", "edlPolicy: Auto, minReplicas: 0, maxReplicas: 0")),
       "spec.replicaSpecs: there is no pod"},
      {Job(Role("t", "replicas: 100000")), "spec.replicaSpecs: the addresses of 100000 pods come to "},
      {Job(Role("t", "edlPolicy: Manual, maxReplicas: 6000"), "faultTolerant: true"),
       "spec.faultTolerant: members of up to 5000 pods can be told of, not 6000"},
      {Job(Role("t", "restartPolicy: Sometimes")),
       "spec.replicaSpecs.t.restartPolicy: must be one of Never, Always"},
      {Job(Role("t", "restartScope: Node")),
       "spec.replicaSpecs.t.restartScope: must be one of All, Replica, Pod"},
      {Job(Role("t", "failPolicy: Rank1")), "spec.replicaSpecs.t.failPolicy: must be one of"},
      {Job(Role("t", "restartLimit: -1")), "spec.replicaSpecs.t.restartLimit: must be a whole number"},
      {Job(Role("t", "edlPolicy: auto")),
       "spec.replicaSpecs.t.edlPolicy: must be one of \"\", Auto, Manual, Never"},
      {Job(Role("t", "edlPolicy: Auto")),
       "spec.replicaSpecs.t.maxReplicas: is missing: edlPolicy Auto needs it"},
      {Job(Role("t", "minReplicas: 3, maxReplicas: 2")),
       "spec.replicaSpecs.t.minReplicas: is more than maxReplicas"},
      {Job(Role("t"), "restartingExitCode: \"1,x\""), "spec.restartingExitCode: 'x' is no exit code"},
      {Job(Role("t"), "cleanPodPolicy: Running"), "spec.cleanPodPolicy: must be one of All, None"},
      {Job(Role("t"), "timeLimit: -5"), "spec.timeLimit: must be a whole number"},
      {Job(Role("t"), "faultTolerant: \"yes\""), "spec.faultTolerant: must be true or false"},
      {Job(Role("t"), "priority: \"a b\""), "spec.priority: becomes a label, and 'a b' "},
      {Job(Role("a.b")), "spec.replicaSpecs.a.b: names of pods contain it in lower case, and it "},
      {Job(Role("a_b")), "spec.replicaSpecs.a_b: names of pods contain it in lower case, and it "},
      {Job(Role("Trainer") + ", " + Role("trainer")),
       "spec.replicaSpecs.trainer: and Trainer are the same as variables: TRAINER_INSTANCES"},
      {Job(Role("TrainingJob")), "spec.replicaSpecs.TrainingJob: its variables would be TRAININGJOB_PORTS"},
      {Job("t: {template: {spec: {containers: [{name: main, image: x}]}}}"),
       "spec.replicaSpecs.t.template.spec.containers: there is no container whose name begins with aitj-"},
      {Job("t: {template: {spec: {}}}"),
       "spec.replicaSpecs.t.template.spec.containers: there is no container"},
      {Job("t: {}"), "spec.replicaSpecs.t.template: is missing"},
      {Job("t: {template: {spec: {containers: [{name: aitj-a, image: x, ports: [{name: aitj-p, "
           "containerPort: 0}]}]}}}"),
       "spec.replicaSpecs.t.template.spec.containers[0].ports[0].containerPort: must be"},
      {Job(Role("t"), "", "1abc"), "metadata.name: '1abc' "},
      {Job(Role("t", "replicas: 101"), "", std::string(58, 'a')), "metadata.name: is too long by 1: "},
      {Job(Role("t", "replicas: 1, edlPolicy: Manual, maxReplicas: 101"), "", std::string(58, 'a')),
       "metadata.name: is too long by 1: "},
  };
  for (const auto& [job, message] : rows) EXPECT_THAT(Parse(job).invalid, StartsWith(std::string(message)));
  EXPECT_EQ(Parse(Job(Role("t", "replicas: 100"), "", std::string(58, 'a'))).invalid, "");
}

TEST(AiJobSpec, OfAJobThatHasBegunMayAskForASizeThatCannotBe) {
  const auto begun = [](Document job) {
    MakeObjectAt(job, {"status"})["startTime"] = "2024-05-01T10:00:00Z";
    MakeObjectAt(job, {"status", "replicaStatuses"})["worker"] = Object();
    return Parse(job);
  };
  EXPECT_EQ(begun(Job(Role("worker", "replicas: 0"))).invalid, "");
  EXPECT_EQ(
      begun(Job(Role("worker", "replicas: 6000, maxReplicas: 4, edlPolicy: Manual"), "faultTolerant: true"))
          .invalid,
      "");
  // What kubectl scale leaves in a job that has no trainers.
  const AiJobSpec stray = begun(Job(Role("worker") + ", trainer: {replicas: 3}"));
  EXPECT_EQ(stray.invalid, "");
  EXPECT_EQ(stray.spec.roles.size(), 1U);
  EXPECT_NE(begun(Job("worker: {replicas: 3}")).invalid, "");
}

TEST(VariablePrefix, IsALegalName) {
  EXPECT_EQ(VariablePrefix("trainer"), "TRAINER");
  EXPECT_EQ(VariablePrefix("my-Trainer-2"), "MY_TRAINER_2");
  EXPECT_EQ(VariablePrefix("2nd"), "_2ND");
}

// ---- objects

TEST(AiJob, TellsEveryContainerOfTheOthers) {
  const reconcile::CompactJob job =
      Decoded(Job("Trainer: {replicas: 2, template: {spec: {initContainers: [{name: i, image: x}], "
                  "containers: [{name: aitj-a, "
                  "image: x, env: [{name: TRAININGJOB_NAME, value: mine}], ports: [{name: aitj-1, "
                  "containerPort: 4444}, {name: web, "
                  "containerPort: 80}, {name: aitj-2, containerPort: 5555}]}, {name: side, image: x}]}}}, " +
                  Role("p-server")));
  const Document pod = Pod(job, {.role = "trainer", .index = 1, .attempt = 2});
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"TRAINER_INSTANCES", "mnist-trainer-0.team,mnist-trainer-1.team"},
      {"TRAINER_INSTANCES_NUM", "2"},
      {"TRAINER_PORTS", "4444,5555"},
      {"TRAINER_PORTS_NUM", "2"},
      {"TRAINER_HOSTS",
       "mnist-trainer-0.team:4444,mnist-trainer-0.team:5555,mnist-trainer-1.team:4444,mnist-trainer-1.team:"
       "5555"},
      {"TRAINER_HOSTS_NUM", "4"},
      {"P_SERVER_INSTANCES", "mnist-p-server-0.team"},
      {"P_SERVER_INSTANCES_NUM", "1"},
      {"P_SERVER_PORTS", ""},
      {"P_SERVER_PORTS_NUM", "0"},
      {"P_SERVER_HOSTS", ""},
      {"P_SERVER_HOSTS_NUM", "0"},
      {"TRAININGJOB_REPLICA_NAME", "trainer"},
      {"TRAININGJOB_REPLICA_TYPE", "Trainer"},
      {"TRAININGJOB_REPLICA_INDEX", "1"},
      {"TRAININGJOB_REPLICA_RESTARTCOUNT", "0"},
      {"TRAININGJOB_SERVICE", "mnist-trainer-1.team"},
      {"TRAININGJOB_NAME", "mnist"},
      {"TRAININGJOB_NAMESPACE", "team"},
      {"TRAININGJOB_Name", "$(TRAININGJOB_NAME)"},
      {"TRAININGJOB_REPLICA_Index", "$(TRAININGJOB_REPLICA_INDEX)"},
      {"TRAINER_Instances", "$(TRAINER_INSTANCES)"},
      {"TRAINER_INSTANCES_Num", "$(TRAINER_INSTANCES_NUM)"},
  };
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const auto& [name, value] : expected)
      EXPECT_EQ(PodEnv(pod, name, list), value) << list << " " << name;
  }
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_PORTS"), "4444,5555");
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_PORTS", "initContainers"), "");
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_MEMBERS"), "(none)");
}

TEST(AiJob, CountsRestartsForThePodsThatItMakes) {
  reconcile::CompactJob job = Decoded(Job(Role("trainer")));
  job.status.roles["trainer"].restarts = 3;
  const Document pod = Pod(job, {.role = "trainer"});
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_REPLICA_RESTARTCOUNT"), "3");
  EXPECT_EQ(StringAt(pod, {"metadata", "labels", "RestartCount"}), "3");
}

TEST(AiJob, KnowsOfAsManyAsThereAreNow) {
  reconcile::CompactJob job = Decoded(Job(Role("trainer", "replicas: 2")));
  job.status.roles["trainer"].size = 3;
  EXPECT_EQ(PodEnv(Pod(job, {.role = "trainer"}), "TRAINER_INSTANCES_NUM"), "3");
  const reconcile::CompactJob first =
      Decoded(Job(Role("trainer", "edlPolicy: Auto, minReplicas: 2, maxReplicas: 4")));
  EXPECT_EQ(PodEnv(Pod(first, {.role = "trainer"}), "TRAINER_INSTANCES_NUM"), "2");
}

TEST(AiJob, LabelsItsPodsSoThatItsOwnWinOverTheTemplatesAndTheJobs) {
  const reconcile::CompactJob job = Decoded(
      Job("t: {template: {metadata: {labels: {a: template, b: template, PodRole: stolen}}, spec: "
          "{containers: [{name: "
          "aitj-a, image: x}]}}}",
          "priority: high, frameworkType: paddle", "mnist", ", labels: {b: job, c: job, JobName: stolen}"));
  const Document pod = Pod(job, {.role = "t", .index = 0});
  EXPECT_EQ(
      PrintJson(*Find(pod, {"metadata", "labels"})),
      R"({"GroupName":"elasticdeeplearning.ai","TrainingJobName":"mnist","trainyard.dev/job-uid":"0a1b2c3d-0000",)"
      R"("TrainingJobReplicaName":"t","TrainingJobReplicaIndex":"0","JobName":"mnist","PodRole":"t",)"
      R"("RestartCount":"0","priority":"high","FrameworkType":"paddle","a":"template","b":"template","c":"job"})");
  EXPECT_EQ(StringAt(pod, {"metadata", "name"}), "mnist-t-0");
  EXPECT_EQ(
      PrintJson(*Find(pod, {"metadata", "ownerReferences"})),
      R"([{"apiVersion":"elasticdeeplearning.ai/v1","kind":"AITrainingJob","name":"mnist","uid":"0a1b2c3d-0000",)"
      R"("controller":true,"blockOwnerDeletion":true}])");
}

TEST(AiJob, DecidesItselfWhetherAPodRunsAgain) {
  const reconcile::CompactJob job =
      Decoded(Job("t: {template: {spec: {restartPolicy: Always, schedulerName: theirs, containers: [{name: "
                  "aitj-a, image: x}]}}}",
                  "schedulerName: mine"));
  const Document pod = Pod(job, {.role = "t"});
  EXPECT_EQ(StringAt(pod, {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(StringAt(pod, {"spec", "schedulerName"}), "mine");
}

TEST(AiJob, LetsPodsOfTheHostsNetworkResolveNamesOfTheCluster) {
  const auto policy = [](std::string_view spec) {
    const reconcile::CompactJob job =
        Decoded(Job(StrCat("t: {template: {spec: {", spec, "containers: [{name: aitj-a, image: x}]}}}")));
    return std::string(StringAt(Pod(job, {.role = "t"}), {"spec", "dnsPolicy"}, "(unset)"));
  };
  EXPECT_EQ(policy("hostNetwork: true, "), "ClusterFirstWithHostNet");
  EXPECT_EQ(policy("hostNetwork: true, dnsPolicy: Default, "), "Default");
  EXPECT_EQ(policy(""), "(unset)");
}

TEST(AiJob, KeepsAPodOffNodesWhateverElseItWants) {
  const reconcile::CompactJob job = Decoded(Job(Role("t")));
  const Document pod = Pod(job, {.role = "t", .avoid = {"n1", "n2"}});
  EXPECT_EQ(
      PrintJson(*Find(pod, {"spec", "affinity"})),
      R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":)"
      R"([{"key":"metadata.name","operator":"NotIn","values":["n1"]},)"
      R"({"key":"metadata.name","operator":"NotIn","values":["n2"]}]}]}}})");
  const reconcile::CompactJob choosy = Decoded(
      Job("t: {template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
          "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: "
          "b, operator: "
          "Exists}]}]}}}, containers: [{name: aitj-a, image: x}]}}}"));
  const Document other = Pod(choosy, {.role = "t", .avoid = {"n1"}});
  const Array* terms =
      ArrayAt(other, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                      "nodeSelectorTerms"});
  ASSERT_EQ(terms->size(), 2U);
  for (const Document& term : *terms) {
    EXPECT_NE(Find(term, {"matchExpressions"}), nullptr);
    EXPECT_EQ(ArrayAt(term, {"matchFields"})->size(), 1U) << "any one of the terms would do";
  }
}

TEST(AiJob, MakesAHeadlessServiceWithThePortsThatCount) {
  const reconcile::CompactJob job = Decoded(
      Job("t: {template: {spec: {containers: [{name: aitj-a, image: x, ports: [{name: aitj-x, containerPort: "
          "1}, {name: aitj-y, "
          "containerPort: 2}]}, {name: aitj-b, image: x, ports: [{name: aitj-z, containerPort: 1}]}]}}}"));
  const Document service =
      ParseJson(AiJobKind().NewMaker(job)->MakeService({.role = "t", .index = 0})).value();
  EXPECT_EQ(StringAt(service, {"metadata", "name"}), "mnist-t-0");
  EXPECT_EQ(StringAt(service, {"spec", "clusterIP"}), "None");
  EXPECT_EQ(PrintJson(*Find(service, {"spec", "ports"})),
            R"([{"name":"aitj-1","port":1,"targetPort":1},{"name":"aitj-2","port":2,"targetPort":2}])");
}

TEST(AiJob, NamesTheListOfMembersAndWhereItIsMounted) {
  const reconcile::CompactJob job =
      Decoded(Job("t: {template: {spec: {volumes: [{name: v, configMap: {name: mnist-members}}], containers: "
                  "[{name: aitj-a, image: x, "
                  "volumeMounts: [{name: v, mountPath: /etc/members}]}, {name: side, image: x}]}}}",
                  "faultTolerant: true"));
  const Document pod = Pod(job, {.role = "t"});
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_MEMBERS"), "mnist-members");
  EXPECT_EQ(PodEnv(pod, "TRAININGJOB_MEMBERS_FILE"), "/etc/members/members");
}

TEST(AiJob, TellsPodsOfALargeJobOfEachOtherInFiles) {
  const auto lists = [](int replicas) {
    return Decoded(
        Job(StrCat("t: {replicas: ", replicas,
                   ", template: {spec: {containers: [{name: aitj-a, image: x, ports: [{name: aitj-p, "
                   "containerPort: 7}]}]}}}")));
  };
  EXPECT_FALSE(lists(1'000).spec.config_in_file);
  const reconcile::CompactJob job = lists(10'000);
  EXPECT_EQ(job.invalid, "");
  ASSERT_TRUE(job.spec.config_in_file);
  const Document pod = Pod(job, {.role = "t", .index = 7});
  EXPECT_EQ(PodEnv(pod, "T_INSTANCES_FILE"), "/var/run/trainyard/config/T_INSTANCES");
  EXPECT_EQ(PodEnv(pod, "T_HOSTS_FILE"), "/var/run/trainyard/config/T_HOSTS");
  EXPECT_EQ(PodEnv(pod, "T_INSTANCES_NUM"), "10000");
  EXPECT_LT(PrintJson(pod).size(), 10'000U);
  const Object data = AiJobKind().NewMaker(job)->MakeConfigData();
  EXPECT_THAT(std::string(Text(data.at("T_HOSTS"))), testing::HasSubstr("mnist-t-9999.team:7"));
  EXPECT_LT(PrintJson(data).size(), std::size_t{1} << 20);
  EXPECT_THAT(lists(40'000).invalid,
              testing::StartsWith("spec.replicaSpecs: the addresses of 40000 pods come to "));
}

// ---- the status

job::JobStatus FullStatus() {
  const absl::Time time = absl::FromUnixSeconds(1'714'557'600);
  job::JobStatus status{.observed_generation = 3,
                        .ready = 1,
                        .wanted = 4,
                        .start_time = time,
                        .run_time = time + absl::Seconds(1),
                        .completion_time = time + absl::Seconds(2),
                        .last_reconcile_time = time + absl::Seconds(3),
                        .members = {.epoch = 5, .fingerprint = "abc"},
                        .restarting_role = "Trainer"};
  status.ending = job::Ending{.state = job::State::kSucceeded, .reason = "R", .message = "m"};
  job::RoleStatus& role = status.roles["Trainer"];
  role = {.pending = 1, .scheduled = 2, .restarting = 3, .active = 4, .succeeded = 5, .failed = 6};
  role.completed = job::IndexSet::Parse("0,2-3").value();
  role.given_up = job::IndexSet::Parse("1").value();
  role.node_failed = true;
  role.size = 7;
  role.barrier = job::RestartScope::kRole;
  role.stuck[4] = time;
  role.attempts = {{0, 1}, {1, 1}};
  role.restarts = 2;
  role.seen = {{1, 2}};
  role.last_cause = "why";
  role.last_time = time;
  status.Set(job::State::kRunning, false, "R1", "m1", time);
  status.Set(job::State::kSucceeded, true, "R2", "m2", time);
  status.progress = R"({"phase":"Training","epoch":2})";
  return status;
}

TEST(AiJobStatus, IsReadAsItIsPrinted) {
  const Document printed = job::PrintStatus(FullStatus(), job::kAiTrainingJobStatus);
  EXPECT_EQ(job::ParseStatus(&printed, job::kAiTrainingJobStatus), FullStatus());
  EXPECT_EQ(job::ParseStatus(nullptr, job::kAiTrainingJobStatus), job::JobStatus());
}

TEST(AiJobStatus, HasTheFieldsOfTheOriginal) {
  const Document status = job::PrintStatus(FullStatus(), job::kAiTrainingJobStatus);
  EXPECT_EQ(StringAt(status, {"phase"}), "Succeed");
  EXPECT_EQ(IntAt(status, {"RestartCount", "Trainer"}), 2);
  EXPECT_EQ(StringAt(status, {"RestartReplicaName"}), "Trainer");
  EXPECT_EQ(StringAt(status, {"startTime"}), "2024-05-01T10:00:00Z");
  EXPECT_EQ(StringAt(status, {"startRunningTime"}), "2024-05-01T10:00:01Z");
  EXPECT_EQ(StringAt(status, {"endTime"}), "2024-05-01T10:00:02Z");
  const Document& condition = ArrayAt(status, {"conditions"})->at(1);
  EXPECT_EQ(
      PrintJson(condition),
      R"({"type":"Succeed","status":"True","reason":"R2","message":"m2","lastProbeTime":"2024-05-01T10:00:00Z",)"
      R"("lastTransitionTime":"2024-05-01T10:00:00Z"})");
  for (const std::string_view count :
       {"pending", "scheduled", "restarting", "active", "succeeded", "failed"}) {
    EXPECT_TRUE(IntAt(status, {"replicaStatuses", "Trainer", count})) << count;
  }
}

TEST(AiJobStatus, LeavesOutWhatSomebodyElseHasWritten) {
  const Document forged = AiYaml(
      "{phase: 7, conditions: [{type: Odd, status: \"True\"}, 3], replicaStatuses: {t: {size: -4, "
      "completedIndexes: x, "
      "creationErrors: {a: b, \"-1\": \"2024-05-01T10:00:00Z\"}, restartScope: Odd}}, restarts: {t: "
      "{attempts: \"0:9999999999\"}}, "
      "ending: {phase: Running}, members: {epoch: -3}}");
  const job::JobStatus status = job::ParseStatus(&forged, job::kAiTrainingJobStatus);
  EXPECT_TRUE(status.conditions.empty());
  EXPECT_FALSE(status.ending);
  EXPECT_EQ(status.members.epoch, 0);
  EXPECT_EQ(status.roles.at("t"), job::RoleStatus());
}

TEST(AiJobStatus, HasNoCounterThatCannotBeCountedOn) {
  const Document forged = AiYaml(
      "{restarts: {t: {count: 9223372036854775807, seen: \"0:9999999999\"}}, "
      "members: {epoch: 9223372036854775807}}");
  const job::JobStatus status = job::ParseStatus(&forged, job::kAiTrainingJobStatus);
  constexpr auto kHalf = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_LT(status.roles.at("t").restarts, kHalf);
  EXPECT_TRUE(status.roles.at("t").seen.empty());
  EXPECT_LT(status.members.epoch, kHalf);
}

// ---- gangs

TEST(AiJobSpec, LetsGroupsSayOtherwiseThanTheirJobOfGangs) {
  const auto gangs = [](const Document& job) {
    const AiJobSpec read = Parse(job);
    EXPECT_EQ(read.invalid, "");
    std::vector<bool> out;
    for (const job::RoleSpec& role : read.spec.roles) out.push_back(role.gang);
    return out;
  };
  const std::string a = Role("a");
  EXPECT_EQ(gangs(Job(StrCat(a, ", ", Role("b")))), (std::vector<bool>{false, false}));
  EXPECT_EQ(gangs(Job(StrCat(a, ", ", Role("b", "gang: true")))), (std::vector<bool>{false, true}));
  EXPECT_EQ(gangs(Job(StrCat(a, ", ", Role("b", "gang: false")), "gang: true")),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(Parse(Job(Role("a", "gang: 3"))).invalid.find("spec.replicaSpecs.a.gang"), 0U);
}

TEST(AiJobMaker, LetsPodsWaitForTheirGang) {
  const reconcile::CompactJob job = Decoded(Job(Role("trainer")));
  const auto made = [&](job::GangScheduler gang) { return Pod(job, {.role = "trainer", .gang = gang}); };
  const Document alone = made(job::GangScheduler::kNone);
  EXPECT_EQ(StringAt(alone, {"metadata", "labels", placement::kPodGroupLabel}), "");
  EXPECT_EQ(Find(alone, {"spec", "schedulingGates"}), nullptr);
  EXPECT_EQ(
      StringAt(made(job::GangScheduler::kCoscheduling), {"metadata", "labels", placement::kPodGroupLabel}),
      "mnist-aitrainingjob");
  const Document volcano = made(job::GangScheduler::kVolcano);
  EXPECT_EQ(StringAt(volcano, {"metadata", "annotations", reconcile::kVolcanoGroupAnnotation}),
            "mnist-aitrainingjob");
  EXPECT_EQ(StringAt(volcano, {"spec", "schedulerName"}), "volcano");
  const Document gated = made(job::GangScheduler::kGates);
  const Array* gates = ArrayAt(gated, {"spec", "schedulingGates"});
  ASSERT_NE(gates, nullptr);
  EXPECT_EQ(StringAt(gates->front(), {"name"}), reconcile::kGangGate);
}

TEST(AiJobStatus, KeepsWhenAGangTriesAgain) {
  job::JobStatus status;
  status.gang_returns = 2;
  status.gang_retry = absl::FromUnixSeconds(1'700'000'000);
  const Document printed = AiJobKind().PrintStatus({}, status);
  const job::JobStatus read = job::ParseStatus(&printed, job::kAiTrainingJobStatus);
  EXPECT_EQ(read.gang_returns, 2);
  EXPECT_EQ(read.gang_retry, status.gang_retry);
}

}  // namespace
}  // namespace trainyard::ops
