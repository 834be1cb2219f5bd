// trainyard master
#include "master/master.h"

#include <unistd.h>

#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/worker_process.h"
#include "client/elastic_manifests.h"
#include "client/manifests.h"
#include "kube/api.h"
#include "kube/curl_transport.h"
#include "kv/open.h"
#include "master/pods/job_link.h"
#include "master/state_folder.h"
#include "ps/rpc/process.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;
// With these a master asks the agent, its parent, to start it again: a pserver was lost, after a step or
// before the first.
constexpr int kLostCode = 75;
constexpr int kLostEarlyCode = 76;
constexpr const char* kLastEndVariable = "TRAINYARD_LAST_END";
constexpr const char* kEarlyEndsVariable = "TRAINYARD_EARLY_ENDS";

// A master whose job another pod has taken over changes nothing more.
[[noreturn]] void EndFenced(const absl::Status& why) {
  log::Error("the master ends", {{"because", why}});
  WriteTerminationLog(Message(why));
  ::_exit(client::kFinalExitCode);
}

// Ends the process when another pod has taken over its job.
class Fence {
 public:
  explicit Fence(const master::StateFolder& folder) : thread_([this, &folder] { Watch(folder); }) {}
  ~Fence() {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

 private:
  void Watch(const master::StateFolder& folder) {
    for (;;) {
      if (!folder.IsOwned()) EndFenced(absl::FailedPreconditionError("another pod has taken over this job"));
      const SteadyTime next = Clock::System().Steady() + master::StateFolder::kLookEvery;
      const MutexLock lock(mu_);
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
  }

  Mutex mu_;
  CondVar changed_;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class MasterCommand final : public Command {
 public:
  std::string name() const override { return "master"; }
  std::string summary() const override {
    return "Run the master of an elastic job: it deals tasks, learns and keeps workers";
  }
  std::string details() const override {
    return "`trainyard train` puts it into a pod, with everything in the environment. If it is killed, the "
           "agent in\n"
           "the pod starts it again; it continues from its newest checkpoint, and workers find it again. By "
           "hand,\n"
           "without a cluster:\n\n"
           "  trainyard agent keep -- trainyard master --job-file job.json --state-dir state --no-pods \\\n"
           "    --listen 127.0.0.1:50001\n"
           "  trainyard worker --master 127.0.0.1:50001\n\n"
           "Where the job has \"pservers\": N, these keep the model, and are started likewise:\n\n"
           "  trainyard pserver --master 127.0.0.1:50001 --pserver-index 0";
  }

  void Declare(Flags& flags) override {
    flags.Text({.name = "--job-file", .value = "FILE", .help = "What to do, as JSON", .everywhere = true},
               job_file_);
    flags.Text({.name = "--state-dir",
                .value = "DIR",
                .help = "Where the queue is kept, and checkpoints where the job names no folder",
                .everywhere = true},
               state_dir_);
    flags.Text({.name = "--store",
                .value = "URL",
                .help = "Where the queue is kept instead, as etcd://HOST:PORT",
                .everywhere = true},
               store_);
    flags.Text(
        {.name = "--listen", .value = "ADDRESS", .help = "Where workers come (the pod's IP, port 50001)"},
        listen_);
    flags.Text({.name = "--token-file",
                .value = "FILE",
                .help = "The job's token: whoever lacks it is refused ($TRAINYARD_JOB_TOKEN)"},
               token_file_);
    flags.Switch({.name = "--no-pods", .help = "Start no workers: they come by themselves"}, no_pods_);
  }

  absl::Status Run() override {
    if (job_file_.empty()) return UsageError("--job-file is missing: say what to do");
    if (state_dir_.empty() && store_.empty())
      return UsageError("--state-dir is missing: where is the queue kept?");
    ps::TuneProcess(ps::Connections::kMany);
    SignalStopper stopper;
    absl::Status ended = stopper.Run([this](const auto& on_running) { return Serve(on_running); });
    if (!ended.ok()) WriteTerminationLog(Message(ended));
    if (absl::IsAborted(ended)) ::_exit(stepped_ ? kLostCode : kLostEarlyCode);
    return ended;
  }

 private:
  absl::Status Serve(const std::function<void(SignalStopper::Stop)>& on_running) {
    TY_ASSIGN_OR_RETURN(const std::string job_text, ReadFile(job_file_, kMostFileBytes));
    TY_ASSIGN_OR_RETURN(const master::JobSpec spec, master::ParseJobSpec(job_text));
    if (no_pods_) {
      TY_ASSIGN_OR_RETURN(const auto store, OpenStore(StrCat(state_dir_, "/queue")));
      TY_ASSIGN_OR_RETURN(const auto running, StartMaster(*store, spec));
      on_running([master = running.get()] { master->Stop(); });
      const absl::Status ended = Wait(*running);
      on_running([] {});
      return ended;
    }
    return ServeInPod(spec, on_running);
  }

  absl::Status Wait(master::Master& running) {
    const std::int64_t version = running.GetProgress().version;
    absl::Status ended = running.Wait();
    stepped_ = running.GetProgress().version > version;
    return ended;
  }

  absl::StatusOr<std::unique_ptr<kv::Store>> OpenStore(const std::string& queue) const {
    return kv::OpenStore(store_.empty() ? StrCat("embedded:", queue) : store_);
  }

  absl::StatusOr<std::unique_ptr<master::Master>> StartMaster(kv::Store& store, const master::JobSpec& spec) {
    TY_ASSIGN_OR_RETURN(const std::string token, JobToken(token_file_));
    if (listen_.empty()) listen_ = PodAddress(client::kMasterPort);
    const std::string ns = Variable("TRAINYARD_POD_NAMESPACE");
    return master::Master::Start(store, {.spec = spec,
                                         .ns = ns.empty() ? "default" : ns,
                                         .listen = listen_,
                                         .token = token,
                                         .folder = StrCat(state_dir_, "/checkpoints"),
                                         .last_end = FindLastEnd()});
  }

  static std::optional<master::LastEnd> FindLastEnd() {
    const std::string cause = Variable(kLastEndVariable);
    if (cause.empty()) return std::nullopt;
    return master::LastEnd{.cause = cause,
                           .early = ParseNumber<int>(Variable(kEarlyEndsVariable)).value_or(0) > 0};
  }

  // A job that failed for good ends with kFinalExitCode: the operator does not start it again.
  absl::Status ServeInPod(const master::JobSpec& spec,
                          const std::function<void(SignalStopper::Stop)>& on_running) {
    const master::JobLink::Options options{.resource = client::AITrainingJobs(),
                                           .ns = Variable("TRAINYARD_POD_NAMESPACE"),
                                           .uid = Variable("TRAINYARD_JOB_UID"),
                                           .spec = spec};
    if (options.ns.empty() || options.uid.empty())
      return UsageError("this is not a pod of an elastic job: give --no-pods, or run `trainyard train`");
    // The cluster that this pod is in, whatever else is configured on the machine.
    TY_ASSIGN_OR_RETURN(
        kube::ClusterConfig config,
        kube::LoadConfig({.environment = [](const char* variable) -> std::optional<std::string> {
          const std::string_view hidden = variable;
          if (hidden == "KUBECONFIG" || hidden == "HOME") return std::nullopt;
          return kube::ProcessEnvironment(variable);
        }}));
    TY_ASSIGN_OR_RETURN(const auto transport, kube::NewCurlTransport(config));
    kube::Api api(*transport, Clock::System(), IdSource::Random());
    const auto folder =
        master::StateFolder::TakeOver(StrCat(state_dir_, "/queue"), Variable("TRAINYARD_POD_UID"));
    if (absl::IsFailedPrecondition(folder.status())) EndFenced(folder.status());
    TY_RETURN_IF_ERROR(folder);
    const Fence fence(*folder);
    TY_ASSIGN_OR_RETURN(const auto store, OpenStore(folder->path()));
    absl::StatusOr<std::unique_ptr<master::Master>> running = StartMaster(*store, spec);
    if (!running.ok()) {
      if (!IsFinal(running.status())) return running.status();
      log::Error("the job cannot begin", {{"error", running.status()}});
      const std::string reason(Message(running.status()));
      WriteTerminationLog(reason);
      if (const absl::Status reported = master::ReportFailure(api, options, reason); !reported.ok())
        log::Warn("the progress could not be written", {{"error", reported}});
      ::_exit(client::kFinalExitCode);
    }
    on_running([master = running->get()] { master->Stop(); });
    absl::Status ended;
    {
      master::JobLink link(api, Clock::System(), **running, options);
      link.Start();
      ended = Wait(**running);
    }
    on_running([] {});
    if ((*running)->GetProgress().phase != master::Phase::kFailed) return ended;
    WriteTerminationLog(Message(ended));
    ::_exit(client::kFinalExitCode);
  }

  // What another start would find again.
  static bool IsFinal(const absl::Status& status) {
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsDataLoss(status) ||
           absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status);
  }

  std::string job_file_;
  std::string state_dir_;
  std::string store_;
  std::string listen_;
  std::string token_file_;
  bool no_pods_ = false;
  bool stepped_ = false;  // the model has made a step under the master that has ended
};

}  // namespace

std::unique_ptr<Command> NewMaster() { return std::make_unique<MasterCommand>(); }

}  // namespace trainyard::cli
