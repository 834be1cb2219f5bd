#include "master/data.h"

#include <algorithm>

#include "base/permutation.h"
#include "base/status.h"
#include "base/text.h"
#include "data/paths.h"

namespace trainyard::master {

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& source) {
  std::vector<std::string> paths;
  for (const std::string_view path : Split(std::string_view(source), ',')) paths.emplace_back(path);
  return data::ExpandPaths(paths);
}

absl::StatusOr<data::OpenOptions> DataOptionsOf(const JobSpec& spec) {
  data::OpenOptions options;
  TY_ASSIGN_OR_RETURN(options.format, data::ParseFormat(spec.data_format));
  options.csv.header = spec.skip_header;
  return options;
}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const DataSources& sources,
                                                                 const data::OpenOptions& options) {
  auto reader = std::make_unique<RecordReader>();
  for (const std::string& source : sources) {
    TY_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(source));
    TY_ASSIGN_OR_RETURN(auto records, data::OpenRecords(files, options));
    const auto count = static_cast<std::int64_t>(records->Count());
    if (!reader->sources_.empty() && count != reader->count_) {
      return absl::InvalidArgumentError(StrCat(source, " has ", count, " records, and ", sources.front(),
                                               " has ", reader->count_, ": they go together by number"));
    }
    reader->count_ = count;
    auto cursor = records->NewCursor();
    reader->sources_.push_back({std::move(records), std::move(cursor)});
  }
  return reader;
}

absl::StatusOr<std::vector<std::vector<std::string>>> RecordReader::Read(
    const std::vector<std::int64_t>& places) {
  std::vector<std::vector<std::string>> lists;
  for (Source& source : sources_) {
    std::vector<std::string>& list = lists.emplace_back();
    list.reserve(places.size());
    for (std::size_t i = 0; i < places.size();) {
      std::size_t run = 1;
      while (i + run < places.size() && places[i + run] == places[i] + static_cast<std::int64_t>(run)) ++run;
      TY_RETURN_IF_ERROR(
          source.cursor->Read({static_cast<std::uint64_t>(places[i]), run}, [&](std::string_view record) {
            list.emplace_back(record);
            return absl::OkStatus();
          }));
      i += run;
    }
  }
  return lists;
}

const DataSources& SourcesOf(const JobSpec& spec, tasks::Kind kind) {
  switch (kind) {
    case tasks::Kind::kTraining:
      return spec.training_data;
    case tasks::Kind::kEvaluation:
      return spec.validation_data;
    case tasks::Kind::kPrediction:
      break;
  }
  return spec.prediction_data;
}

absl::StatusOr<std::int64_t> CountRecordsOf(const JobSpec& spec, tasks::Kind kind) {
  if (!spec.data_reader.empty()) {
    return kind == tasks::Kind::kTraining     ? spec.training_records
           : kind == tasks::Kind::kEvaluation ? spec.validation_records
                                              : spec.prediction_records;
  }
  TY_ASSIGN_OR_RETURN(const data::OpenOptions options, DataOptionsOf(spec));
  TY_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(SourcesOf(spec, kind), options));
  return reader->count();
}

std::vector<std::int64_t> NumbersOf(const JobSpec& spec, const tasks::Task& task, tasks::Range range,
                                    std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(range.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = range.begin + static_cast<std::int64_t>(i);
  if (task.kind != tasks::Kind::kTraining || spec.shuffle != "records") return numbers;
  const Permutation order(count, task.epoch, spec.seed);
  for (std::int64_t& number : numbers) number = order.At(number);
  return numbers;
}

std::string PredictionFile(const JobSpec& spec, const tasks::Task& task) {
  const auto padded = [](std::int64_t number) {
    std::string digits = std::to_string(number);
    return digits.insert(0, 12 - std::min<std::size_t>(12, digits.size()), '0');
  };
  return StrCat(spec.output, "/part-", padded(task.records.begin), "-", padded(task.records.end),
                ".recordio");
}

}  // namespace trainyard::master
