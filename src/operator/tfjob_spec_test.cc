#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operator/tfjob.h"
#include "operator/tfjob_testing.h"

namespace trainyard::ops {
namespace {

using testing::StartsWith;

ParsedSpec Parse(std::string_view yaml, std::string_view name = "mnist",
                 std::string_view version = "v1alpha2") {
  const Document spec = Yaml(yaml);
  return ParseTfJobSpec(TfDialect(version), {"team", std::string(name)}, &spec);
}

constexpr std::string_view kTfTemplate = "{template: {spec: {containers: [{name: tensorflow, image: x}]}}}";
std::string RoleSpec(std::string_view name, std::string_view more = "") {
  std::string text = std::string(name) + ": " + std::string(kTfTemplate);
  if (!more.empty()) text.insert(text.rfind('}'), ", " + std::string(more));
  return text;
}
std::string Spec(std::string_view roles, std::string_view more = "") {
  return "{tfReplicaSpecs: {" + std::string(roles) + "}" + (more.empty() ? "" : ", " + std::string(more)) +
         "}";
}

TEST(TfJobSpec, HasTheDefaultsOfTheKind) {
  const ParsedSpec spec = Parse(Spec(RoleSpec("Worker")));
  ASSERT_EQ(spec.invalid, "");
  ASSERT_EQ(spec.spec.roles.size(), 1U);
  EXPECT_EQ(spec.spec.roles[0].replicas, 1);
  EXPECT_EQ(spec.spec.roles[0].restart.policy, job::RestartPolicy::kAlways);
  EXPECT_EQ(spec.spec.clean, job::CleanPolicy::kRunning);
  EXPECT_FALSE(spec.spec.ttl || spec.spec.deadline || spec.spec.restart_limit || spec.spec.suspend);
}

TEST(TfJobSpec, ReadsTypesInAnyLetterCaseAndUnderTheirOldNames) {
  const ParsedSpec spec = Parse(Spec(RoleSpec("pS") + ", " + RoleSpec("WORKER") + ", " + RoleSpec("master") +
                                     ", " + RoleSpec("evaluator")));
  ASSERT_EQ(spec.invalid, "");
  std::vector<std::string> names;
  for (const job::RoleSpec& role : spec.spec.roles) names.push_back(role.name + "/" + role.slug);
  EXPECT_THAT(names, testing::ElementsAre("Chief/chief", "Worker/worker", "PS/ps", "Eval/eval"));
}

TEST(TfJobSpec, LetsTheChiefDecideOrWorkerZeroOrAllWorkers) {
  using enum job::EndPolicy;
  const auto ends = [](const ParsedSpec& spec) {
    std::vector<job::EndPolicy> out;
    for (const job::RoleSpec& role : spec.spec.roles) out.push_back(role.complete);
    return out;
  };
  EXPECT_THAT(ends(Parse(Spec(RoleSpec("Chief") + ", " + RoleSpec("Worker") + ", " + RoleSpec("PS")))),
              testing::ElementsAre(kAll, kNone, kNone));
  EXPECT_THAT(ends(Parse(Spec(RoleSpec("Worker") + ", " + RoleSpec("PS")))),
              testing::ElementsAre(kRank0, kNone));
  EXPECT_THAT(ends(Parse(Spec(RoleSpec("Chief", "replicas: 0") + ", " + RoleSpec("Worker")))),
              testing::ElementsAre(kNone, kRank0));
  EXPECT_THAT(ends(Parse(Spec(RoleSpec("Chief") + ", " + RoleSpec("Worker"), "successPolicy: AllWorkers"))),
              testing::ElementsAre(kAll, kAll));
}

TEST(TfJobSpec, ReadsEveryPolicy) {
  const ParsedSpec spec =
      Parse(Spec(RoleSpec("Worker", "restartPolicy: ExitCode, replicas: 3"),
                 "cleanPodPolicy: None, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 60, "
                 "backoffLimit: 5, suspend: true"));
  ASSERT_EQ(spec.invalid, "");
  EXPECT_EQ(spec.spec.roles[0].restart.policy, job::RestartPolicy::kExitCode);
  EXPECT_EQ(spec.spec.clean, job::CleanPolicy::kNone);
  EXPECT_EQ(spec.spec.ttl, absl::ZeroDuration());
  EXPECT_EQ(spec.spec.deadline, absl::Minutes(1));
  EXPECT_EQ(spec.spec.restart_limit, 5);
  EXPECT_TRUE(spec.spec.suspend);
}

std::string Template(std::string_view text) {
  return StrCat("{tfReplicaSpecs: {Worker: {template: ", text, "}}}");
}
std::string Container(std::string_view fields) {
  return Template(StrCat("{spec: {containers: [{name: tensorflow, image: x, ", fields, "}]}}"));
}

TEST(TfJobSpec, QuotesNoMoreOfAWrongValueThanIsNeededToKnowIt) {
  const std::string huge(100'000, 'z');
  EXPECT_LT(Parse(Spec(RoleSpec("Worker"), "cleanPodPolicy: " + huge)).invalid.size(), 300U);
  EXPECT_LT(Parse(Spec(RoleSpec("Worker") + ", " + RoleSpec(huge))).invalid.size(), 300U);
}

TEST(TfJobSpec, NamesTheFieldThatIsWrong) {
  const std::string long_name(50, 'a');
  struct Row {
    std::string spec;
    std::string_view problem;
    std::string_view name = "mnist";
  };
  const Row rows[] = {
      {"null", "spec: is missing"},
      {"[]", "spec: must be an object"},
      {"{}", "spec.tfReplicaSpecs: is missing"},
      {"{tfReplicaSpecs: null}", "spec.tfReplicaSpecs: is missing"},
      {"{tfReplicaSpecs: {}}", "spec.tfReplicaSpecs: is missing"},
      {"{tfReplicaSpecs: {Worker: null}}", "spec.tfReplicaSpecs.Worker: is empty"},
      {"{tfReplicaSpecs: {Worker: {}}}", "spec.tfReplicaSpecs.Worker.template: is missing"},
      {"{tfReplicaSpecs: {Worker: {template: {spec: {}}}}}",
       "spec.tfReplicaSpecs.Worker.template.spec.containers: there is no container"},
      {"{tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow}]}}}}}",
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: is missing"},
      {"{tfReplicaSpecs: {worker: {template: {spec: {containers: [{name: tf, image: x}]}}}}}",
       "spec.tfReplicaSpecs.worker.template.spec.containers: there is no container named tensorflow"},
      {Spec(RoleSpec("Chief") + ", " + RoleSpec("Master")),
       "spec.tfReplicaSpecs.Master: is the same as Chief"},
      {Spec(RoleSpec("Chief", "replicas: 2")),
       "spec.tfReplicaSpecs.Chief.replicas: there can be only one chief"},
      {Spec(RoleSpec("Worker", "replicas: -1")),
       "spec.tfReplicaSpecs.Worker.replicas: must be a whole number"},
      {Spec(RoleSpec("Worker", "replicas: two")),
       "spec.tfReplicaSpecs.Worker.replicas: must be a whole number"},
      {Spec(RoleSpec("Worker", "replicas: 9999999999")),
       "spec.tfReplicaSpecs.Worker.replicas: must be a whole number"},
      {Spec(RoleSpec("Worker", "restartPolicy: Sometimes")),
       "spec.tfReplicaSpecs.Worker.restartPolicy: must be one of"},
      {Spec(RoleSpec("Worker"), "cleanPodPolicy: Maybe"), "spec.cleanPodPolicy: must be one of"},
      {Spec(RoleSpec("Worker"), "successPolicy: Any"), "spec.successPolicy: must be one of"},
      {Spec(RoleSpec("Worker"), "backoffLimit: -1"), "spec.backoffLimit: must be a whole number"},
      {Spec(RoleSpec("Worker"), "suspend: maybe"), "spec.suspend: must be true or false"},
      {Spec(RoleSpec("Worker") + ", " + RoleSpec("Trainer")), "spec.tfReplicaSpecs.Trainer: is unknown"},
      {Spec(RoleSpec("PS")), "spec.tfReplicaSpecs: the job needs a Chief or a Worker"},
      {Spec(RoleSpec("Worker", "replicas: 0")), "spec.tfReplicaSpecs: the job needs a Chief or a Worker"},
      {Spec(RoleSpec("Worker", "replicas: 101")), "metadata.name: is too long by 4", long_name},
      {Spec(RoleSpec("Worker")), "metadata.name: 'a.b'", "a.b"},
      {Template("{metadata: x, spec: {containers: [{name: tensorflow, image: x}]}}"),
       "spec.tfReplicaSpecs.Worker.template.metadata: must be an object, not \"x\""},
      {Template("{metadata: {labels: [a]}, spec: {containers: [{name: tensorflow, image: x}]}}"),
       "spec.tfReplicaSpecs.Worker.template.metadata.labels: must be an object"},
      {Template("{metadata: {annotations: {a: 1}}, spec: {containers: [{name: tensorflow, image: x}]}}"),
       "spec.tfReplicaSpecs.Worker.template.metadata.annotations.a: must be a text, not 1"},
      {Container("env: {LR: '0.1'}"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env: must be a list"},
      {Container("ports: 80"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports: must be a list"},
      {Container("ports: [{name: tfjob-port, containerPort: 0}]"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort: must be a whole "
       "number"},
      {Container("ports: [{name: tfjob-port}]"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort: must be a whole "
       "number"},
      {Container("ports: [{name: tfjob-port, containerPort: 1}, {name: tfjob-port, containerPort: 2}]"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[1].name: there can be only one port"},
      {Template("{spec: {containers: [{name: tensorflow, image: x}, {name: tensorflow, image: x}]}}"),
       "spec.tfReplicaSpecs.Worker.template.spec.containers[1].name: there can be only one container"},
      {Spec(RoleSpec("Worker")), "metadata.name: '1a'", "1a"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Parse(row.spec, row.name).invalid, StartsWith(std::string(row.problem))) << row.spec;
  }
}

TEST(TfPort, IsThatOfTheNamedPortOrTheDefault) {
  const auto port = [](std::string_view ports) {
    return FindPort(
        TfDialect("v1alpha2"),
        Yaml("{template: {spec: {containers: [{name: other, ports: [{name: tfjob-port, containerPort: 1}]}, "
             "{name: tensorflow, ports: " +
             std::string(ports) + "}]}}}"));
  };
  EXPECT_EQ(port("[{name: web, containerPort: 80}, {name: tfjob-port, containerPort: 3333}]"), 3333);
  EXPECT_EQ(port("[{name: web, containerPort: 80}]"), 2222);
  EXPECT_EQ(port("null"), 2222);
}

TEST(ParseTfJobSpec, RefusesMorePodsThanAConfigMapCanNameAndShowsTheSum) {
  const auto workers = [](int replicas) {
    return Parse(Spec(RoleSpec("Worker", StrCat("replicas: ", replicas))));
  };
  EXPECT_FALSE(workers(2'000).spec.config_in_file);
  EXPECT_TRUE(workers(10'000).spec.config_in_file);
  EXPECT_EQ(workers(10'000).invalid, "");
  EXPECT_THAT(workers(100'000).invalid,
              StartsWith("spec.tfReplicaSpecs: the addresses of 100000 pods come to 4"));
}

TEST(ParseTfJobSpec, RefusesPodsThatTogetherAreTooLargeAndShowsTheSum) {
  const std::string large(200'000, 'x');
  const auto workers = [&](int replicas) {
    return Parse(Spec(StrCat("Worker: {replicas: ", replicas,
                             ", template: {spec: {containers: [{name: tensorflow, image: ", large, "}]}}}")))
        .invalid;
  };
  EXPECT_EQ(workers(1'000), "");
  EXPECT_THAT(workers(10'000), StartsWith("spec.tfReplicaSpecs.Worker.replicas: 10000 pods of 195"));
}

ParsedSpec ParseV1(std::string_view yaml, std::string_view name = "mnist") { return Parse(yaml, name, "v1"); }

TEST(TfJobV1Spec, HasTheDefaultsOfTheOriginal) {
  const ParsedSpec spec = ParseV1(Spec(RoleSpec("Worker")));
  ASSERT_EQ(spec.invalid, "");
  EXPECT_EQ(spec.spec.version, "v1");
  EXPECT_FALSE(spec.spec.names_with_uid);
  EXPECT_EQ(spec.spec.roles[0].restart.policy, job::RestartPolicy::kNever);
  EXPECT_EQ(spec.spec.clean, job::CleanPolicy::kNone);
  EXPECT_EQ(spec.spec.gang_min_available, std::nullopt);
}

TEST(TfJobV1Spec, KeepsMasterAndEvaluatorUnderTheirOwnNames) {
  const ParsedSpec spec =
      ParseV1(Spec(RoleSpec("master") + ", " + RoleSpec("Worker") + ", " + RoleSpec("Evaluator")));
  ASSERT_EQ(spec.invalid, "");
  std::vector<std::string> names;
  for (const job::RoleSpec& role : spec.spec.roles) names.push_back(role.name + "/" + role.slug);
  EXPECT_THAT(names, testing::ElementsAre("Master/master", "Worker/worker", "Evaluator/evaluator"));
  EXPECT_EQ(spec.spec.roles[0].complete, job::EndPolicy::kAll);
  EXPECT_EQ(spec.spec.roles[1].complete, job::EndPolicy::kNone);
}

TEST(TfJobV1Spec, ReadsTheRunPolicy) {
  const ParsedSpec spec = ParseV1(Spec(RoleSpec("Worker", "replicas: 3"),
                                       "runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 7, "
                                       "activeDeadlineSeconds: 60, backoffLimit: 5, "
                                       "suspend: true, managedBy: kubeflow.org/training-operator, "
                                       "schedulingPolicy: {minAvailable: 2, queue: q}}"));
  ASSERT_EQ(spec.invalid, "");
  EXPECT_EQ(spec.spec.clean, job::CleanPolicy::kAll);
  EXPECT_EQ(spec.spec.ttl, absl::Seconds(7));
  EXPECT_EQ(spec.spec.deadline, absl::Minutes(1));
  EXPECT_EQ(spec.spec.restart_limit, 5);
  EXPECT_TRUE(spec.spec.suspend);
  EXPECT_EQ(spec.spec.gang_min_available, 2);
}

TEST(TfJobV1Spec, LetsDynamicWorkersFailAlone) {
  const ParsedSpec spec =
      ParseV1(Spec(RoleSpec("Worker", "replicas: 3") + ", " + RoleSpec("PS"), "enableDynamicWorker: true"));
  ASSERT_EQ(spec.invalid, "");
  EXPECT_EQ(spec.spec.roles[0].fail, job::EndPolicy::kNone);
  EXPECT_EQ(spec.spec.roles[1].fail, job::EndPolicy::kAny);
}

TEST(TfJobV1Spec, NamesTheFieldThatIsWrong) {
  struct Row {
    std::string spec;
    std::string_view problem;
  };
  const Row rows[] = {
      {Spec(RoleSpec("Worker"), "cleanPodPolicy: All"),
       "spec.cleanPodPolicy: the job follows v1, which has it in spec.runPolicy"},
      {Spec(RoleSpec("Worker"), "suspend: true"), "spec.suspend: the job follows v1"},
      {Spec(RoleSpec("Worker"), "runPolicy: 5"), "spec.runPolicy: must be an object"},
      {Spec(RoleSpec("Worker"), "runPolicy: {cleanPodPolicy: Al}"),
       "spec.runPolicy.cleanPodPolicy: must be one of None, Running, All"},
      {Spec(RoleSpec("Worker"), "runPolicy: {backoffLimit: -1}"), "spec.runPolicy.backoffLimit: must be"},
      {Spec(RoleSpec("Worker"), "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"),
       "spec.runPolicy.managedBy: must be kubeflow.org/training-operator"},
      {Spec(RoleSpec("Worker"), "runPolicy: {schedulingPolicy: {minAvailable: 0}}"),
       "spec.runPolicy.schedulingPolicy.minAvailable: must be a whole number from 1"},
      {Spec(RoleSpec("Chief") + ", " + RoleSpec("Master")),
       "spec.tfReplicaSpecs.Master: is the same as Chief"},
      {Spec(RoleSpec("Eval")),
       "spec.tfReplicaSpecs.Eval: is unknown: there are Chief, Master, Worker, PS and"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ParseV1(row.spec).invalid, StartsWith(std::string(row.problem))) << row.spec;
  }
  EXPECT_THAT(Parse(Spec(RoleSpec("Worker"), "runPolicy: {suspend: true}")).invalid,
              StartsWith("spec.runPolicy: the job follows v1alpha2"));
  EXPECT_THAT(Parse(Spec(RoleSpec("Worker"), "enableDynamicWorker: true")).invalid,
              StartsWith("spec.enableDynamicWorker: the job follows v1alpha2"));
}

TEST(TfDialectOf, IsTheOneThatTheJobWasCreatedThrough) {
  struct Row {
    std::string_view job;
    std::string_view version;
  };
  const Row rows[] = {
      {"{apiVersion: kubeflow.org/v1, spec: {dialect: v1alpha2}, metadata: {resourceVersion: '7'}}",
       "v1alpha2"},
      {"{apiVersion: kubeflow.org/v1alpha2, spec: {dialect: v1}, metadata: {resourceVersion: '7'}}", "v1"},
      // A manifest follows its own, and what was stored before there was a v1 follows v1alpha2.
      {"{apiVersion: kubeflow.org/v1, spec: {}}", "v1"},
      {"{apiVersion: kubeflow.org/v1alpha2, spec: {}}", "v1alpha2"},
      {"{apiVersion: kubeflow.org/v1, spec: {}, metadata: {resourceVersion: '7'}}", "v1alpha2"},
      {"{spec: {}, metadata: {resourceVersion: '7'}}", "v1alpha2"},
  };
  for (const Row& row : rows) EXPECT_EQ(TfDialectOf(Yaml(row.job)).version, row.version) << row.job;
}

}  // namespace
}  // namespace trainyard::ops
