// The records of an elastic job: which files a user's words stand for, how many records they have, and
// reading ranges of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/open.h"
#include "data/record_source.h"
#include "master/spec.h"
#include "tasks/task.h"

namespace trainyard::master {

// "a,b/*": the files of it; a folder stands for the files in it that are not hidden, in the order of bytes.
// NotFound: nothing is there.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& source);

absl::StatusOr<data::OpenOptions> DataOptionsOf(const JobSpec& spec);

// Several sources whose records go together by number. One thread at a time.
class RecordReader {
 public:
  // InvalidArgument: they do not have the same number of records.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const DataSources& sources,
                                                            const data::OpenOptions& options);
  std::int64_t count() const { return count_; }
  std::size_t sources() const { return sources_.size(); }
  // The records of these numbers: of each source a list. `places` are record numbers in any order.
  absl::StatusOr<std::vector<std::vector<std::string>>> Read(const std::vector<std::int64_t>& places);

 private:
  struct Source {
    std::unique_ptr<const data::RecordSource> records;
    std::unique_ptr<data::RecordCursor> cursor;
  };
  std::vector<Source> sources_;
  std::int64_t count_ = 0;
};

const DataSources& SourcesOf(const JobSpec& spec, tasks::Kind kind);

// How many records these sources have: as their files say, or as the job was told where its model reads them.
absl::StatusOr<std::int64_t> CountRecordsOf(const JobSpec& spec, tasks::Kind kind);

// The numbers of the records that a task's range stands for: the range itself, or other ones in each epoch
// where records are shuffled.
std::vector<std::int64_t> NumbersOf(const JobSpec& spec, const tasks::Task& task, tasks::Range range,
                                    std::int64_t count);

// Where the predictions of a task go: the same file whoever makes them.
std::string PredictionFile(const JobSpec& spec, const tasks::Task& task);

}  // namespace trainyard::master
