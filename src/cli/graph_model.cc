#include "cli/graph_model.h"

#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/client_flags.h"
#include "cli/compiled_model.h"
#include "master/program_file.h"
#include "master/spec.h"
#include "ps/job.h"

namespace trainyard::cli {
namespace {

constexpr std::int64_t kMostGraphs = 10000;

}  // namespace

void GraphModelFlags::Declare(Flags& flags) {
  const std::string model = "Model";
  flags.Text({.name = "--model",
              .value = "FILE",
              .help = "A file of Python with a function net(job), or a program that was saved",
              .group = model},
             model_);
  flags.Texts({.name = "--param",
               .value = "NAME=VALUE",
               .help = "Something for net(job), in job.params; may be repeated",
               .group = model},
              params_);
  flags.Texts({.name = "--training-data",
               .value = "PATH",
               .help = "Files, globs or a folder, in job.training_data; may be repeated",
               .group = model},
              data_);
  flags.Number({.name = "--minibatch",
                .value = "N",
                .help = "Records of a batch, in job.minibatch (64)",
                .group = model},
               minibatch_);
  flags.Number({.name = "--seed", .value = "N", .help = "Of first values, in job.seed (1)", .group = model},
               seed_);
  flags.Text({.name = "--python",
              .value = "FILE",
              .help = "The interpreter that reads the model (/usr/bin/python3)",
              .group = model},
             python_);
  const std::string graphs = "Graphs";
  flags.Number({.name = "--trainers", .value = "N", .help = "Trainers (2)", .group = graphs}, trainers_);
  flags.Number({.name = "--pservers", .value = "N", .help = "Pservers (1)", .group = graphs}, pservers_);
  flags.Number(
      {.name = "--passes", .value = "N", .help = "How often all records are used (1)", .group = graphs},
      passes_);
  flags.Switch({.name = "--async",
                .help = "Each gradient is used when it comes, and no trainer waits for another",
                .group = graphs},
               async_);
}

absl::Status GraphModelFlags::TakeNumbers() {
  if (model_.empty()) return UsageError("--model is missing: a file of Python, or a program that was saved");
  for (const auto& [flag, given] :
       {std::pair("--trainers", &trainers_), std::pair("--pservers", &pservers_)}) {
    if (*given && (**given < 1 || **given > kMostGraphs))
      return UsageError(StrCat(flag, " must be between 1 and ", kMostGraphs, ", and is ", **given));
  }
  for (const auto& [flag, given] : {std::pair("--passes", &passes_), std::pair("--minibatch", &minibatch_)}) {
    if (*given && **given < 1) return UsageError(StrCat(flag, " must be at least 1, and is ", **given));
  }
  if (trainers_) options_.trainers = static_cast<int>(*trainers_);
  if (pservers_) options_.pservers = static_cast<int>(*pservers_);
  if (passes_) options_.passes = *passes_;
  if (async_) options_.mode = graph::SyncMode::kAsync;
  return absl::OkStatus();
}

absl::StatusOr<graph::Programs> GraphModelFlags::ReadPrograms() const {
  if (!model_.ends_with(".py")) {
    TY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(model_, kMostModelBytes));
    auto programs = master::DecodePrograms(bytes);
    return programs.ok() ? std::move(programs) : Annotate(programs.status(), StrCat("--model ", model_));
  }
  master::JobSpec job{.name = NameOfModel(model_)};
  TY_ASSIGN_OR_RETURN(job.params, ParsePairs("--param", params_));
  for (const std::string& source : data_) job.training_data.push_back(AbsolutePaths(source));
  job.minibatch = minibatch_.value_or(job.minibatch);
  job.seed = static_cast<std::uint64_t>(seed_.value_or(static_cast<std::int64_t>(job.seed)));
  TY_ASSIGN_OR_RETURN(const CompiledModel compiled, CompileModel(python_, model_, job));
  if (compiled.program.empty())
    return absl::InvalidArgumentError(StrCat(
        "the model ", model_,
        " has no function net(job): graphs are made of a net; `trainyard train` runs other functions"));
  return master::DecodePrograms(compiled.program);
}

absl::StatusOr<graph::Graphs> GraphModelFlags::Transpile() {
  TY_RETURN_IF_ERROR(TakeNumbers());
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, ReadPrograms());
  auto graphs = graph::Transpile(programs, options_);
  absl::Status checked = graphs.status();
  if (checked.ok()) checked = ps::FindRead(graphs->trainers.front()).status();
  if (!checked.ok()) return Annotate(checked, StrCat("--model ", model_));
  return graphs;
}

}  // namespace trainyard::cli
