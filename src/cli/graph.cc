// trainyard graph
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/graph_model.h"
#include "cli/kv_common.h"
#include "cli/status_line.h"
#include "client/graph_jobs.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kGraphTick = absl::Milliseconds(200);
constexpr absl::Duration kGraphPollInterval = absl::Seconds(1);
constexpr int kMostThreads = 1024;

// Where a job stands, by what its trainers put out.
class GraphProgress {
 public:
  explicit GraphProgress(std::int64_t passes) : passes_(passes) {}

  void Take(const client::GraphOutput& output) {
    pass_ = std::max(pass_, output.pass);
    step_ = std::max(step_, output.step);
    if (output.value.values.size() == 1) values_[output.value.name] = output.value.values[0];
  }
  std::string Text(const client::JobStatus& status) const {
    std::string text = step_ < 0 ? status.phase.empty() ? "the job is starting" : status.phase
                                 : StrCat("pass ", pass_ + 1, "/", passes_, "  step ", step_, Values());
    return StrCat(text, "  ", status.trainers, " trainers  ", status.pservers, " pservers");
  }
  std::string Summary(std::int64_t steps) const { return StrCat("trained ", steps, " steps", Values()); }

 private:
  std::string Values() const {
    std::string text;
    for (const auto& [name, value] : values_) text += fmt::format("  {} {:.4f}", name, value);
    return text;
  }

  const std::int64_t passes_;
  std::int64_t pass_ = 0;
  std::int64_t step_ = -1;
  std::map<std::string, double> values_;  // the last of each
};

class GraphCommand final : public Command {
 public:
  std::string name() const override { return "graph"; }
  std::string summary() const override {
    return "Train a net as graphs: trainers, and pservers that keep it";
  }
  std::string details() const override {
    return "The net is cut into graphs, one for each pod, which find each other through the cluster's store. "
           "Follows the\n"
           "job to its end and exits with its result. Ctrl-C asks whether to end it or to leave it "
           "running.\n\n"
           "Examples:\n"
           "  trainyard graph --model examples/mnist/model.py --training-data train --trainers 2 --pservers "
           "2 "
           "\\\n"
           "    --passes 2 --output model\n"
           "  trainyard graph --model net.py --detach --name nightly; trainyard graph outputs nightly\n"
           "  trainyard graph show --model net.py --trainers 1";
  }

  void Declare(Flags& flags) override {
    model_.Declare(flags);
    const std::string group = "Workers";
    flags.Number({.name = "--min-trainers",
                  .value = "N",
                  .help = "Trainers come and go with the cluster's load; so many at least",
                  .group = group},
                 least_);
    flags.Number({.name = "--max-trainers", .value = "N", .help = "And so many at most", .group = group},
                 most_);
    for (const auto& [role, resource] : {std::pair("trainer", &trainer_), std::pair("pserver", &pserver_)}) {
      flags.Text({.name = StrCat("--", role, "-cpu"),
                  .value = "AMOUNT",
                  .help = StrCat("What a ", role, " asks for, as 1 or 500m"),
                  .group = group},
                 resource->cpu);
      flags.Text({.name = StrCat("--", role, "-memory"),
                  .value = "AMOUNT",
                  .help = "Likewise, as 512Mi; also the most it gets",
                  .group = group},
                 resource->memory);
    }
    flags.Number({.name = "--restart-limit",
                  .value = "N",
                  .help = "How often the pods of a side are made again (as often as it takes)",
                  .group = group},
                 restarts_);
    flags.Number(
        {.name = "--threads", .value = "N", .help = "Threads inside one operator (1)", .group = group},
        threads_);
    const std::string results = "Checkpoints, results";
    flags.Number({.name = "--checkpoint-steps",
                  .value = "N",
                  .help = "Steps between two checkpoints (100)",
                  .group = results},
                 checkpoint_steps_);
    flags.Text(
        {.name = "--on-nonfinite",
         .value = "WHAT",
         .help = "What to do when a loss or a variable becomes NaN or infinite: fail, warn or skip (fail)",
         .one_of = {"fail", "warn", "skip"},
         .group = results},
        on_nonfinite_);
    flags.Text({.name = "--init-from",
                .value = "DIR",
                .help = "Begin with the model that was saved there",
                .group = results},
               init_from_);
    flags.Text({.name = "--output", .value = "DIR", .help = "Where the trained model goes", .group = results},
               output_);
    flags.Text({.name = "--name",
                .value = "NAME",
                .help = "The job's (the model's, and some letters)",
                .group = "Cluster"},
               name_);
    DeclareCluster(flags, cluster_);
    DeclarePods(flags, cluster_);
    flags.Text({.name = "--store",
                .value = "URL",
                .help = "Through which graphs find each other, as etcd://HOST:PORT (the namespace's own)",
                .group = "Cluster"},
               cluster_.store);
    flags.Switch({.name = "--detach", .help = "Return when the job is submitted"}, detach_);
    flags.Switch(
        {.name = "--keep", .help = "Keep the job when it is complete, for `graph outputs` and `save`"},
        keep_);
  }

  absl::Status Run() override {
    if (detach_ && !output_.empty())
      return UsageError("--output is written at the end: leave --detach out, or use `trainyard graph save`");
    TY_RETURN_IF_ERROR(CheckOutput());
    TY_ASSIGN_OR_RETURN(const graph::Graphs graphs, model_.Transpile());
    if (name_.empty()) name_ = NameOfModel(model_.model());
    TY_ASSIGN_OR_RETURN(const Sides sides, TakeFlags(static_cast<int>(graphs.trainers.size())));
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto yard, client::GraphJobs::Open(cluster_));
    // It outlives this process if that is what its user wants: ended it is by name.
    client::JobOptions options{.run_type = client::RunType::kBackground};
    if (checkpoint_steps_) options.checkpoint_every = *checkpoint_steps_;
    options.on_nonfinite = graph::ParseOnNonFinite(on_nonfinite_).value_or(options.on_nonfinite);
    TY_ASSIGN_OR_RETURN(const auto job, yard->InitJob(name_, options));
    if (const absl::Status begun = Begin(*job, graphs, sides); !begun.ok()) {
      job->Stop().IgnoreError();
      return begun;
    }
    std::cerr << "job " << name_ << " is submitted" << std::endl;
    if (detach_) return Print(StrCat(name_, "\n"));
    return Follow(*job, signals);
  }

 private:
  struct Sides {
    client::WorkersOptions trainers;
    client::WorkersOptions pservers;
  };

  // A folder may appear with the first pod; a claim is mounted or not.
  absl::Status CheckOutput() const {
    if (output_.empty() || cluster_.storage.empty()) return absl::OkStatus();
    const absl::StatusOr<client::Storage> storage = client::ParseStorage(cluster_.storage);
    if (!storage.ok()) return UsageError(StrCat("--storage: ", Message(storage.status())));
    std::error_code unseen;
    const std::string path = client::MountPath(*storage);
    if (std::holds_alternative<client::SharedFolder>(*storage) || std::filesystem::is_directory(path, unseen))
      return absl::OkStatus();
    return UsageError(
        StrCat("--output is written on this machine, which does not see the storage ", cluster_.storage,
               ": give --keep instead, and run `trainyard graph save` where that is ", "mounted at ", path));
  }

  absl::StatusOr<Sides> TakeFlags(int trainers) const {
    if (const absl::Status valid = client::CheckJobName(name_); !valid.ok())
      return UsageError(StrCat("--name: ", Message(valid)));
    if (checkpoint_steps_ && *checkpoint_steps_ < 1)
      return UsageError("--checkpoint-steps must be at least 1");
    if (threads_ && (*threads_ < 1 || *threads_ > kMostThreads))
      return UsageError(StrCat("--threads must be between 1 and ", kMostThreads));
    if (restarts_ && (*restarts_ < 0 || !std::in_range<int>(*restarts_)))
      return UsageError("--restart-limit must be 0 or more");
    Sides sides;
    for (const auto& [flag, given, side] : {std::tuple("--trainer", &trainer_, &sides.trainers),
                                            std::tuple("--pserver", &pserver_, &sides.pservers)}) {
      auto checked = client::CheckResource(*given);
      if (!checked.ok())
        return UsageError(StrCat(flag, "-cpu, ", flag, "-memory: ", Message(checked.status())));
      side->resource = *std::move(checked);
      if (restarts_) side->restart_limit = static_cast<int>(*restarts_);
      if (threads_) side->threads = static_cast<int>(*threads_);
    }
    if (!least_ && !most_) return sides;
    const std::int64_t least = least_.value_or(trainers);
    const std::int64_t most = most_.value_or(trainers);
    if (least < 1 || least > trainers || most < trainers || !std::in_range<int>(most))
      return UsageError(StrCat("--min-trainers and --max-trainers must be around the ", trainers,
                               " that it begins with, and are ", least, " and ", most));
    sides.trainers.elastic = {.least = static_cast<int>(least), .most = static_cast<int>(most)};
    return sides;
  }

  absl::Status Begin(client::Job& job, const graph::Graphs& graphs, const Sides& sides) const {
    TY_ASSIGN_OR_RETURN(client::Workers* const pservers, job.AddWorkers(graphs.pservers, sides.pservers));
    TY_ASSIGN_OR_RETURN(client::Workers* const trainers, job.AddWorkers(graphs.trainers, sides.trainers));
    if (!init_from_.empty()) TY_RETURN_IF_ERROR(job.Load(init_from_, /*allow_missing=*/false));
    TY_RETURN_IF_ERROR(pservers->Start());
    return trainers->Start();
  }

  absl::Status Follow(client::Job& job, const EndingSignals& signals) const {
    TY_ASSIGN_OR_RETURN(const auto outputs, job.trainers()->Get({}));
    GraphProgress progress(model_.passes());
    client::JobStatus status;
    SteadyTime looked;
    StatusLine line;
    while (true) {
      if (const std::optional<int> signal = signals.NextFor(absl::ZeroDuration())) {
        line.End();
        const Interruption wish = AskAboutJob(StrCat("job ", name_), *signal, signals);
        if (wish == Interruption::kLeave) return Leave();
        if (wish == Interruption::kEnd) return End(job);
      }
      const absl::StatusOr<client::GraphOutput> output = outputs->Next(kGraphTick);
      if (output.ok()) progress.Take(*output);
      if (absl::IsOutOfRange(output.status())) break;
      if (!output.ok() && !absl::IsDeadlineExceeded(output.status())) {
        line.End();
        return Failed(output.status());
      }
      const SteadyTime now = Clock::System().Steady();
      if (looked != SteadyTime() && now - looked < kGraphPollInterval) continue;
      looked = now;
      if (auto seen = job.Status(); seen.ok()) {
        // Anything but "Running" by itself has a reason that people want to see.
        if (seen->phase != status.phase && seen->phase.find(": ") != std::string::npos) line.Say(seen->phase);
        status = *std::move(seen);
      }
      line.Show(progress.Text(status));
    }
    line.End();
    return Finish(job, progress);
  }

  absl::Status Finish(client::Job& job, const GraphProgress& progress) const {
    if (!output_.empty()) {
      TY_ASSIGN_OR_RETURN(const std::int64_t step, job.Save(output_));
      std::cerr << "the model of step " << step << " is in " << output_ << std::endl;
    }
    // Of the model: trainers count their own, and put out some of them.
    TY_ASSIGN_OR_RETURN(const client::JobStatus status, job.Status());
    TY_RETURN_IF_ERROR(Print(StrCat(progress.Summary(status.steps), "\n")));
    return keep_ ? absl::OkStatus() : job.Stop();
  }

  absl::Status End(client::Job& job) const {
    std::cerr << "ending job " << name_ << std::endl;
    if (!output_.empty()) {
      const auto step = job.Save(output_);
      if (!step.ok()) {
        std::cerr << "no model is saved: " << Message(step.status()) << std::endl;
      } else {
        std::cerr << "the model of step " << *step << " is in " << output_ << std::endl;
      }
    }
    TY_RETURN_IF_ERROR(job.Stop());
    return absl::CancelledError(StrCat("job ", name_, " was ended"));
  }

  absl::Status Leave() const {
    std::cerr << "job " << name_ << " goes on: `trainyard graph outputs " << name_
              << "` follows it, `trainyard graph delete " << name_ << "` ends it" << std::endl;
    return absl::OkStatus();
  }

  absl::Status Failed(const absl::Status& why) const {
    return absl::InternalError(StrCat("job ", name_, " has failed: ", Message(why),
                                      "; see `trainyard why aitrainingjob/", client::ObjectName(name_), "`"));
  }

  GraphModelFlags model_;
  client::ClusterOptions cluster_;
  std::string name_, init_from_, output_, on_nonfinite_;
  graph::Resource trainer_, pserver_;
  std::optional<std::int64_t> least_, most_, restarts_, threads_, checkpoint_steps_;
  bool detach_ = false;
  bool keep_ = false;
};

class GraphShow final : public Command {
 public:
  std::string name() const override { return "graph show"; }
  std::string summary() const override { return "Print the graphs that a net would be cut into"; }
  std::string details() const override {
    return "Example:\n  trainyard graph show --model examples/mnist/model.py --training-data train "
           "--pservers 2";
  }
  void Declare(Flags& flags) override { model_.Declare(flags); }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const graph::Graphs graphs, model_.Transpile());
    std::string out;
    for (const auto* const side : {&graphs.trainers, &graphs.pservers}) {
      for (const graph::Graph& graph : *side) StrAppend(out, TextOf(graph), "\n");
    }
    return Print(out);
  }

 private:
  GraphModelFlags model_;
};

}  // namespace

std::unique_ptr<Command> NewGraph() { return std::make_unique<GraphCommand>(); }
std::unique_ptr<Command> NewGraphShow() { return std::make_unique<GraphShow>(); }

}  // namespace trainyard::cli
