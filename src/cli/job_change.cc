// trainyard apply, scale, delete
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/document.h"
#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/jobs_common.h"
#include "cli/kube_common.h"
#include "kube/error.h"
#include "operator/kinds.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kChangeTimeout = absl::Seconds(60);
constexpr absl::Duration kJobChangePollInterval = absl::Milliseconds(50);
constexpr std::string_view kManager = "trainyard";

// The objects of a file, or of standard input; those of a list one by one.
absl::StatusOr<std::vector<Document>> ReadObjects(const std::string& file) {
  TY_ASSIGN_OR_RETURN(std::vector<Document> documents, ReadObjectFile(file));
  for (const Document& document : documents) {
    if (StringAt(document, {"kind"}).empty() || StringAt(document, {"apiVersion"}).empty())
      return absl::InvalidArgumentError(StrCat(file, ": an object has no apiVersion or no kind"));
  }
  return Expand(std::move(documents));
}

// Patches an object. A job that the operator would not take is refused: the server first says what the object
// would be.
absl::StatusOr<std::string> PatchChecked(kube::Api& api, const kube::Resource& resource,
                                         const kube::ObjectKey& key, const std::string& body,
                                         kube::PatchOptions options) {
  const auto kinds = ops::AllKinds();
  const auto kind = std::ranges::find_if(kinds, [&](const auto& one) { return one->resource() == resource; });
  if (kind == kinds.end()) return api.Patch(resource, key, body, options);
  const bool dry_run = std::exchange(options.dry_run, true);
  TY_ASSIGN_OR_RETURN(std::string patched, api.Patch(resource, key, body, options));
  TY_ASSIGN_OR_RETURN(const reconcile::CompactJob job, (*kind)->Decode(patched));
  if (!job.invalid.empty()) return absl::InvalidArgumentError(StrCat(job.invalid, "; nothing was changed"));
  if (dry_run) return patched;
  options.dry_run = false;
  return api.Patch(resource, key, body, options);
}

class Apply final : public Command {
 public:
  std::string name() const override { return "apply"; }
  std::string summary() const override { return "Submit jobs from a file, or change those that are there"; }
  std::string details() const override {
    return "What the server refuses is told with its field, and the others of the file are applied.\n\n"
           "Examples:\n"
           "  trainyard apply -f examples/tfjob/dist-mnist.yaml\n"
           "  cat job.yaml | trainyard apply -f - --dry-run";
  }
  void Declare(Flags& flags) override {
    flags.Texts({.name = "-f,--filename",
                 .value = "FILE",
                 .help = "A file of objects, in YAML or JSON; - is standard input; may be repeated"},
                files_);
    flags.Switch({.name = "--dry-run", .help = "Have the server check it, and change nothing"}, dry_run_);
    flags.Switch(
        {.name = "--force-conflicts", .help = "Take over fields that somebody else has set otherwise"},
        force_);
    jobs_.Declare(flags);
  }

  absl::Status Run() override {
    if (files_.empty()) return UsageError("name a file with -f");
    std::vector<Document> objects;
    for (const std::string& file : files_) {
      TY_ASSIGN_OR_RETURN(std::vector<Document> more, ReadObjects(file));
      std::ranges::move(more, std::back_inserter(objects));
    }
    if (objects.empty())
      return absl::InvalidArgumentError(StrCat(files_.front(), ": there is no object in it"));
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    std::string failed;
    for (Document& object : objects) {
      const absl::Status applied = ApplyOne(*client, object);
      if (applied.ok()) continue;
      if (!failed.empty()) std::cerr << "trainyard apply: " << failed << std::endl;
      failed = StrCat(LowerCase(StringAt(object, {"kind"})), "/", StringAt(object, {"metadata", "name"}),
                      ": ", Message(applied));
    }
    return failed.empty() ? absl::OkStatus() : absl::InvalidArgumentError(failed);
  }

 private:
  // What the server calls objects of that kind.
  absl::StatusOr<kube::Resource> FindResource(JobsClient& client, std::string_view api_version,
                                              std::string_view kind) {
    const std::size_t slash = api_version.find('/');
    const std::string path =
        slash == std::string_view::npos ? StrCat("/api/", api_version) : StrCat("/apis/", api_version);
    auto& known = known_[path];
    if (known.is_null()) {
      const auto text = client.api().Do(kube::Operation{.request = {.target = path}});
      if (kube::IsNotFound(text.status())) {
        return absl::NotFoundError(
            StrCat("the cluster knows no ", api_version,
                   ": is it an operator's? `trainyard operator` and `trainyard up` bring ours"));
      }
      if (!text.ok()) return Annotate(text.status(), client.where());
      TY_ASSIGN_OR_RETURN(known, ParseJson(*text));
    }
    if (const Array* const resources = ArrayAt(known, {"resources"})) {
      for (const Document& resource : *resources) {
        const std::string_view plural = StringAt(resource, {"name"});
        if (StringAt(resource, {"kind"}) != kind || plural.find('/') != std::string_view::npos) continue;
        return kube::Resource{
            .group = std::string(slash == std::string_view::npos ? "" : api_version.substr(0, slash)),
            .version =
                std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1)),
            .plural = std::string(plural),
            .kind = std::string(kind),
            .namespaced = BoolAt(resource, {"namespaced"})};
      }
    }
    return absl::NotFoundError(StrCat("the cluster knows no ", kind, " of ", api_version));
  }

  absl::Status ApplyOne(JobsClient& client, Document& object) {
    TY_ASSIGN_OR_RETURN(const kube::Resource resource,
                        FindResource(client, StringAt(object, {"apiVersion"}), StringAt(object, {"kind"})));
    const std::string name(StringAt(object, {"metadata", "name"}));
    if (name.empty()) return absl::InvalidArgumentError("it has no metadata.name");
    std::string ns(StringAt(object, {"metadata", "namespace"}));
    if (ns.empty() && resource.namespaced) ns = client.ns();
    const kube::ObjectKey key{resource.namespaced ? ns : "", name};
    const auto before = client.api().Do(kube::ForMetadata(kube::GetOperation(resource, key)));
    if (!before.ok() && !kube::IsNotFound(before.status())) return Annotate(before.status(), client.where());
    const auto after = PatchChecked(client.api(), resource, key, PrintJson(object),
                                    {.type = kube::PatchType::kApply,
                                     .field_manager = std::string(kManager),
                                     .force = force_,
                                     .dry_run = dry_run_});
    if (kube::IsConflict(after.status()) && !force_)
      return Annotate(after.status(), "somebody else has set it otherwise; --force-conflicts takes it over");
    TY_RETURN_IF_ERROR(after.status());
    std::string_view what = "created";
    if (before.ok()) {
      const auto old_one = ParseJson(*before);
      const auto new_one = ParseJson(*after);
      const bool same = old_one.ok() && new_one.ok() &&
                        StringAt(*old_one, {"metadata", "resourceVersion"}) ==
                            StringAt(*new_one, {"metadata", "resourceVersion"});
      what = same ? "unchanged" : "configured";
    }
    std::cout << LowerCase(resource.kind) << "/" << name << " " << what << (dry_run_ ? " (dry run)" : "")
              << std::endl;
    return absl::OkStatus();
  }

  std::vector<std::string> files_;
  bool dry_run_ = false;
  bool force_ = false;
  JobsFlags jobs_;
  std::map<std::string, Document> known_;  // by path
};

class Scale final : public Command {
 public:
  std::string name() const override { return "scale"; }
  std::string summary() const override { return "Change how many pods a job's role has"; }
  std::string details() const override {
    return "Of an AITrainingJob, a TFJob, a PyTorchJob or an elastic job. A group with edlPolicy Auto, such "
           "as\n"
           "the workers of an elastic job with --max-workers, finds its size between its bounds by "
           "itself.\n\n"
           "Examples:\n"
           "  trainyard scale aitj/paddle trainer=4\n"
           "  trainyard scale mnist 3                # its only role, or the one named worker or trainer";
  }
  void Declare(Flags& flags) override {
    flags.Argument("JOB", "NAME or KIND/NAME", job_);
    flags.Argument("[ROLE=]N", "How many pods", size_);
    jobs_.Declare(flags);
  }
  std::vector<std::string> Complete() override { return jobs_.ListNames(); }
  absl::Status Run() override {
    const std::size_t equals = size_.find('=');
    const std::string role = equals == std::string::npos ? "" : size_.substr(0, equals);
    const auto number =
        ParseNumber<std::int64_t>(equals == std::string::npos ? size_ : size_.substr(equals + 1));
    if (!number || *number < 0)
      return UsageError(StrCat("'", Escaped(size_), "' is no size: write 3 or trainer=3"));
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    TY_ASSIGN_OR_RETURN(const view::Job job, FindNamed(*client, job_));
    if (job.kind == view::Kind::kTask)
      return UsageError(StrCat(job.Id(), " keeps the number of members that it was launched with"));
    if (job.over) return absl::FailedPreconditionError(StrCat(job.Id(), " has ended: ", job.shown));
    const std::string_view roles = view::FactsOf(job.kind).roles;
    TY_ASSIGN_OR_RETURN(const std::string chosen, ChooseRole(job, roles, role));
    const std::int64_t before = IntAt(job.object, {"spec", roles, chosen, "replicas"}).value_or(1);
    const Object patch{{"spec", Object{{roles, Object{{chosen, Object{{"replicas", *number}}}}}}}};
    const auto patched = PatchChecked(client->api(), view::FactsOf(job.kind).resource, {job.ns, job.name},
                                      PrintJson(patch), {.type = kube::PatchType::kMerge});
    TY_RETURN_IF_ERROR(patched.status());
    std::cout << job.Id() << " " << chosen << " "
              << (before == *number ? StrCat("has ", before) : StrCat(before, " -> ", *number)) << std::endl;
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::string> ChooseRole(const view::Job& job, std::string_view roles,
                                                const std::string& wanted) {
    const Object* const specs = ObjectAt(job.object, {"spec", roles});
    std::vector<std::string> names;
    for (std::size_t i = 0; specs != nullptr && i < specs->size(); ++i)
      names.emplace_back(Key(*(specs->begin() + static_cast<std::ptrdiff_t>(i))));
    for (const std::string& name : names) {
      if (!wanted.empty() && LowerCase(name) == LowerCase(wanted)) return name;
    }
    std::string list;
    for (const std::string& name : names) StrAppend(list, list.empty() ? "" : ", ", name);
    if (!wanted.empty())
      return absl::NotFoundError(StrCat(job.Id(), " has no role '", Escaped(wanted), "': it has ", list));
    if (names.size() == 1) return names.front();
    for (const std::string& name : names) {
      if (LowerCase(name) == "worker" || LowerCase(name) == "trainer") return name;
    }
    return UsageError(StrCat("which role? ", job.Id(), " has ", list, ": write ROLE=N"));
  }

  std::string job_;
  std::string size_;
  JobsFlags jobs_;
};

class Delete final : public Command {
 public:
  std::string name() const override { return "delete"; }
  std::string summary() const override { return "End jobs and remove all that is theirs"; }
  std::string details() const override {
    return "Logs go with the job; checkpoints and outputs stay.\n\n"
           "Examples:\n"
           "  trainyard delete mnist\n"
           "  trainyard delete tfjob/a aitj/b\n"
           "  trainyard delete --finished";
  }
  void Declare(Flags& flags) override {
    flags.OptionalArguments("JOB", "NAME or KIND/NAME", names_);
    flags.Switch({.name = "--finished", .help = "All of the namespace that have ended"}, finished_);
    flags.Text(
        {.name = "-f,--filename", .value = "FILE", .help = "The jobs that a file has; - is standard input"},
        file_);
    flags.Switch({.name = "--no-wait", .help = "Do not wait until they are gone"}, no_wait_);
    jobs_.Declare(flags);
  }

  std::vector<std::string> Complete() override { return jobs_.ListNames(); }
  absl::Status Run() override {
    if (names_.empty() && !finished_ && file_.empty())
      return UsageError("name a job, or give --finished or -f");
    TY_ASSIGN_OR_RETURN(const auto client, jobs_.Connect());
    std::vector<view::Job> jobs;
    for (const std::string& name : names_) {
      TY_ASSIGN_OR_RETURN(view::Job job, FindNamed(*client, name));
      jobs.push_back(std::move(job));
    }
    if (!file_.empty()) {
      TY_ASSIGN_OR_RETURN(std::vector<view::Job> named, FindInFile(*client));
      std::ranges::move(named, std::back_inserter(jobs));
    }
    if (finished_) {
      TY_ASSIGN_OR_RETURN(std::vector<view::Job> all, view::ListJobs(client->api(), {.ns = client->ns()}));
      std::ranges::copy_if(all, std::back_inserter(jobs), &view::Job::over);
      if (jobs.empty()) std::cerr << "no job has ended" << std::endl;
    }
    for (const view::Job& job : jobs) TY_RETURN_IF_ERROR(Remove(*client, job));
    for (const view::Job& job : jobs) {
      if (!no_wait_) TY_RETURN_IF_ERROR(AwaitGone(*client, job));
      std::cout << job.Id() << " deleted" << std::endl;
    }
    return absl::OkStatus();
  }

 private:
  // The jobs of the file, where the file says that they are.
  absl::StatusOr<std::vector<view::Job>> FindInFile(JobsClient& client) const {
    TY_ASSIGN_OR_RETURN(const std::vector<Document> objects, ReadObjects(file_));
    std::vector<view::Job> jobs;
    for (const Document& object : objects) {
      const auto kind = view::ParseKind(StringAt(object, {"kind"}));
      if (!kind || view::FactsOf(*kind).resource.ApiVersion() != StringAt(object, {"apiVersion"})) continue;
      const std::string_view ns = StringAt(object, {"metadata", "namespace"});
      TY_ASSIGN_OR_RETURN(
          view::Job job,
          view::FindJob(client.api(), ns.empty() ? client.ns() : std::string(ns),
                        {.kind = kind, .name = std::string(StringAt(object, {"metadata", "name"}))}));
      jobs.push_back(std::move(job));
    }
    if (jobs.empty()) return absl::InvalidArgumentError(StrCat(file_, ": there is no job in it"));
    return jobs;
  }

  static absl::Status Remove(JobsClient& client, const view::Job& job) {
    const view::KindFacts& facts = view::FactsOf(job.kind);
    const absl::Status gone =
        client.api().Delete(facts.resource, {job.ns, StrCat(job.name, facts.object_suffix)},
                            {.propagation = kube::Propagation::kBackground, .uid = job.uid});
    if (!gone.ok() && !kube::IsNotFound(gone)) return Annotate(gone, job.Id());
    return absl::OkStatus();
  }

  static absl::Status AwaitGone(JobsClient& client, const view::Job& job) {
    const SteadyTime deadline = Clock::System().Steady() + kChangeTimeout;
    while (true) {
      const auto there = view::FindJob(client.api(), job.ns, {.kind = job.kind, .name = job.name});
      if (absl::IsNotFound(there.status()) || (there.ok() && there->uid != job.uid)) {
        const auto pods = view::ListPods(client.api(), job);
        if (pods.ok() && pods->empty()) return absl::OkStatus();
      }
      if (Clock::System().Steady() > deadline)
        return absl::DeadlineExceededError(StrCat(job.Id(),
                                                  " is being deleted, and something of it is still there "
                                                  "after a minute; `kubectl get pods` shows what"));
      absl::SleepFor(kJobChangePollInterval);
    }
  }

  std::vector<std::string> names_;
  bool finished_ = false;
  std::string file_;
  bool no_wait_ = false;
  JobsFlags jobs_;
};

}  // namespace

std::unique_ptr<Command> NewApply() { return std::make_unique<Apply>(); }
std::unique_ptr<Command> NewScale() { return std::make_unique<Scale>(); }
std::unique_ptr<Command> NewDelete() { return std::make_unique<Delete>(); }

}  // namespace trainyard::cli
