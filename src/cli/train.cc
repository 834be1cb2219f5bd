// trainyard train, trainyard evaluate, trainyard predict
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/elastic_flags.h"
#include "cli/ending_signals.h"
#include "cli/interruption.h"
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
    if (news.progress.is_null()) return line_.Show(news.phase.empty() ? "the job is starting" : news.phase);
    const Document& progress = news.progress;
    restarts_ = news.restarts;
    line_.Show(Text(progress));
  }
  void End() { line_.End(); }

  std::string Text(const Document& progress) const {
    const std::string_view phase = StringAt(progress, {"phase"});
    std::string text;
    if (phase == "Training") {
      text = StrCat("epoch ", IntAt(progress, {"epoch"}).value_or(0), "/",
                    IntAt(progress, {"epochs"}).value_or(0));
    } else {
      for (const char c : phase) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    StrAppend(text, "  ", IntAt(progress, {"records"}).value_or(0), "/",
              IntAt(progress, {"epochRecords"}).value_or(0), " records");
    if (const auto loss = NumberAt(progress, {"loss"})) text += fmt::format("  loss {:.4f}", *loss);
    if (const std::int64_t times = IntAt(progress, {"nonFinite"}).value_or(0); times > 0)
      StrAppend(text, "  ", times, " non-finite (", StringAt(progress, {"lastNonFinite"}), ")");
    text += Metrics(progress);
    StrAppend(text, "  ", IntAt(progress, {"workers"}).value_or(0), " workers  ");
    if (const std::int64_t pservers = IntAt(progress, {"pservers"}).value_or(0); pservers > 0)
      StrAppend(text, pservers, " pservers  ");
    StrAppend(text, restarts_, " restarts");
    const double rate = NumberAt(progress, {"rate"}).value_or(0);
    if (rate >= 1) {
      text += fmt::format("  {:.0f} records/s", rate);
      const double all =
          NumberAt(progress, {"epochRecords"}).value_or(0) * NumberAt(progress, {"epochs"}).value_or(0);
      const double left = (all - NumberAt(progress, {"totalRecords"}).value_or(0)) / rate;
      if (phase == "Training" && left > 0)
        StrAppend(text, "  ", absl::FormatDuration(absl::Seconds(std::ceil(left))), " left");
    }
    if (const std::string_view checkpoint = StringAt(progress, {"checkpoint"});
        checkpoint.starts_with("could not"))
      StrAppend(text, "  checkpoint ", checkpoint);
    if (const std::string_view waiting = StringAt(progress, {"waiting"}); !waiting.empty() && rate < 1)
      StrAppend(text, "  waiting for ", waiting);
    return text;
  }

  static std::string Metrics(const Document& progress) {
    std::string text;
    if (const Object* const metrics = ObjectAt(progress, {"metrics"})) {
      for (const auto& metric : *metrics)
        text += fmt::format("  {} {:.4f}", Key(metric), NumberOf(metric.value()).value_or(0));
    }
    return text;
  }

 private:
  StatusLine line_;
  int restarts_ = 0;
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
      const std::string_view phase = StringAt(news.progress, {"phase"});
      if (phase == "Complete") {
        printer.End();
        std::cout << Summary(news) << std::endl;
        return keep_ ? absl::OkStatus() : job.Delete();
      }
      const std::string_view reason = StringAt(news.progress, {"reason"});
      if (phase == "Failed" || news.failed) {
        printer.End();
        return absl::InternalError(StrCat("job ", job_name,
                                          " has failed: ", reason.empty() ? news.phase : reason,
                                          "; its pods are kept: `trainyard logs elastic/", job_name, "`"));
      }
      if (news.gone || news.ended) {
        printer.End();
        return absl::InternalError(
            StrCat("job ", job_name, news.gone ? " was deleted" : " has ended without a result"));
      }
    }
  }

  std::string Summary(const client::ElasticNews& news) const {
    const Document& progress = news.progress;
    std::string text = StrCat(kind_ == master::JobKind::kTrain      ? "trained "
                              : kind_ == master::JobKind::kEvaluate ? "evaluated "
                                                                    : "predicted ",
                              IntAt(progress, {"totalRecords"}).value_or(0), " records");
    if (kind_ == master::JobKind::kTrain)
      StrAppend(text, ", version ", IntAt(progress, {"version"}).value_or(0));
    if (const std::int64_t times = IntAt(progress, {"nonFinite"}).value_or(0); times > 0)
      StrAppend(text, ", ", times, " times not finite (", StringAt(progress, {"lastNonFinite"}), ")");
    return StrCat(text, ProgressPrinter::Metrics(progress), "  ", news.restarts, " restarts");
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
