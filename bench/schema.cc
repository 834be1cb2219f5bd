// What it costs to bring one object in line with its schema, and to build the OpenAPI documents.
#include "apiserver/schema/builtin_validation.h"
#include "apiserver/schema/computed_defaults.h"
#include "apiserver/schema/kind_table.h"
#include "apiserver/schema/openapi.h"
#include "base/check.h"
#include "benchmark/benchmark.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"mnist-worker-0","namespace":"default",
  "labels":{"app":"mnist","tf-replica-type":"worker","tf-replica-index":"0"},"annotations":{"a.example/b":"c"},
  "ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"mnist","uid":"1234","controller":true,"blockOwnerDeletion":true}]},
  "spec":{"restartPolicy":"Never","containers":[{"name":"tensorflow","image":"tf/tf:2.11","command":["python","/train.py"],"args":["--steps=100","--batch=32"],
  "env":[{"name":"TF_CONFIG","value":"{\"cluster\":{}}"},{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"X","value":"1"}],
  "ports":[{"containerPort":2222,"name":"tfjob-port"}],"resources":{"limits":{"cpu":"4","memory":"8Gi","nvidia.com/gpu":"1"},"requests":{"cpu":"2"}},
  "volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"conf","mountPath":"/conf","readOnly":true}],
  "livenessProbe":{"httpGet":{"path":"/healthz","port":2222},"periodSeconds":5}}],
  "volumes":[{"name":"data","emptyDir":{}},{"name":"conf","configMap":{"name":"conf"}}],
  "nodeSelector":{"pool":"gpu"},"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]}})";

const KindInfo& Pod() { return *BuiltInKinds().Find("", "v1", "Pod"); }

void Parse(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(kPod));
}
BENCHMARK(Parse);

void Copy(benchmark::State& state) {
  const Document pod = *ParseJson(kPod);
  for (auto _ : state) {
    Document copy = pod;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(Copy);

// The copy is part of it: what is defaulted cannot be defaulted again.
void PruneDefaultValidate(benchmark::State& state) {
  const Document pod = *ParseJson(kPod);
  for (auto _ : state) {
    Document object = pod;
    benchmark::DoNotOptimize(Prune(*Pod().schema, object));
    TY_CHECK(ApplyDefaults(*Pod().schema, object), "the pod of the benchmark is too large");
    TY_CHECK(Validate(*Pod().schema, object).empty(), "the pod of the benchmark is wrong");
  }
}
BENCHMARK(PruneDefaultValidate);

void WholeAdmission(benchmark::State& state) {
  const Document pod = *ParseJson(kPod);
  for (auto _ : state) {
    Document object = pod;
    benchmark::DoNotOptimize(Prune(*Pod().schema, object));
    TY_CHECK(ApplyDefaults(*Pod().schema, object), "the pod of the benchmark is too large");
    benchmark::DoNotOptimize(Validate(*Pod().schema, object));
    ApplyComputedDefaults(Pod(), object);
    PrepareForCreate(Pod(), object);
    TY_CHECK(ValidateCreate(Pod(), object).empty(), "the pod of the benchmark is wrong");
  }
}
BENCHMARK(WholeAdmission);

void OpenApiV2(benchmark::State& state) {
  std::vector<ServedKind> kinds;
  for (const KindInfo& kind : BuiltInKinds().kinds()) {
    if (kind.plural.empty()) continue;
    kinds.push_back({.group = kind.group,
                     .version = kind.version,
                     .kind = kind.kind,
                     .plural = kind.plural,
                     .namespaced = kind.namespaced,
                     .schema = kind.schema});
  }
  for (auto _ : state) benchmark::DoNotOptimize(EncodeOpenApiV2(BuildOpenApiV2(kinds)));
}
BENCHMARK(OpenApiV2);

}  // namespace
}  // namespace trainyard::apiserver

BENCHMARK_MAIN();
