// trainyard plan
#include <algorithm>

#include "apiserver/schema/schema.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kube_common.h"
#include "cli/kv_common.h"
#include "kube/curl_transport.h"
#include "operator/kinds.h"
#include "operator/preview.h"

namespace trainyard::cli {
namespace {

// What a server would refuse a job for before any operator sees it: a field that the kind does not have.
std::string FindUnknownField(const Document& job) {
  for (const Document& definition : ops::Definitions()) {
    if (StringAt(definition, {"spec", "names", "kind"}) != StringAt(job, {"kind"})) continue;
    for (const Document& version : *ArrayAt(definition, {"spec", "versions"})) {
      if (StrCat(StringAt(definition, {"spec", "group"}), "/", StringAt(version, {"name"})) !=
          StringAt(job, {"apiVersion"}))
        continue;
      const auto schema = apiserver::ParseOpenApiSchema(*Find(version, {"schema", "openAPIV3Schema"}));
      TY_CHECK(schema.ok(), "a definition that was built in cannot be read");
      Document pruned = job;
      const std::vector<std::string> unknown = apiserver::Prune(**schema, pruned);
      if (!unknown.empty()) return StrCat(unknown.front(), ": there is no such field");
    }
  }
  return "";
}

class Plan final : public Command {
 public:
  std::string name() const override { return "plan"; }
  std::string summary() const override { return "Show what the operator would do for a job now, and why"; }
  std::string details() const override {
    return "Nothing is changed. For a file, what would be done if it were submitted now; a job that is not\n"
           "valid is told with the field that is wrong, and exit code 1.\n\n"
           "Examples:\n"
           "  trainyard plan -f examples/tfjob/dist-mnist.yaml\n"
           "  trainyard plan tfjob/dist-mnist -n team-a\n"
           "  trainyard plan aitj/paddle-mnist\n"
           "  trainyard plan --autoscale";
  }

  void Declare(Flags& flags) override {
    flags.OptionalArgument("JOB", "tfjob/NAME, pytorchjob/NAME or aitj/NAME, of the cluster", job_);
    flags.Switch({.name = "--autoscale", .help = "What the autoscaler would change now, instead of a job"},
                 autoscale_);
    max_load_.Declare(flags);
    flags.Text(
        {.name = "-f,--filename", .value = "FILE", .help = "A file of jobs instead; - is standard input"},
        file_);
    flags.Text({.name = "-n,--namespace", .value = "NAME", .help = "Where the job is (the current one)"},
               ns_);
    flags.Text(
        {.name = "-o,--output", .value = "FORMAT", .help = "text or json (text)", .one_of = {"text", "json"}},
        output_);
    kube_.Declare(flags);
  }

  absl::Status Run() override {
    if (job_.has_value() + !file_.empty() + autoscale_ != 1)
      return UsageError(
          "name a job, as tfjob/NAME, pytorchjob/NAME or aitj/NAME, or a file with -f, or --autoscale");
    return autoscale_ ? PlanScaling() : job_ ? PlanLive() : PlanFile();
  }

 private:
  absl::Status PlanLive() {
    const std::size_t slash = job_->find('/');
    const reconcile::Kind* kind = ops::FindKind(kinds_, job_->substr(0, slash));
    if (slash == std::string::npos || slash + 1 == job_->size() || kind == nullptr) {
      return UsageError(
          StrCat("'", Escaped(*job_), "' is not a job: write tfjob/NAME, pytorchjob/NAME or aitj/NAME"));
    }
    TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.Load());
    const kube::ObjectKey key{ns_.empty() ? config.ns : ns_, job_->substr(slash + 1)};
    const std::string server = config.server;
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
    kube::Api api(*transport, Clock::System(), IdSource::Random(), {.attempts = 2});
    const auto view = ops::ViewLive(*kind, api, Clock::System(), key);
    if (!view.ok()) return Annotate(view.status(), server);
    return Show(*view);
  }

  absl::Status PlanScaling() {
    TY_ASSIGN_OR_RETURN(const job::scale::Limits limits, max_load_.Get());
    TY_ASSIGN_OR_RETURN(kube::ClusterConfig config, kube_.Load());
    const std::string server = config.server;
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(std::move(config)));
    kube::Api api(*transport, Clock::System(), IdSource::Random(), {.attempts = 2});
    const auto preview = ops::ViewScaling(kinds_, api, Clock::System(), limits);
    if (!preview.ok()) return Annotate(preview.status(), server);
    if (output_ == "json") return Print(StrCat(PrintJson(ops::ScalingToJson(*preview)), "\n"));
    return Print(ops::PrintScaling(*preview, limits));
  }

  absl::Status PlanFile() {
    TY_ASSIGN_OR_RETURN(std::vector<Document> documents, ReadObjectFile(file_));
    int jobs = 0;
    std::string invalid;
    for (Document& document : Expand(std::move(documents))) {
      // A file may bring along what its jobs need.
      const auto found = std::ranges::find_if(
          kinds_, [&](const auto& kind) { return kind->resource().kind == StringAt(document, {"kind"}); });
      if (found == kinds_.end()) continue;
      const reconcile::Kind& kind = **found;
      ++jobs;
      Object& metadata = MakeObjectAt(document, {"metadata"});
      if (!ns_.empty() && !metadata.contains("namespace")) metadata["namespace"] = ns_;
      if (const std::string_view begin = StringAt(document, {"metadata", "generateName"});
          !begin.empty() && !metadata.contains("name")) {
        metadata["name"] = StrCat(begin, "xxxxx");
      }
      std::string problem = FindUnknownField(document);
      const auto view = ops::ViewNew(kind, std::move(document));
      if (!view.ok()) return Annotate(view.status(), file_);
      if (problem.empty()) problem = view->invalid;
      if (!problem.empty()) {
        StrAppend(invalid, invalid.empty() ? "" : "; ", view->spec.kind, " ", view->name, ": ", problem);
        continue;
      }
      TY_RETURN_IF_ERROR(Show(*view));
    }
    if (jobs == 0)
      return absl::InvalidArgumentError(
          StrCat(file_, ": there is no TFJob, PyTorchJob or AITrainingJob in it"));
    return invalid.empty() ? absl::OkStatus() : absl::InvalidArgumentError(invalid);
  }

  absl::Status Show(const job::JobView& view) const {
    const job::JobPlan plan = job::PlanJob(view, Clock::System().Now());
    if (output_ == "json") return Print(StrCat(PrintJson(ops::PlanToJson(view, plan)), "\n"));
    return Print(ops::PrintPlan(view, plan));
  }

  std::optional<std::string> job_;
  bool autoscale_ = false;
  MaxLoadFlag max_load_;
  std::string file_;
  std::string ns_;
  std::string output_ = "text";
  KubeFlags kube_;
  const std::vector<std::unique_ptr<reconcile::Kind>> kinds_ = ops::AllKinds();
};

}  // namespace

std::unique_ptr<Command> NewPlan() { return std::make_unique<Plan>(); }

}  // namespace trainyard::cli
