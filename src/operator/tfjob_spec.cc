#include "operator/tfjob_spec.h"

#include <array>

#include "base/text.h"
#include "job/names.h"

namespace trainyard::ops {
namespace {

constexpr std::array<ReplicaType, 4> kAlphaTypes = {{{"Chief", "chief", "Master", true},
                                                     {"Worker", "worker", "", false},
                                                     {"PS", "ps", "", false},
                                                     {"Eval", "eval", "Evaluator", false}}};
constexpr std::array<ReplicaType, 5> kV1Types = {{{"Chief", "chief", "", true},
                                                  {"Master", "master", "", true},
                                                  {"Worker", "worker", "", false},
                                                  {"PS", "ps", "", false},
                                                  {"Evaluator", "evaluator", "", false}}};

constexpr Dialect kAlpha = {.kind = "TFJob",
                            .version = "v1alpha2",
                            .replicas = "tfReplicaSpecs",
                            .types = kAlphaTypes,
                            .container = "tensorflow",
                            .port_name = "tfjob-port",
                            .port = 2222,
                            .restart = job::RestartPolicy::kAlways,
                            .operator_name = ""};
constexpr Dialect kV1 = {.kind = "TFJob",
                         .version = "v1",
                         .replicas = "tfReplicaSpecs",
                         .types = kV1Types,
                         .container = "tensorflow",
                         .port_name = "tfjob-port",
                         .port = 2222,
                         .restart = job::RestartPolicy::kNever,
                         .operator_name = "tfjob-controller"};

class TfJobReader final : public KubeflowReader {
 public:
  using KubeflowReader::KubeflowReader;

 private:
  void ReadRest(const Document& spec) override {
    const bool all_workers =
        OneOf<bool, 2>(spec, "spec", "successPolicy", {{{"", false}, {"AllWorkers", true}}});
    const bool dynamic = Flag(spec, "spec", "enableDynamicWorker").value_or(false);
    if (dynamic && !dialect_.IsV1())
      Problem("spec.enableDynamicWorker", "the job follows v1alpha2, which does not have it");
    if (FindRole("chief") != nullptr && FindRole("master") != nullptr)
      Problem(PathOf("Master"), "is the same as Chief, and there can be only one");
    DecideEnd(all_workers);
    // Workers come and go, and the others do not know of them.
    if (job::RoleSpec* worker = FindRole("worker"); dynamic && worker != nullptr)
      worker->fail = job::EndPolicy::kNone;
    MeasureTfConfig(dynamic);
  }

  // The chief decides, or worker 0 where there is none.
  void DecideEnd(bool all_workers) {
    using job::EndPolicy;
    job::RoleSpec* chief = FindRole("chief") != nullptr ? FindRole("chief") : FindRole("master");
    job::RoleSpec* worker = FindRole("worker");
    if (chief != nullptr) chief->complete = EndPolicy::kAll;
    if (worker != nullptr && all_workers) {
      worker->complete = EndPolicy::kAll;
    } else if (worker != nullptr && chief == nullptr) {
      worker->complete = EndPolicy::kRank0;
    }
    if (chief == nullptr && worker == nullptr) {
      Problem("spec.tfReplicaSpecs",
              "the job needs a Chief or a Worker with at least 1 replica, which decides when it has ended");
    }
  }

  // Each pod gets the addresses of all others in TF_CONFIG.
  void MeasureTfConfig(bool dynamic) {
    constexpr std::string_view kAround = R"("..svc:65535",)";
    Told told;
    for (const job::RoleSpec& role : out_.roles) {
      if (role.slug == "eval" || (dynamic && role.slug != "ps")) continue;
      const std::size_t name = job::LongestPodName(Naming(), role.slug, role.replicas);
      told.bytes += static_cast<std::size_t>(role.replicas) * (name + job_.ns.size() + kAround.size());
      told.pods += role.replicas;
    }
    told.longest = told.bytes;
    out_.config_in_file = NeedsConfigFile("spec.tfReplicaSpecs", told);
    if (out_.config_in_file && dynamic) {
      Problem("spec.enableDynamicWorker",
              StrCat("the addresses of ", told.pods, " parameter servers do not fit into TF_CONFIG"));
    }
  }
};

}  // namespace

const Dialect& TfDialect(std::string_view version) { return version == kV1.version ? kV1 : kAlpha; }

const Dialect& TfDialectOf(const Document& job) {
  const std::string_view noted = StringAt(job, {"spec", "dialect"});
  if (!noted.empty()) return TfDialect(noted);
  const bool stored = !StringAt(job, {"metadata", "resourceVersion"}).empty();
  return !stored && StringAt(job, {"apiVersion"}) == "kubeflow.org/v1" ? kV1 : kAlpha;
}

ParsedSpec ParseTfJobSpec(const Dialect& dialect, const kube::ObjectKey& job, const Document* spec) {
  return TfJobReader(dialect, job).Read(spec);
}

}  // namespace trainyard::ops
