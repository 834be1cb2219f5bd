// trainyard train, trainyard evaluate, trainyard predict
#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/elastic_flags.h"
#include "cli/ending_signals.h"
#include "cli/status_line.h"
#include "client/elastic_job.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kTrainRefresh = absl::Milliseconds(200);

// One line of where a job stands, and the lines of what has happened to it.
class ProgressPrinter {
 public:
  void Show(const client::ElasticNews& news) {
    for (const kube::GonePod& pod : news.replaced)
      line_.Say(StrCat(pod.member, " is restarted: ", pod.pod, " ", pod.cause));
    if (!news.progress) return line_.Show(news.phase.empty() ? "the job is starting" : news.phase);
    restarts_ = news.restarts;
    ShowRestartsInPlace(news.progress->master_restarts);
    line_.Show(Text(*news.progress));
  }
  void End() { line_.End(); }

  std::string Text(const job::Progress& progress) const {
    const bool trains = progress.phase == job::WorkPhase::kTraining;
    std::string text =
        trains ? StrCat("epoch ", progress.epoch, "/", progress.epochs) : LowerCase(Print(progress.phase));
    StrAppend(text, "  ", progress.records, "/", progress.epoch_records, " records");
    if (progress.loss) text += fmt::format("  loss {:.4f}", *progress.loss);
    if (progress.nonfinite > 0)
      StrAppend(text, "  ", progress.nonfinite, " non-finite (", progress.last_nonfinite, ")");
    text += Metrics(progress);
    StrAppend(text, "  ", progress.workers, " workers  ");
    if (progress.pservers > 0) StrAppend(text, progress.pservers, " pservers  ");
    StrAppend(text, restarts_, " restarts");
    const double rate = progress.rate.value_or(0);
    if (rate >= 1) {
      text += fmt::format("  {:.0f} records/s", rate);
      const double all = static_cast<double>(progress.epoch_records) * static_cast<double>(progress.epochs);
      const double left = (all - static_cast<double>(progress.total_records)) / rate;
      if (trains && left > 0)
        StrAppend(text, "  ", absl::FormatDuration(absl::Seconds(std::ceil(left))), " left");
    }
    if (progress.checkpoint.starts_with("could not")) StrAppend(text, "  checkpoint ", progress.checkpoint);
    if (!progress.waiting.empty() && rate < 1) StrAppend(text, "  waiting for ", progress.waiting);
    return text;
  }

  static std::string Metrics(const job::Progress& progress) {
    std::string text;
    for (const auto& [name, value] : progress.metrics) text += fmt::format("  {} {:.4f}", name, value);
    return text;
  }

 private:
  // Those of the master, which the agent in its pod has made since the last call.
  void ShowRestartsInPlace(const job::MasterRestarts& restarts) {
    const std::int64_t before = std::exchange(in_place_, std::max(in_place_, restarts.count));
    const std::size_t size = restarts.last.size();
    for (std::size_t i = size - std::min(size, static_cast<std::size_t>(in_place_ - before)); i < size; ++i)
      line_.Say(StrCat("the master is restarted in its pod: it ", restarts.last[i].cause));
  }

  std::int64_t in_place_ = 0;
  StatusLine line_;
  std::int64_t restarts_ = 0;
};

class ElasticCommand final : public Command {
 public:
  explicit ElasticCommand(master::JobKind kind) : kind_(kind), flags_(kind) {}

  std::string name() const override { return std::string(master::Name(kind_)); }
  std::string summary() const override {
    switch (kind_) {
      case master::JobKind::kTrain:
        return "Train a model with workers that come and go";
      case master::JobKind::kEvaluate:
        return "Evaluate a trained model on data, with many workers";
      case master::JobKind::kPredict:
        return "Predict with a trained model, with many workers";
    }
    return "";
  }
  std::string details() const override {
    switch (kind_) {
      case master::JobKind::kTrain:
        return "Follows the job to its end and exits with its result. Ctrl-C asks whether to end it, after a "
               "last checkpoint,\n"
               "or to leave it running.\n\n"
               "Examples:\n"
               "  trainyard train --model examples/mnist/model.py --training-data train --validation-data "
               "test \\\n"
               "    --epochs 2 --workers 2 --max-workers 4 --checkpoint-dir ckpt --output out\n"
               "  trainyard train --model model.py --training-data 'data/part-*' --async --detach --name "
               "nightly";
      case master::JobKind::kEvaluate:
        return "Prints the means of the model's metrics over all records.\n\n"
               "Example:\n"
               "  trainyard evaluate --model examples/mnist/model.py --init-from ckpt --validation-data test";
      case master::JobKind::kPredict:
        return "Example:\n"
               "  trainyard predict --model examples/mnist/model.py --init-from ckpt --prediction-data test "
               "--output out";
    }
    return "";
  }

  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    flags.Switch({.name = "--detach", .help = "Return when the job is submitted"}, detach_);
    flags.Switch({.name = "--keep", .help = "Keep the pods of a job that is complete, for their logs"},
                 keep_);
    flags.Switch({.name = "--dry-run", .help = "Print the objects as JSON instead of submitting them"},
                 dry_run_);
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(client::ElasticSettings settings, flags_.Settings());
    if (dry_run_) {
      const std::string storage = flags_.Cluster().storage;
      settings.pods.sees_client = storage.empty();  // which cluster it would be is not asked
      if (!storage.empty()) {
        TY_ASSIGN_OR_RETURN(settings.pods.storage, client::ParseStorage(storage));
      }
      if (const absl::Status found = client::ResolvePaths(settings); !found.ok())
        return UsageError(Message(found));
      settings.state_dir =
          StrCat(storage.empty() ? "STORAGE" : client::MountPath(settings.pods.storage), "/elastic");
      std::cout << PrintJson(client::JobConfig(settings)) << "\n"
                << PrintJson(client::ElasticJobObject(settings)) << std::endl;
      return absl::OkStatus();
    }
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto cluster, client::Cluster::Open(flags_.Cluster()));
    const std::string job_name = settings.spec.name;
    const auto submitted = client::ElasticJob::Submit(*cluster, std::move(settings));
    if (absl::IsInvalidArgument(submitted.status())) return UsageError(Message(submitted.status()));
    TY_RETURN_IF_ERROR(submitted);
    client::ElasticJob& job = **submitted;
    std::cerr << "job " << job_name << " is submitted" << std::endl;
    if (detach_) {
      std::cout << job_name << std::endl;
      return absl::OkStatus();
    }
    return Follow(job, job_name, signals);
  }

 private:
  absl::Status Follow(client::ElasticJob& job, const std::string& job_name, const EndingSignals& signals) {
    ProgressPrinter printer;
    for (;;) {
      const client::ElasticNews news = job.Await(kTrainRefresh);
      if (const std::optional<int> signal = signals.NextFor(absl::ZeroDuration())) {
        printer.End();
        switch (AskAboutJob(StrCat("job ", job_name), *signal, signals)) {
          case Interruption::kEnd:
            std::cerr << "ending job " << job_name << std::endl;
            TY_RETURN_IF_ERROR(job.Delete());
            return absl::CancelledError(StrCat("job ", job_name, " was ended; its checkpoints stay"));
          case Interruption::kLeave:
            std::cerr << "job " << job_name << " goes on: `trainyard get elastic/" << job_name
                      << " -w` shows it, `trainyard delete elastic/" << job_name << "` ends it" << std::endl;
            return absl::OkStatus();
          case Interruption::kGoOn:
            break;
        }
      }
      printer.Show(news);
      const job::Progress progress = news.progress.value_or(job::Progress());
      if (progress.phase == job::WorkPhase::kComplete) {
        printer.End();
        std::cout << Summary(progress, news.restarts) << std::endl;
        return keep_ ? absl::OkStatus() : job.Delete();
      }
      if (progress.phase == job::WorkPhase::kFailed || news.failed) {
        printer.End();
        return absl::InternalError(
            StrCat("job ", job_name, " has failed: ", progress.reason.empty() ? news.phase : progress.reason,
                   "; its pods are kept: `trainyard logs elastic/", job_name, "`"));
      }
      if (news.gone || news.ended) {
        printer.End();
        return absl::InternalError(
            StrCat("job ", job_name, news.gone ? " was deleted" : " has ended without a result"));
      }
    }
  }

  std::string Summary(const job::Progress& progress, std::int64_t restarts) const {
    std::string text = StrCat(kind_ == master::JobKind::kTrain      ? "trained "
                              : kind_ == master::JobKind::kEvaluate ? "evaluated "
                                                                    : "predicted ",
                              progress.total_records, " records");
    if (kind_ == master::JobKind::kTrain) StrAppend(text, ", version ", progress.version);
    if (progress.nonfinite > 0)
      StrAppend(text, ", ", progress.nonfinite, " times not finite (", progress.last_nonfinite, ")");
    return StrCat(text, ProgressPrinter::Metrics(progress), "  ", restarts, " restarts");
  }

  const master::JobKind kind_;
  ElasticFlags flags_;
  bool detach_ = false;
  bool keep_ = false;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> NewTrain() { return std::make_unique<ElasticCommand>(master::JobKind::kTrain); }
std::unique_ptr<Command> NewEvaluate() {
  return std::make_unique<ElasticCommand>(master::JobKind::kEvaluate);
}
std::unique_ptr<Command> NewPredict() { return std::make_unique<ElasticCommand>(master::JobKind::kPredict); }

}  // namespace trainyard::cli
