#include "tests/sim/jobs.h"

#include <utility>
#include <vector>

namespace trainyard::sim {

Object JobMaker::MakeRole(int replicas, std::string_view container) {
  static const std::vector<std::string> policies = {"Always", "OnFailure", "Never", "ExitCode"};
  return {{"replicas", replicas},
          {"restartPolicy", OneOf(policies)},
          {"template",
           Object{{"spec", Object{{"terminationGracePeriodSeconds", 5},
                                  {"containers", Array{Object{{"name", container}, {"image", "x"}}}}}}}}};
}

Object JobMaker::MakeAiRole() {
  static const std::vector<std::string> policies = {"Always",   "OnFailure",  "Never",
                                                    "ExitCode", "OnNodeFail", "OnNodeFailWithExitCode"};
  static const std::vector<std::string> scopes = {"Pod", "Replica", "All"};
  static const std::vector<std::string> ends = {"Any", "Rank0", "All", "None"};
  Object role = MakeRole(1 + static_cast<int>(Below(3)));
  const Object half{{"requests", Object{{"cpu", "500m"}}}};
  MakeObjectAt(role["template"], {"spec"})["containers"] =
      Array{Object{{"name", "aitj-main"}, {"image", "x"}, {"resources", half}}};
  role["restartPolicy"] = OneOf(policies);
  role["restartScope"] = OneOf(scopes);
  if (Chance(40)) role["failPolicy"] = OneOf(ends);
  if (Chance(40)) role["completePolicy"] = OneOf(ends);
  if (Chance(50)) role["restartLimit"] = static_cast<int>(Below(4));
  static const std::vector<std::string> sizes = {"Never", "Manual", "Auto"};
  if (Chance(30)) role["edlPolicy"] = OneOf(sizes);
  if (Chance(20) || role.contains("edlPolicy")) role["maxReplicas"] = 3;
  return role;
}

Object JobMaker::MakeAiSpec(bool gangs) {
  static const std::vector<std::string> ends = {"Any", "Rank0", "All", "None"};
  Object roles{{"trainer", MakeAiRole()}};
  if (Chance(40)) roles["pserver"] = MakeAiRole();
  Object spec{{"replicaSpecs", std::move(roles)},
              {"cleanPodPolicy", Chance(50) ? "All" : "None"},
              {"restartingExitCode", "130, 137-143"},
              {"faultTolerant", Chance(30)}};
  if (Chance(20)) spec["failPolicy"] = OneOf(ends);
  if (Chance(20)) spec["completePolicy"] = OneOf(ends);
  if (gangs && Chance(50)) spec["gang"] = true;
  if (Chance(15)) spec["timeLimit"] = static_cast<int>(30 + Below(600));
  return spec;
}

Object JobMaker::MakePolicies() {
  static const std::vector<std::string> cleans = {"All", "Running", "None"};
  Object policies{{"cleanPodPolicy", OneOf(cleans)}};
  if (Chance(40)) policies["backoffLimit"] = static_cast<int>(Below(5));
  if (Chance(15)) policies["activeDeadlineSeconds"] = static_cast<int>(30 + Below(600));
  return policies;
}

Object JobMaker::MakeTfSpec(bool v1) {
  Object roles{{"Worker", MakeRole(1 + static_cast<int>(Below(3)))}};
  if (Chance(30)) roles["Chief"] = MakeRole(1);
  if (Chance(30)) roles["PS"] = MakeRole(1 + static_cast<int>(Below(2)));
  Object spec = v1 ? Object{{"runPolicy", MakePolicies()}} : MakePolicies();
  spec["tfReplicaSpecs"] = std::move(roles);
  if (v1 && Chance(20)) spec["enableDynamicWorker"] = true;
  if (Chance(15)) spec["successPolicy"] = "AllWorkers";
  return spec;
}

Object JobMaker::MakePyTorchSpec(bool gangs) {
  const bool elastic = Chance(40);
  Object roles;
  if (elastic || Chance(80)) roles["Worker"] = MakeRole(1 + static_cast<int>(Below(3)), "pytorch");
  if (roles.empty() || Chance(60)) roles["Master"] = MakeRole(1, "pytorch");
  Object policies = MakePolicies();
  if (gangs && Chance(50)) policies["schedulingPolicy"] = Object{{"minAvailable", 1 + Below(4)}};
  Object spec{{"pytorchReplicaSpecs", std::move(roles)}, {"runPolicy", std::move(policies)}};
  if (elastic) spec["elasticPolicy"] = Object{{"minReplicas", 1}, {"maxReplicas", 1 + Below(4)}};
  return spec;
}

Object JobMaker::MakeGangSpec(int pods) {
  Object role = MakeRole(pods, "aitj-main");
  const Object whole{{"requests", Object{{"cpu", "1"}}}};
  MakeObjectAt(role["template"], {"spec"})["containers"] =
      Array{Object{{"name", "aitj-main"}, {"image", "x"}, {"resources", whole}}};
  role["restartPolicy"] = "OnFailure";
  return {{"gang", true}, {"cleanPodPolicy", "All"}, {"replicaSpecs", Object{{"trainer", std::move(role)}}}};
}

}  // namespace trainyard::sim
