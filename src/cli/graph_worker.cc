// trainyard graph-worker
#include <unistd.h>

#include "base/access.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "cli/worker_process.h"
#include "ps/rpc/process.h"
#include "ps/worker.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kGraphWorkerRetryInterval = absl::Milliseconds(200);

class GraphWorkerCommand final : public Command {
 public:
  std::string name() const override { return "graph-worker"; }
  std::string summary() const override { return "Run one graph of a graph job: a trainer or a pserver"; }
  std::string details() const override {
    return "Takes the graph's programs from the store, restores its checkpoint or initialises it, registers "
           "where it\n"
           "is, and runs until the job is complete. It stops when its lease in the store is lost. Pods of "
           "graph jobs\n"
           "run it, with everything in the environment; by hand:\n\n"
           "  trainyard graph-worker --store etcd://127.0.0.1:2379 --job default/test --graph pserver-0 \\\n"
           "    --checkpoint-dir ckpt";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Text({.name = "--job", .value = "NAMESPACE/NAME", .help = "Which job", .everywhere = true},
               options_.keys.job);
    flags.Text(
        {.name = "--graph",
         .value = "ID",
         .help = "Which of its graphs, as trainer-0 (in a pod of an AITrainingJob, its group and index)",
         .everywhere = true},
        options_.graph);
    flags.Text({.name = "--pod-name",
                .value = "NAME",
                .help = "What others see as this pod's name (the host's)",
                .everywhere = true},
               options_.pod_name);
    flags.Text({.name = "--pod-ip",
                .value = "IP",
                .help = "Where others reach this pod (127.0.0.1)",
                .everywhere = true},
               options_.pod_ip);
    flags.Text({.name = "--listen",
                .value = "ADDRESS",
                .help = "Where a pserver listens, as 0.0.0.0:7000 (any port of the pod's IP)"},
               options_.listen);
    flags.Text({.name = "--checkpoint-dir",
                .value = "DIR",
                .help = "Where a pserver writes its checkpoints",
                .everywhere = true},
               options_.checkpoint_directory);
    flags.Text({.name = "--token-file",
                .value = "FILE",
                .help = "The job's token: whoever lacks it is refused ($TRAINYARD_JOB_TOKEN)"},
               token_file_);
    flags.Duration({.name = "--lease",
                    .value = "TIME",
                    .help = "Others take this graph for gone after so long without a sign (2s)"},
                   lease_);
    flags.Number({.name = "--threads", .value = "N", .help = "So many inside one operator (1)"}, threads_);
    flags.Switch(
        {.name = "--check-finite", .help = "Fail at the first operator that makes a NaN or an infinity"},
        options_.check_finite);
  }

  absl::Status Run() override {
    TY_RETURN_IF_ERROR(Check());
    ps::TuneProcess();
    SignalStopper stopper;
    absl::Status ended = stopper.Run([&](const auto& on_running) -> absl::Status {
      TY_ASSIGN_OR_RETURN(const std::unique_ptr<kv::Store> store, store_.Open());
      return RunThroughOutages(*store, stopper, on_running);
    });
    if (!ended.ok()) WriteTerminationLog(Message(ended));
    return ps::IsFinal(ended) ? FinalError(std::move(ended)) : ended;
  }

 private:
  // A store that was away for longer than the lease ends the graph, and nothing else: it begins anew here,
  // from its checkpoint, when the store is back.
  absl::Status RunThroughOutages(kv::Store& store, SignalStopper& stopper,
                                 const std::function<void(SignalStopper::Stop)>& on_running) {
    for (;;) {
      absl::Status ended = ps::RunWorker(store, options_, on_running);
      if (!absl::IsUnavailable(ended) && !absl::IsDeadlineExceeded(ended)) return ended;
      log::Warn("the graph begins anew", {{"graph", options_.graph}, {"because", ended}});
      if (stopper.AwaitFor(kGraphWorkerRetryInterval)) return absl::CancelledError("it was stopped");
    }
  }

  absl::Status Check() {
    const std::vector<std::string_view> parts = Split(std::string_view(options_.keys.job), '/');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
      return UsageError(StrCat("--job must be NAMESPACE/NAME and is '", Escaped(options_.keys.job), "'"));
    }
    if (options_.graph.empty()) options_.graph = GraphOfPod();
    if (options_.graph.empty()) return UsageError("--graph is missing: say which, as trainer-0");
    if (threads_ && (*threads_ < 1 || *threads_ > 1024))
      return UsageError("--threads must be between 1 and 1024");
    if (lease_ && *lease_ < absl::Seconds(1)) return UsageError("--lease must be at least 1s");
    if (threads_) options_.threads = static_cast<int>(*threads_);
    if (lease_) options_.lease = *lease_;
    if (options_.listen.empty())
      options_.listen = options_.pod_ip.find(':') == std::string::npos ? StrCat(options_.pod_ip, ":0")
                                                                       : StrCat("[", options_.pod_ip, "]:0");
    if (options_.pod_name.empty()) options_.pod_name = HostName();
    TY_ASSIGN_OR_RETURN(options_.token, FindToken(token_file_, "TRAINYARD_JOB_TOKEN"));
    return absl::OkStatus();
  }

  // As the operator tells a pod which one it is: the group and the index of an AITrainingJob.
  static std::string GraphOfPod() {
    const std::string group = Variable("TRAININGJOB_REPLICA_NAME");
    const std::string index = Variable("TRAININGJOB_REPLICA_INDEX");
    return group.empty() || index.empty() ? "" : StrCat(group, "-", index);
  }
  static std::string HostName() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
  }

  StoreFlag store_;
  ps::WorkerOptions options_{.listen = ""};
  std::string token_file_;
  std::optional<absl::Duration> lease_;
  std::optional<std::int64_t> threads_;
};

}  // namespace

std::unique_ptr<Command> NewGraphWorker() { return std::make_unique<GraphWorkerCommand>(); }

}  // namespace trainyard::cli
