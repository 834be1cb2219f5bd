// One file of records, of whatever format: what a format implements. Messages are without the file's name,
// which whoever has the path puts before them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "data/file_bytes.h"
#include "data/record_source.h"
#include "data/scratch.h"

namespace trainyard::data {

// Reads a file for one thread.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // The range is within the file.
  virtual absl::Status Read(RecordRange range, RecordVisitor visit) = 0;
};

// The index of a file. Immutable: any number of threads may use it.
class RecordFile {
 public:
  virtual ~RecordFile() = default;
  virtual std::uint64_t Count() const = 0;
  // `bytes` are those the index was made of; `scratch` outlives the reader, and has one reader at a time.
  virtual std::unique_ptr<FileReader> NewReader(std::shared_ptr<const FileBytes> bytes,
                                                Scratch& scratch) const = 0;
  // "line 17", "byte 784".
  virtual std::string Where(std::uint64_t number, const FileBytes& bytes) const = 0;
  virtual const ItemShape* Shape() const { return nullptr; }
};

}  // namespace trainyard::data
