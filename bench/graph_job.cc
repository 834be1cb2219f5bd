// Two trainers and two pservers on two cores against one process that has both cores for itself.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/graph.h"

namespace trainyard::bench {
namespace {

constexpr int kEach = 2;  // trainers, pservers, cores
constexpr std::int64_t kGraphJobBatch = 512;
constexpr absl::Duration kGraphJobPatience = absl::Seconds(120);

// From the first loss that a trainer has put out to its last.
absl::StatusOr<double> RateOf(GraphProcesses& job, const std::string& trainer) {
  TY_ASSIGN_OR_RETURN(const kv::RangeResult found,
                      job.store().Range({.range = kv::KeyRange::Prefix(job.keys().Outputs(trainer))}));
  if (found.kvs.size() < 2) return absl::InternalError(StrCat(trainer, " has put out no two losses"));
  TY_ASSIGN_OR_RETURN(const ps::Output first, ps::DecodeOutput(found.kvs.front().value));
  TY_ASSIGN_OR_RETURN(const ps::Output last, ps::DecodeOutput(found.kvs.back().value));
  return static_cast<double>((last.step - first.step) * kGraphJobBatch * kEach) /
         absl::ToDoubleSeconds(last.time - first.time);
}

absl::StatusOr<double> RunJob(const Settings& settings, const Digits& digits, int round) {
  TY_ASSIGN_OR_RETURN(const graph::Programs programs,
                      MakeMlp(digits, kGraphJobBatch, /*output=*/settings.quick ? 1 : 50));
  const graph::TranspileOptions options{
      .trainers = kEach, .passes = settings.quick ? 2 : 8, .pservers = kEach};
  TY_ASSIGN_OR_RETURN(const graph::Graphs graphs, graph::Transpile(programs, options));
  TY_ASSIGN_OR_RETURN(const auto job, GraphProcesses::Make(settings, StrCat("job-", round)));
  TY_RETURN_IF_ERROR(job->Submit(graphs));
  for (const auto* side : {&graphs.pservers, &graphs.trainers}) {
    for (const graph::Graph& graph : *side) TY_RETURN_IF_ERROR(job->Start(graph.id));
  }
  for (const auto* side : {&graphs.trainers, &graphs.pservers}) {
    for (const graph::Graph& graph : *side) TY_RETURN_IF_ERROR(job->Await(graph.id, kGraphJobPatience));
  }
  return RateOf(*job, graphs.trainers[0].id);
}

// The same steps in one process.
absl::StatusOr<double> RunHere(const Settings& settings, const Digits& digits) {
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, MakeMlp(digits, kEach * kGraphJobBatch));
  TY_ASSIGN_OR_RETURN(const auto training, LocalTraining::Make(programs, kEach));
  TY_RETURN_IF_ERROR(training->Step());
  const SteadyTime begin = Clock::System().Steady();
  absl::Duration took;
  std::int64_t steps = 0;
  do {
    TY_RETURN_IF_ERROR(training->Step());
    ++steps;
    took = Clock::System().Steady() - begin;
  } while (took < settings.time);
  return static_cast<double>(steps * kEach * kGraphJobBatch) / absl::ToDoubleSeconds(took);
}

absl::StatusOr<Pair> MeasureJob(const Settings& settings) {
  // A whole number of batches for each trainer.
  TY_ASSIGN_OR_RETURN(const Digits digits, WriteDigits(settings.folder + "/job-digits",
                                                       kEach * kGraphJobBatch * (settings.quick ? 2 : 58)));
  std::vector<double> figures;
  std::vector<double> limits;
  for (int round = 0; round < settings.rounds; ++round) {
    TY_ASSIGN_OR_RETURN(limits.emplace_back(), RunHere(settings, digits));
    TY_ASSIGN_OR_RETURN(figures.emplace_back(), RunJob(settings, digits, round));
  }
  return Pair{.figure = Median(figures), .limit = Median(limits)};
}

}  // namespace

void GraphJobRows(const Settings& settings, std::vector<Row>& rows) {
  const absl::StatusOr<Pair> pair = MeasureJob(settings);
  Row row{.name = "graph: the MLP by 2 trainers and 2 pservers, sync, batch 512 each, two cores",
          .unit = "samples/s",
          .limit_name = "one process on both cores",
          .least_ratio = 0.6};
  if (pair.ok()) row.limit = pair->limit;
  Add(rows, std::move(row), pair.ok() ? absl::StatusOr<double>(pair->figure) : pair.status());
}

}  // namespace trainyard::bench
