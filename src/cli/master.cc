// trainyard master
#include "master/master.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>

#include "base/clock.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/worker_process.h"
#include "client/elastic_manifests.h"
#include "kube/api.h"
#include "kube/curl_transport.h"
#include "kv/open.h"
#include "master/pods/keeper.h"
#include "master/pods/teller.h"
#include "ps/rpc/process.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 20;
constexpr const char* kChildVariable = "TRAINYARD_MASTER_PARENT";
constexpr int kMostQuickDeaths = 5;
constexpr absl::Duration kQuick = absl::Milliseconds(300);  // it did not come to anything
// With these a master ends that another one is to go on for: a pserver was lost, after a step or before the
// first.
constexpr int kLostCode = 75;
constexpr int kLostEarlyCode = 76;
constexpr const char* kLossesVariable = "TRAINYARD_MASTER_LOSSES";
constexpr absl::Duration kLongestPause = absl::Seconds(5);

class MasterCommand final : public Command {
 public:
  std::string name() const override { return "master"; }
  std::string summary() const override {
    return "Run the master of an elastic job: it deals tasks, learns and keeps workers";
  }
  std::string details() const override {
    return "`trainyard train` puts it into a pod, with everything in the environment. If it is killed it "
           "comes back,\n"
           "goes on from its newest checkpoint, and workers find it again. By hand, without pods of its "
           "own:\n\n"
           "  trainyard master --job-file job.json --state-dir state --no-pods --listen 127.0.0.1:50001\n"
           "  trainyard worker --master 127.0.0.1:50001\n\n"
           "Where the job has \"pservers\": N, these keep the model, and are started likewise:\n\n"
           "  trainyard pserver --master 127.0.0.1:50001 --pserver-index 0";
  }

  void Declare(Flags& flags) override {
    flags.Text({.name = "--job-file", .value = "FILE", .help = "What to do, as JSON", .everywhere = true},
               job_file_);
    flags.Text(
        {.name = "--worker-file", .value = "FILE", .help = "A worker's pod, as JSON", .everywhere = true},
        worker_file_);
    flags.Text(
        {.name = "--pserver-file", .value = "FILE", .help = "A pserver's pod, as JSON", .everywhere = true},
        pserver_file_);
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
    flags.Switch({.name = "--once", .help = "Do not come back when killed"}, once_);
  }

  absl::Status Run() override {
    if (job_file_.empty()) return UsageError("--job-file is missing: say what to do");
    if (state_dir_.empty() && store_.empty())
      return UsageError("--state-dir is missing: where is the queue kept?");
    if (!once_ && Variable(kChildVariable).empty()) {
      absl::Status kept = Keep();
      if (!kept.ok()) WriteTerminationLog(Message(kept));
      return kept;
    }
    // Whoever keeps this process is not survived by it: two masters of one job would be in each other's way.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ps::TuneProcess(ps::Connections::kMany);
    SignalStopper stopper;
    absl::Status ended = stopper.Run([this](const auto& on_running) { return Serve(on_running); });
    if (absl::IsAborted(ended) && !once_) ::_exit(stepped_ ? kLostCode : kLostEarlyCode);
    if (!ended.ok()) WriteTerminationLog(Message(ended));
    return ended;
  }

 private:
  // The master itself is a child of this process: one that is killed is back in milliseconds, without the
  // pauses that a kubelet makes between restarts.
  absl::Status Keep() {
    const EndingSignals signals;
    int quick = 0;
    int losses = 0;     // in a row, without a step
    bool told = false;  // to end
    for (;;) {
      const SteadyTime begun = Clock::System().Steady();
      ::setenv(kLossesVariable, std::to_string(losses).c_str(), 1);
      TY_ASSIGN_OR_RETURN(Child child, SpawnSelf());
      TY_ASSIGN_OR_RETURN(const ExitStatus ended, Await(child, signals, told));
      const auto* const exited = std::get_if<Exited>(&ended);
      const bool lost = exited != nullptr && (exited->code == kLostCode || exited->code == kLostEarlyCode);
      if (exited != nullptr && !lost) ::_exit(exited->code);
      if (told) return absl::UnavailableError("the master was stopped");
      if (lost) {
        losses = exited->code == kLostCode ? 0 : losses + 1;
        const absl::Duration pause = absl::Milliseconds(50) * (1 << std::min(losses, 10));
        if (losses > 1 && signals.AwaitFor(std::min(pause, kLongestPause)))
          return absl::UnavailableError("the master was stopped");
        continue;
      }
      quick = Clock::System().Steady() - begun < kQuick ? quick + 1 : 0;
      if (quick >= kMostQuickDeaths)
        return absl::InternalError(
            StrCat("the master ", PrintExit(ended), " ", quick, " times before it was ready"));
      log::Warn("the master comes back", {{"because", PrintExit(ended)}});
    }
  }

  static absl::StatusOr<ExitStatus> Await(Child& child, const EndingSignals& signals, bool& told) {
    for (;;) {
      absl::StatusOr<ExitStatus> ended = child.Wait(absl::Milliseconds(10));
      if (!absl::IsDeadlineExceeded(ended.status())) return ended;
      if (!signals.AwaitFor(absl::ZeroDuration())) continue;
      told = true;
      child.Kill(SIGTERM).IgnoreError();
    }
  }

  static absl::StatusOr<Child> SpawnSelf() {
    std::vector<std::string> argv;
    TY_ASSIGN_OR_RETURN(const std::string line, ReadFile("/proc/self/cmdline", kMostFileBytes));
    for (const std::string_view argument : Split(std::string_view(line), '\0')) argv.emplace_back(argument);
    if (!argv.empty() && argv.back().empty()) argv.pop_back();
    argv.front() = "/proc/self/exe";
    char self[4096] = {};
    if (::readlink("/proc/self/exe", self, sizeof self - 1) > 0) argv.front() = self;
    ::setenv(kChildVariable, "1", 1);
    return Child::Spawn({.argv = std::move(argv),
                         .stdin_fd = STDIN_FILENO,
                         .stdout_fd = STDOUT_FILENO,
                         .stderr_fd = STDERR_FILENO});
  }

  absl::Status Serve(const std::function<void(SignalStopper::Stop)>& on_running) {
    TY_ASSIGN_OR_RETURN(const std::string job_text, ReadFile(job_file_, kMostFileBytes));
    TY_ASSIGN_OR_RETURN(const master::JobSpec spec, master::ParseJobSpec(job_text));
    if (no_pods_) {
      TY_ASSIGN_OR_RETURN(const auto store, OpenStore());
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

  absl::StatusOr<std::unique_ptr<kv::Store>> OpenStore() const {
    return kv::OpenStore(store_.empty() ? StrCat("embedded:", state_dir_, "/queue") : store_);
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
                                         .losses = ParseNumber<int>(Variable(kLossesVariable)).value_or(0)});
  }

  // A job that has failed for good is told of, and the pod ends as it should: a kubelet that began it again
  // would change nothing.
  absl::Status ServeInPod(const master::JobSpec& spec,
                          const std::function<void(SignalStopper::Stop)>& on_running) {
    const master::ProgressTeller::Options telling{.ns = Variable("TRAINYARD_POD_NAMESPACE"),
                                                  .job = spec.name,
                                                  .pod = Variable("TRAINYARD_POD_NAME"),
                                                  .pod_uid = Variable("TRAINYARD_POD_UID")};
    if (telling.pod.empty() || telling.pod_uid.empty())
      return UsageError("this is no pod of a cluster: give --no-pods, or run `trainyard train`");
    TY_ASSIGN_OR_RETURN(const Document worker, ReadPod(worker_file_));
    Document pserver;
    if (spec.pservers > 0) {
      TY_ASSIGN_OR_RETURN(pserver, ReadPod(pserver_file_));
    }
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
    TY_ASSIGN_OR_RETURN(const auto store, OpenStore());
    absl::StatusOr<std::unique_ptr<master::Master>> running = StartMaster(*store, spec);
    if (!running.ok()) {
      if (!IsFinal(running.status())) return running.status();
      log::Error("the job cannot begin", {{"error", running.status()}});
      const std::string reason(Message(running.status()));
      WriteTerminationLog(reason);
      EndPods(api, telling);
      return master::TellFailure(api, telling, reason);
    }
    on_running([master = running->get()] { master->Stop(); });
    const master::KeeperOptions keeping = KeeperOptions(spec, telling, worker, (*running)->port());
    master::PodKeeper workers(api, **running, keeping);
    std::optional<master::PodKeeper> pservers;
    std::vector<master::PodKeeper*> keepers = {&workers};
    if (spec.pservers > 0)
      keepers.push_back(&pservers.emplace(api, **running, ForPservers(keeping, spec, pserver)));
    for (master::PodKeeper* const keeper : keepers) keeper->Start();
    absl::Status ended;
    master::Phase phase{};
    {
      const master::ProgressTeller teller(api, **running, keepers, telling);
      ended = Wait(**running);
      phase = (*running)->GetProgress().phase;
    }
    for (master::PodKeeper* const keeper : keepers) keeper->Stop();
    on_running([] {});
    if (phase == master::Phase::kFailed || phase == master::Phase::kComplete) EndPods(api, telling);
    if (phase != master::Phase::kFailed) return ended;
    WriteTerminationLog(Message(ended));
    return absl::OkStatus();
  }

  static void EndPods(kube::Api& api, const master::ProgressTeller::Options& telling) {
    if (const absl::Status ended = master::EndPods(api, telling.ns, telling.job, telling.pod_uid);
        !ended.ok())
      log::Warn("pods that have not ended could not be deleted", {{"error", ended}});
  }

  master::KeeperOptions KeeperOptions(const master::JobSpec& spec,
                                      const master::ProgressTeller::Options& telling, const Document& worker,
                                      int port) const {
    constexpr int kMostRestarts = 10;
    return {.ns = telling.ns,
            .job = spec.name,
            .pod = telling.pod,
            .pod_uid = telling.pod_uid,
            .address = StrCat(listen_.substr(0, listen_.rfind(':')), ":", port),
            .pod_template = worker,
            .limits = {.least = spec.min_workers,
                       .most = spec.max_workers,
                       .most_failures = spec.most_restarts > 0 ? spec.most_restarts : kMostRestarts},
            .target = spec.workers};
  }

  // All of them are needed, and there is no room for more.
  static master::KeeperOptions ForPservers(master::KeeperOptions options, const master::JobSpec& spec,
                                           const Document& pserver) {
    options.role = master::PodRole::kPserver;
    options.pod_template = pserver;
    options.target = options.limits.least = options.limits.most = spec.pservers;
    return options;
  }

  static absl::StatusOr<Document> ReadPod(const std::string& file) {
    TY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostFileBytes));
    return ParseJson(text);
  }

  // What another start would find again.
  static bool IsFinal(const absl::Status& status) {
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsDataLoss(status) ||
           absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status);
  }

  std::string job_file_;
  std::string worker_file_;
  std::string pserver_file_;
  std::string state_dir_;
  std::string store_;
  std::string listen_;
  std::string token_file_;
  bool no_pods_ = false;
  bool once_ = false;
  bool stepped_ = false;  // the model has made a step under the master that has ended
};

}  // namespace

std::unique_ptr<Command> NewMaster() { return std::make_unique<MasterCommand>(); }

}  // namespace trainyard::cli
