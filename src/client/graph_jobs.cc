#include "client/graph_jobs.h"

#include <cctype>
#include <utility>

#include "base/crc32c.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "client/graph_job.h"
#include "kube/names.h"

namespace trainyard::client {
namespace {

constexpr absl::Duration kShortestLease = absl::Seconds(1);
constexpr absl::Duration kLongestLease = absl::Hours(24);

absl::Status CheckOptions(const JobOptions& options) {
  if (options.lease < kShortestLease || options.lease > kLongestLease)
    return absl::InvalidArgumentError(
        StrCat("lease must be between 1s and 24h, and is ", absl::FormatDuration(options.lease)));
  if (options.checkpoint_every < 1)
    return absl::InvalidArgumentError(
        StrCat("checkpoint_every must be 1 step or more, and is ", options.checkpoint_every));
  return absl::OkStatus();
}

class ClusterJobs final : public GraphJobs {
 public:
  explicit ClusterJobs(std::unique_ptr<Cluster> cluster) : cluster_(std::move(cluster)) {}

  absl::StatusOr<bool> Find(std::string_view name) override {
    TY_RETURN_IF_ERROR(CheckJobName(name));
    const absl::Status object = cluster_->Get(AITrainingJobs(), ObjectName(name)).status();
    if (!kube::IsNotFound(object)) {
      if (!object.ok()) return object;
      return true;
    }
    const absl::StatusOr<kv::Store*> store = OpenStore(false);
    if (absl::IsNotFound(store.status())) return false;
    if (!store.ok()) return store.status();
    return IsStored(**store, name);
  }

  absl::Status Kill(std::string_view name) override {
    TY_ASSIGN_OR_RETURN(const bool found, Find(name));
    if (!found) return NoSuchJob(name);
    TY_RETURN_IF_ERROR(RemoveObjects(*cluster_, name));  // though the store may be away
    const absl::StatusOr<kv::Store*> store = OpenStore(false);
    if (absl::IsNotFound(store.status())) return absl::OkStatus();
    if (!store.ok()) return store.status();
    return RemoveStored(**store, KeysOf(name));
  }

  absl::StatusOr<std::unique_ptr<Job>> InitJob(std::string_view name, const JobOptions& options) override {
    TY_RETURN_IF_ERROR(CheckJobName(name));
    TY_RETURN_IF_ERROR(CheckOptions(options));
    TY_ASSIGN_OR_RETURN(kv::Store* const store, OpenStore(true));
    TY_ASSIGN_OR_RETURN(const bool found, Find(name));
    if (found) {
      return absl::AlreadyExistsError(StrCat("there is a job ", name, " in namespace ", cluster_->ns(),
                                             ": kill it first, attach to it, or choose another name"));
    }
    std::unique_ptr<Heartbeat> heartbeat;
    if (options.run_type == RunType::kForeground) {
      TY_ASSIGN_OR_RETURN(heartbeat, Heartbeat::Start(*store, KeysOf(name), options.lease));
    }
    return std::make_unique<GraphJob>(*cluster_, *store, std::string(name), options, std::move(heartbeat));
  }

  absl::StatusOr<std::unique_ptr<Job>> Attach(std::string_view name) override {
    TY_RETURN_IF_ERROR(CheckJobName(name));
    const absl::StatusOr<kv::Store*> store = OpenStore(false);
    if (absl::IsNotFound(store.status())) return NoSuchJob(name);
    if (!store.ok()) return store.status();
    const absl::StatusOr<ps::StoredMeta> stored = ps::GetMeta(**store, KeysOf(name));
    if (absl::IsNotFound(stored.status())) return NoSuchJob(name);
    if (!stored.ok()) return stored.status();
    auto job = std::make_unique<GraphJob>(
        *cluster_, **store, std::string(name),
        JobOptions{.run_type = RunType::kBackground, .checkpoint_every = stored->meta.checkpoint_every},
        nullptr);
    TY_RETURN_IF_ERROR(job->TakeUp(stored->meta));
    return job;
  }

 private:
  ps::JobKeys KeysOf(std::string_view name) const { return {StrCat(cluster_->ns(), "/", name)}; }
  absl::Status NoSuchJob(std::string_view name) const {
    return absl::NotFoundError(StrCat("there is no job ", name, " in namespace ", cluster_->ns()));
  }

  // One for all jobs. NotFound: there is none, and none is to be made.
  absl::StatusOr<kv::Store*> OpenStore(bool start) {
    const MutexLock lock(mu_);
    if (store_ == nullptr || start) {
      TY_ASSIGN_OR_RETURN(auto store, start ? cluster_->EnsureStore() : cluster_->FindStore());
      if (store_ == nullptr) store_ = std::move(store);
    }
    return store_.get();
  }

  // Not started yet, but somebody's; or its AITrainingJob was deleted.
  absl::StatusOr<bool> IsStored(kv::Store& store, std::string_view name) {
    TY_ASSIGN_OR_RETURN(
        const kv::RangeResult keys,
        store.Range({.range = kv::KeyRange::Prefix(KeysOf(name).Root()), .limit = 1, .keys_only = true}));
    return !keys.kvs.empty();
  }

  const std::unique_ptr<Cluster> cluster_;
  Mutex mu_;
  std::unique_ptr<kv::Store> store_ TY_GUARDED_BY(mu_);
};

// Leaves room for "-pserver-1234" in a name of 63 characters.
constexpr std::size_t kMostCharacters = 50;

}  // namespace

std::string_view Name(ps::JobState state) {
  switch (state) {
    case ps::JobState::kWaiting:
      return "Waiting";
    case ps::JobState::kRunning:
      return "Running";
    case ps::JobState::kComplete:
      return "Complete";
    case ps::JobState::kFailed:
      return "Failed";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<GraphJobs>> GraphJobs::Open(ClusterOptions options) {
  TY_ASSIGN_OR_RETURN(auto cluster, Cluster::Open(std::move(options)));
  return std::make_unique<ClusterJobs>(std::move(cluster));
}

absl::Status CheckJobName(std::string_view name) {
  if (!name.empty() && kube::FindLabelValueProblem(name).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the job's name '", Shortened(Escaped(name), 80),
             "' must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"));
}

std::string ObjectName(std::string_view job) {
  if (job.size() <= kMostCharacters && kube::FindDns1035LabelProblem(job).empty()) return std::string(job);
  std::string name;
  for (const char c : job) {
    const auto letter = static_cast<unsigned char>(c);
    name += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  if (std::isalpha(static_cast<unsigned char>(name[0])) == 0) name.insert(0, "job-");
  name.resize(std::min(name.size(), kMostCharacters - 9));
  return StrCat(name, "-", Hex32(Crc32c(job)));
}

}  // namespace trainyard::client
