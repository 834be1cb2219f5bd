// trainyard graph status, outputs, scale, save, delete: graph jobs that were begun, by whomever.
#include "client/graph_jobs.h"

#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "cli/kv_common.h"

namespace trainyard::cli {
namespace {

constexpr absl::Duration kGraphJobsTick = absl::Milliseconds(200);

// A job by its name, and the cluster that it is in.
class NamedJob {
 public:
  void Declare(Flags& flags) {
    flags.Argument("NAME", "The job's, as `trainyard graph` told it", name_);
    DeclareCluster(flags, cluster_);
    flags.Text({.name = "--store",
                .value = "URL",
                .help = "The job's store, as etcd://HOST:PORT (the namespace's own)",
                .group = "Cluster"},
               cluster_.store);
  }
  absl::StatusOr<client::GraphJobs*> Open() {
    if (const absl::Status valid = client::CheckJobName(name_); !valid.ok())
      return UsageError(Message(valid));
    TY_ASSIGN_OR_RETURN(yard_, client::GraphJobs::Open(cluster_));
    return yard_.get();
  }
  absl::StatusOr<std::unique_ptr<client::Job>> Attach() {
    TY_ASSIGN_OR_RETURN(client::GraphJobs* const yard, Open());
    return yard->Attach(name_);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  client::ClusterOptions cluster_;
  std::unique_ptr<client::GraphJobs> yard_;
};

class GraphStatus final : public Command {
 public:
  std::string name() const override { return "graph status"; }
  std::string summary() const override { return "Tell how a graph job stands"; }
  void Declare(Flags& flags) override {
    job_.Declare(flags);
    flags.Text(
        {.name = "-o,--output", .value = "FORMAT", .help = "text or json (text)", .one_of = {"text", "json"}},
        output_);
  }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const auto job, job_.Attach());
    TY_ASSIGN_OR_RETURN(const client::JobStatus status, job->Status());
    if (output_ == "json") {
      const Document document = Object{{"name", job_.name()},         {"state", client::Name(status.state)},
                                       {"reason", status.reason},     {"phase", status.phase},
                                       {"trainers", status.trainers}, {"pservers", status.pservers},
                                       {"steps", status.steps}};
      return Print(StrCat(PrintJson(document), "\n"));
    }
    std::string text = StrCat("job ", job_.name(), ": ", client::Name(status.state));
    if (!status.reason.empty()) StrAppend(text, ": ", status.reason);
    StrAppend(text, "\n", status.trainers, " trainers, ", status.pservers, " pservers");
    if (status.steps > 0) StrAppend(text, ", ", status.steps, " steps");
    if (!status.phase.empty())
      StrAppend(text, "\naitrainingjob/", client::ObjectName(job_.name()), ": ", status.phase);
    return Print(StrCat(text, "\n"));
  }

 private:
  NamedJob job_;
  std::string output_ = "text";
};

std::string PrintOutput(const client::GraphOutput& output, bool json) {
  if (json) {
    Array values;
    for (const double value : output.value.values) values.push_back(NumberDocument(value));
    const Document document =
        Object{{"graph", output.graph},         {"pass", output.pass},       {"step", output.step},
               {"committed", output.committed}, {"name", output.value.name}, {"values", std::move(values)}};
    return StrCat(PrintJson(document), "\n");
  }
  std::string text =
      StrCat(output.graph, " pass ", output.pass, " step ", output.step, " ", output.value.name);
  for (const double value : output.value.values) text += fmt::format(" {:.6g}", value);
  return text + (output.committed ? "\n" : " (not committed)\n");
}

class GraphOutputs final : public Command {
 public:
  std::string name() const override { return "graph outputs"; }
  std::string summary() const override { return "Print what a graph job puts out, to its end"; }
  std::string details() const override {
    return "Begins with the first outputs that are kept, and exits with the job's result.\n\n"
           "Examples:\n"
           "  trainyard graph outputs nightly\n"
           "  trainyard graph outputs nightly --var mean_0 -o json";
  }
  void Declare(Flags& flags) override {
    job_.Declare(flags);
    flags.Texts({.name = "--var", .value = "NAME", .help = "Only this output; may be repeated"}, names_);
    flags.Switch({.name = "--uncommitted", .help = "Print the outputs of steps that did not count, too"},
                 uncommitted_);
    flags.Text(
        {.name = "-o,--output", .value = "FORMAT", .help = "text or json (text)", .one_of = {"text", "json"}},
        output_);
  }
  absl::Status Run() override {
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto job, job_.Attach());
    if (job->trainers() == nullptr)
      return absl::FailedPreconditionError(StrCat("job ", job_.name(), " has not been started yet"));
    TY_ASSIGN_OR_RETURN(const auto outputs, job->trainers()->Get(names_, uncommitted_));
    while (!signals.AwaitFor(absl::ZeroDuration())) {
      const absl::StatusOr<client::GraphOutput> output = outputs->Next(kGraphJobsTick);
      if (output.ok()) TY_RETURN_IF_ERROR(Print(PrintOutput(*output, output_ == "json")));
      if (absl::IsOutOfRange(output.status())) break;
      if (!output.ok() && !absl::IsDeadlineExceeded(output.status())) return output.status();
    }
    return absl::OkStatus();
  }

 private:
  NamedJob job_;
  std::vector<std::string> names_;
  bool uncommitted_ = false;
  std::string output_ = "text";
};

class GraphScale final : public Command {
 public:
  std::string name() const override { return "graph scale"; }
  std::string summary() const override { return "Change how many trainers or pservers a graph job has"; }
  std::string details() const override {
    return "Nothing that was learnt is lost.\n\nExample:\n  trainyard graph scale nightly --trainers 4";
  }
  void Declare(Flags& flags) override {
    job_.Declare(flags);
    flags.Number({.name = "--trainers", .value = "N", .help = "So many from the next step on"}, trainers_);
    flags.Number({.name = "--pservers",
                  .value = "N",
                  .help = "So many; they write a checkpoint, are cut anew and go on from it"},
                 pservers_);
  }
  absl::Status Run() override {
    if (!trainers_ && !pservers_) return UsageError("give --trainers N or --pservers N");
    for (const auto& given : {trainers_, pservers_}) {
      if (given && (*given < 1 || !std::in_range<int>(*given)))
        return UsageError(StrCat("a job cannot have ", *given, " of them: 1 is the least"));
    }
    TY_ASSIGN_OR_RETURN(const auto job, job_.Attach());
    for (const auto& [given, workers, what] : {std::tuple(&trainers_, job->trainers(), " trainers"),
                                               std::tuple(&pservers_, job->pservers(), " pservers")}) {
      if (!*given) continue;
      if (workers == nullptr)
        return absl::FailedPreconditionError(StrCat("job ", job_.name(), " has not been started yet"));
      TY_RETURN_IF_ERROR(workers->Scale(static_cast<int>(**given)));
      TY_RETURN_IF_ERROR(Print(StrCat("job ", job_.name(), " is to have ", **given, what, "\n")));
    }
    return absl::OkStatus();
  }

 private:
  NamedJob job_;
  std::optional<std::int64_t> trainers_, pservers_;
};

class GraphSave final : public Command {
 public:
  std::string name() const override { return "graph save"; }
  std::string summary() const override {
    return "Write the model of a graph job's newest checkpoint, or of one step";
  }
  std::string details() const override {
    return "A file NAME.tensor for each variable, for Executor.load().\n\n"
           "Example:\n  trainyard graph save nightly --to model";
  }
  void Declare(Flags& flags) override {
    job_.Declare(flags);
    flags.Text({.name = "--to", .value = "DIR", .help = "Where it goes"}, to_);
    flags.Number(
        {.name = "--step",
         .value = "N",
         .help = "Step of the checkpoint to write (default: the newest, of a complete job the last)"},
        step_);
  }
  absl::Status Run() override {
    if (to_.empty()) return UsageError("--to is missing: the folder that the model goes to");
    TY_ASSIGN_OR_RETURN(const auto job, job_.Attach());
    TY_ASSIGN_OR_RETURN(const std::int64_t step, job->Save(to_, step_));
    return Print(StrCat("the model of step ", step, " is in ", to_, "\n"));
  }

 private:
  NamedJob job_;
  std::string to_;
  std::optional<std::int64_t> step_;
};

class GraphDelete final : public Command {
 public:
  std::string name() const override { return "graph delete"; }
  std::string summary() const override { return "End a graph job and remove it, with its checkpoints"; }
  void Declare(Flags& flags) override { job_.Declare(flags); }
  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(client::GraphJobs* const yard, job_.Open());
    TY_RETURN_IF_ERROR(yard->Kill(job_.name()));
    return Print(StrCat("job ", job_.name(), " is deleted\n"));
  }

 private:
  NamedJob job_;
};

}  // namespace

std::unique_ptr<Command> NewGraphStatus() { return std::make_unique<GraphStatus>(); }
std::unique_ptr<Command> NewGraphOutputs() { return std::make_unique<GraphOutputs>(); }
std::unique_ptr<Command> NewGraphScale() { return std::make_unique<GraphScale>(); }
std::unique_ptr<Command> NewGraphSave() { return std::make_unique<GraphSave>(); }
std::unique_ptr<Command> NewGraphDelete() { return std::make_unique<GraphDelete>(); }

}  // namespace trainyard::cli
