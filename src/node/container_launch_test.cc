#include "node/container_launch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/plan_testing.h"

namespace trainyard::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ImageFolder, IsAPathAndNeverAReference) {
  EXPECT_EQ(ImageFolder("/srv/app", "/home/u"), "/srv/app");
  EXPECT_EQ(ImageFolder("dir:///srv/app", "/home/u"), "/srv/app");
  EXPECT_EQ(ImageFolder("./app", "/home/u"), "/home/u/app");
  EXPECT_EQ(ImageFolder("../app", "/home/u"), "/home/u/../app");
  EXPECT_EQ(ImageFolder(".", "/home/u"), "/home/u/.");
  for (const char* image : {"python", "python:3.11", "ghcr.io/x/y@sha256:00", "localhost/app", ""}) {
    EXPECT_EQ(ImageFolder(image, "/home/u"), std::nullopt) << image;
  }
}

class LaunchPlans : public testing::Test {
 protected:
  std::variant<Launch, Problem, CannotStart> Plan(std::string_view spec) {
    pod_.emplace(spec);
    return PlanLaunch({.pod = pod_->spec_,
                       .container = pod_->spec_.containers[0],
                       .objects = objects_,
                       .facts = facts_,
                       .machine = machine_,
                       .image = image_,
                       .machine_env = env_,
                       .default_folder = "/work",
                       .volumes_folder = "/pods/u1/volumes",
                       .termination_file = "/pods/u1/termination/main.0"});
  }
  Launch Planned(std::string_view spec) {
    auto plan = Plan(spec);
    if (auto* launch = std::get_if<Launch>(&plan)) return std::move(*launch);
    ADD_FAILURE() << "not launched";
    return {};
  }
  std::string ProblemOf(std::string_view spec) {
    auto plan = Plan(spec);
    if (auto* problem = std::get_if<Problem>(&plan)) return StrCat(problem->reason, ": ", problem->message);
    if (auto* cannot = std::get_if<CannotStart>(&plan)) return StrCat("cannot: ", cannot->message);
    return "";
  }

  std::optional<PlannedPod> pod_;
  ClusterObjects objects_;
  PodFacts facts_{.pod_ip = "127.64.0.1"};
  Machine machine_{.namespaces = "root", .own_pids = true, .bind_filter = true, .uid = 0};
  ImageFacts image_;
  StringMap env_ = {{"PATH", "/usr/bin"}, {"HOME", "/root"}};
};

TEST_F(LaunchPlans, ExpandTheCommandAndItsArguments) {
  const Launch launch =
      Planned(R"j({"containers":[{"name":"main","command":["sh","-c"],"args":["echo $(X) $(PATH) $$(X)"],
                                  "env":[{"name":"X","value":"1"}]}]})j");
  EXPECT_THAT(launch.args, ElementsAre("sh", "-c", "echo 1 $(PATH) $(X)"))
      << "only what is declared is expanded";
  EXPECT_EQ(launch.env.at("X"), "1");
  EXPECT_EQ(launch.env.at("HOME"), "/root");
  EXPECT_EQ(launch.env.at("HOSTNAME"), "p");
  EXPECT_EQ(launch.env.at("TRAINYARD_POD_IP"), "127.64.0.1");
  EXPECT_EQ(launch.cwd, "/work");
}

TEST_F(LaunchPlans, TakeAFolderAsTheImage) {
  image_ = {.folder = "/srv/app", .exists = true, .entry = "/srv/app/entrypoint"};
  Launch launch = Planned(R"({"containers":[{"name":"main","args":["x"]}]})");
  EXPECT_THAT(launch.args, ElementsAre("/srv/app/entrypoint", "x"));
  EXPECT_EQ(launch.cwd, "/srv/app");
  EXPECT_EQ(launch.env.at("PATH"), "/srv/app:/usr/bin");
  launch = Planned(
      R"({"containers":[{"name":"main","command":["run"],"workingDir":"/data","env":[{"name":"PATH","value":"/mine"}]}]})");
  EXPECT_THAT(launch.args, ElementsAre("run"));
  EXPECT_EQ(launch.cwd, "/data");
  EXPECT_EQ(launch.env.at("PATH"), "/mine");
  image_ = {.folder = "/srv/none"};
  EXPECT_EQ(ProblemOf(R"({"containers":[{"name":"main"}]})"),
            "ErrImagePull: image folder /srv/none does not exist on this machine");
}

TEST_F(LaunchPlans, SayThatACommandIsNeededWhereThereIsNoEngine) {
  EXPECT_THAT(
      ProblemOf(R"({"containers":[{"name":"main","image":"nginx","args":["x"]}]})"),
      testing::AllOf(HasSubstr("cannot: no command for container main"), HasSubstr("no container engine"),
                     HasSubstr("image nginx"), HasSubstr("`command:`")));
  image_ = {.folder = "/srv/app", .exists = true};
  EXPECT_THAT(ProblemOf(R"({"containers":[{"name":"main"}]})"), HasSubstr("entrypoint into /srv/app"));
}

TEST_F(LaunchPlans, MountOuterFoldersFirstAndWhatComesFromTheServerReadOnly) {
  const Launch launch = Planned(
      R"j({"containers":[{"name":"main","command":["x"],"env":[{"name":"N","value":"sub"}],"volumeMounts":[
      {"name":"c","mountPath":"/data/deep/conf"},{"name":"e","mountPath":"/data"},
      {"name":"h","mountPath":"/host","readOnly":true},{"name":"e","mountPath":"/s","subPathExpr":"a/$(N)"}]}],
      "volumes":[{"name":"c","configMap":{"name":"c"}},{"name":"e","emptyDir":{}},{"name":"h","hostPath":{"path":"/srv"}}]})j");
  const std::vector<LaunchMount> expected = {
      {.source = "/pods/u1/volumes/e", .target = "/data"},
      {.source = "/srv", .target = "/host", .read_only = true},
      {.source = "/pods/u1/volumes/e/a/sub", .target = "/s", .make_source = true},
      {.source = "/pods/u1/volumes/c", .target = "/data/deep/conf", .read_only = true},
      {.source = "/pods/u1/termination/main.0", .target = "/dev/termination-log"}};
  EXPECT_EQ(launch.mounts, expected);
}

TEST_F(LaunchPlans, KeepASubPathInsideItsVolume) {
  const auto with = [this](std::string_view mount) {
    return ProblemOf(StrCat(
        R"({"containers":[{"name":"main","command":["x"],"volumeMounts":[{"name":"e","mountPath":"/d",)",
        mount, R"(}]}],"volumes":[{"name":"e","emptyDir":{}}]})"));
  };
  EXPECT_THAT(with(R"("subPath":"../../etc")"), HasSubstr("leaves its volume"));
  EXPECT_THAT(with(R"("subPath":"/etc")"), HasSubstr("leaves its volume"));
  EXPECT_THAT(with(R"("subPath":"a/..")"), HasSubstr("leaves its volume"));
  EXPECT_THAT(with(R"j("subPathExpr":"$(NONE)")j"), HasSubstr("needs variable NONE"));
  EXPECT_EQ(with(R"("subPath":"a..b/c")"), "");
}

TEST_F(LaunchPlans, RunAsTheUserThatIsAskedForIfTheyMay) {
  constexpr std::string_view kSpec =
      R"({"securityContext":{"runAsUser":1000,"fsGroup":5,"supplementalGroups":[6]},
      "containers":[{"name":"main","command":["x"],"securityContext":{"allowPrivilegeEscalation":false}}]})";
  const Launch launch = Planned(kSpec);
  EXPECT_EQ(launch.uid, 1000u);
  EXPECT_EQ(launch.gid, 0u);
  EXPECT_THAT(launch.groups, ElementsAre(6u, 5u));
  EXPECT_TRUE(launch.no_new_privileges);
  machine_.uid = 1001;
  EXPECT_THAT(ProblemOf(kSpec),
              HasSubstr("runAsUser 1000 of container main needs root, and this cluster runs as user 1001"));
  machine_.uid = 1000;
  EXPECT_EQ(Planned(kSpec).uid, std::nullopt) << "it is that user already";
}

TEST_F(LaunchPlans, RefuseToRunAsRootWhatMustNot) {
  constexpr std::string_view kSpec =
      R"({"securityContext":{"runAsNonRoot":true},"containers":[{"name":"main","command":["x"]}]})";
  EXPECT_THAT(ProblemOf(kSpec), HasSubstr("CreateContainerConfigError: container has runAsNonRoot"));
  machine_.uid = 1000;
  EXPECT_EQ(ProblemOf(kSpec), "");
}

TEST_F(LaunchPlans, CarryTheWordsOfAMissingReference) {
  EXPECT_EQ(
      ProblemOf(R"({"containers":[{"name":"main","command":["x"],"envFrom":[{"secretRef":{"name":"s"}}]}]})"),
      "CreateContainerConfigError: secret \"s\" not found");
}

std::string Refusal(std::string_view spec, const Machine& machine = {.namespaces = "user"}) {
  return FindRefusal(PlannedPod(spec).spec_, machine);
}

TEST(FindRefusal, NamesWhatThisNodeCannotDo) {
  EXPECT_EQ(Refusal(R"({"containers":[{"name":"m"}]})"), "");
  EXPECT_THAT(Refusal(R"({"containers":[{"name":"m","livenessProbe":{"grpc":{"port":1}}}]})"),
              HasSubstr("livenessProbe of container m"));
  EXPECT_THAT(
      Refusal(R"({"containers":[{"name":"m","readinessProbe":{"httpGet":{"port":1,"scheme":"HTTPS"}}}]})"),
      HasSubstr("HTTPS"));
  EXPECT_THAT(
      Refusal(
          R"({"containers":[{"name":"m"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]})"),
      HasSubstr("volume v is of kind persistentVolumeClaim"));
}

TEST(FindRefusal, RefusesMountsWhereThereAreNoMountNamespacesUnlessNothingMoves) {
  const Machine bare{.namespaces = "none"};
  EXPECT_THAT(
      Refusal(
          R"({"containers":[{"name":"m","volumeMounts":[{"name":"e","mountPath":"/d"}]}],"volumes":[{"name":"e","emptyDir":{}}]})",
          bare),
      HasSubstr("volume e cannot be seen at /d in container m"));
  EXPECT_EQ(
      Refusal(
          R"({"containers":[{"name":"m","volumeMounts":[{"name":"h","mountPath":"/d"}]}],"volumes":[{"name":"h","hostPath":{"path":"/d"}}]})",
          bare),
      "");
}

TEST(PickMachineEnv, LeavesSecretsBehind) {
  const char* const env[] = {"PATH=/bin", "LC_ALL=C", "AWS_SECRET_ACCESS_KEY=x",
                             "NOEQUALS",  "HOME=",    nullptr};
  EXPECT_EQ(PickMachineEnv(env), (StringMap{{"PATH", "/bin"}, {"LC_ALL", "C"}, {"HOME", ""}}));
}

}  // namespace
}  // namespace trainyard::node
