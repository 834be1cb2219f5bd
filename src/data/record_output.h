// Where converted records go: a RecordIO file, or a folder of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/recordio/writer.h"

namespace trainyard::data {

struct OutputOptions {
  // A folder if it ends in "/", is one already, or records_per_file is given; else a file. What it lies in
  // exists.
  std::string path;
  std::uint64_t records_per_file = 0;  // 0: all in one file
  bool overwrite = false;              // a file, or a folder that has nothing but files of an earlier output
  RecordIoWriterOptions writer;
};

struct OutputSize {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool operator==(const OutputSize&) const = default;
};

// Used by one thread. Files of a folder are data-00000, data-00001... Nothing has its name before Finish(),
// so nobody reads half of it: a file or a folder that is new gets its name in one step, files in a folder
// that was there get theirs one after the other. A process that is killed leaves hidden drafts behind.
class RecordOutput {
 public:
  // Errors name the path. AlreadyExists: there is something, and it may not be overwritten.
  static absl::StatusOr<std::unique_ptr<RecordOutput>> Create(const OutputOptions& options);
  // Without Finish(), nothing is made and what was there stays.
  virtual ~RecordOutput() = default;

  virtual absl::Status Write(std::string_view record) = 0;
  // There is a file even for no records. The last call.
  virtual absl::StatusOr<OutputSize> Finish() = 0;
};

}  // namespace trainyard::data
