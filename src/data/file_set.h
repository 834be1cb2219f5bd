// Many files as one sequence of records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/file_bytes.h"
#include "data/file_pool.h"
#include "data/record_file.h"
#include "data/record_source.h"

namespace trainyard::data {

class FileSet final : public RecordSource {
 public:
  // Behind those that are there. Before the first cursor.
  void Add(std::string path, std::unique_ptr<const RecordFile> file, std::shared_ptr<const FileBytes> bytes);

  void set_format(Format format) { format_ = format; }

  std::uint64_t Count() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::unique_ptr<RecordCursor> NewCursor() const override;
  std::string Where(std::uint64_t number) const override;
  const ItemShape* Shape() const override;
  Format format() const override { return format_; }

 private:
  class Cursor;
  struct File {
    std::string path;
    std::unique_ptr<const RecordFile> index;
  };

  // The file that the record is in.
  std::size_t Find(std::uint64_t number) const;
  std::uint64_t FirstOf(std::size_t file) const { return file == 0 ? 0 : ends_[file - 1]; }

  Format format_ = Format::kAuto;
  std::vector<File> files_;
  std::vector<std::uint64_t> ends_;  // of each file, the number of the first record behind it
  mutable FilePool pool_;            // of the same files
};

}  // namespace trainyard::data
