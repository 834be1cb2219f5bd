// trainyard data inspect, data verify
#include <algorithm>
#include <iostream>
#include <set>

#include "absl/strings/escaping.h"
#include "base/document.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/data_common.h"
#include "cli/kv_common.h"
#include "data/inspect.h"
#include "data/paths.h"
#include "data/verify.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kShownRecord = 60;  // bytes of a record in a table
constexpr std::size_t kShownWide = 1000;

struct File {
  std::string path;
  absl::StatusOr<data::FileSummary> summary;
};

struct Total {
  data::FileSummary sum;  // bytes, records, chunks
  std::size_t unread = 0;
};

// "snappy", "none, gzip", "-".
template <typename Names>
std::string Joined(const std::set<Names>& names) {
  std::string text;
  for (const Names name : names) StrAppend(text, text.empty() ? "" : ", ", data::NameOf(name));
  return text.empty() ? "-" : text;
}

// "u8 28x28".
std::string PrintShape(const data::ItemShape& shape) {
  std::string text(data::NameOf(shape.type));
  for (std::size_t i = 0; i < shape.dims.size(); ++i) StrAppend(text, i == 0 ? " " : "x", shape.dims[i]);
  return text;
}

// What a format has that others have not.
std::string Content(const data::FileSummary& file) {
  if (file.shape) return StrCat(PrintShape(*file.shape), file.packed ? ", gzip" : "");
  if (file.columns) return Counted(*file.columns, "column");
  if (file.chunks == 0) return "-";
  return StrCat(
      Counted(file.chunks, "chunk"), ", ", Joined(file.compressors),
      file.layouts.contains(data::Layout::kOld) ? StrCat(", ", Joined(file.layouts), " layout") : "");
}

std::vector<std::string> Row(const std::string& name, const data::FileSummary& file, bool wide) {
  std::vector<std::string> row = {Escaped(name), std::string(data::NameOf(file.format)), StrCat(file.records),
                                  FormatBytes(file.bytes)};
  if (!wide) {
    row.push_back(Content(file));
    return row;
  }
  row.insert(row.end(),
             {StrCat(file.bytes), file.format == data::Format::kRecordIo ? StrCat(file.chunks) : "-",
              Joined(file.layouts), file.packed ? "gzip" : Joined(file.compressors),
              file.shape ? PrintShape(*file.shape) : "-", file.columns ? StrCat(*file.columns) : "-"});
  return row;
}

template <typename Names>
Array NamesOf(const std::set<Names>& names) {
  Array array;
  for (const Names name : names) array.emplace_back(std::string(data::NameOf(name)));
  return array;
}

Object ToObject(const File& file) {
  if (!file.summary.ok()) {
    return {{"file", file.path}, {"error", std::string(Message(file.summary.status()))}};
  }
  const data::FileSummary& summary = *file.summary;
  Object object = {{"file", file.path},
                   {"format", std::string(data::NameOf(summary.format))},
                   {"bytes", summary.bytes},
                   {"records", summary.records}};
  if (summary.format == data::Format::kRecordIo) {
    object["chunks"] = summary.chunks;
    object["layouts"] = NamesOf(summary.layouts);
    object["compressors"] = NamesOf(summary.compressors);
  }
  if (summary.shape) {
    object["gzip"] = summary.packed;
    object["type"] = std::string(data::NameOf(summary.shape->type));
    object["shape"] = Array(summary.shape->dims.begin(), summary.shape->dims.end());
  }
  if (summary.columns) object["columns"] = *summary.columns;
  return object;
}

// Text in quotes, or bytes in hexadecimal digits.
std::string ShownRecord(std::string_view record, std::size_t most) {
  const bool text = IsUtf8(record) && std::ranges::none_of(record, [](unsigned char c) {
                      return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
                    });
  const std::string more = record.size() > most ? "..." : "";
  if (text) return StrCat('"', Escaped(FirstCharacters(record, most)), '"', more);
  return StrCat(HexBytes(record.substr(0, most)), more);
}

Object ToObject(std::uint64_t number, const std::string& where, std::string_view record) {
  Object object = {{"number", number}, {"where", where}, {"bytes", record.size()}};
  if (IsUtf8(record)) {
    object["text"] = std::string(record);
  } else {
    object["base64"] = absl::Base64Escape(absl::string_view(record.data(), record.size()));
  }
  return object;
}

// Records, as they are printed in each format.
class RecordTable {
 public:
  explicit RecordTable(std::string_view output) : output_(output) {
    if (output_ != "name") rows_.push_back({"NUMBER", "BYTES", "RECORD", "WHERE"});
  }

  absl::Status Add(std::uint64_t number, const std::string& where, std::string_view record) {
    if (output_ == "json") return Print(PrintJson(ToObject(number, where, record)) + "\n");
    if (output_ == "yaml") {
      array_.push_back(ToObject(number, where, record));
    } else if (output_ == "name") {
      rows_.push_back({where});
    } else {
      rows_.push_back({StrCat(number), StrCat(record.size()),
                       ShownRecord(record, output_ == "wide" ? kShownWide : kShownRecord), where});
    }
    return absl::OkStatus();
  }

  absl::Status Finish() const {
    if (output_ == "json") return absl::OkStatus();
    return Print(output_ == "yaml" ? PrintYaml(array_) : Table(rows_, 3));
  }

 private:
  const std::string_view output_;
  std::vector<std::vector<std::string>> rows_;
  Array array_;
};

class DataInspect final : public Command {
 public:
  std::string name() const override { return "data inspect"; }
  std::string summary() const override { return "Tell what record files are, and show records"; }
  std::string details() const override {
    return "What is told is what headers say; `trainyard data verify` verifies the rest. Exits with 1 if a "
           "file cannot\n"
           "be read.\n\n"
           "Examples:\n"
           "  trainyard data inspect train/\n"
           "  trainyard data inspect images.gz labels.gz -o wide\n"
           "  trainyard data inspect 'train/data-*' --records 1000,5\n"
           "  trainyard data inspect train.csv --records 0 -o json";
  }

  void Declare(Flags& flags) override {
    files_.Declare(flags);
    flags.Text(
        {.name = "--records",
         .value = "FIRST[,COUNT]",
         .help = "Show so many records (1) of all files together instead, from this one on; the first is 0"},
        records_);
    flags.Text(
        {.name = "-o,--output",
         .value = "FORMAT",
         .help = "table, wide, json, yaml or name; of records, json is an object a line, whole (table)",
         .one_of = {"table", "wide", "json", "yaml", "name"}},
        output_);
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const data::OpenOptions options, files_.Options());
    if (!records_.empty()) return ShowRecords(options);
    TY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, data::ExpandPaths(files_.paths()));
    std::vector<File> files;
    Total total;
    for (const std::string& path : paths) {
      files.push_back({.path = path, .summary = data::InspectFile(path, options)});
      if (const auto& summary = files.back().summary; summary.ok()) {
        total.sum.bytes += summary->bytes;
        total.sum.records += summary->records;
        total.sum.chunks += summary->chunks;
      } else if (paths.size() == 1) {
        return summary.status();
      } else {
        ++total.unread;
      }
    }
    TY_RETURN_IF_ERROR(Show(files, total));
    if (total.unread == 0) return absl::OkStatus();
    return absl::DataLossError(
        StrCat(total.unread, " of ", Counted(files.size(), "file"), " cannot be read"));
  }

 private:
  absl::Status Show(const std::vector<File>& files, const Total& total) const {
    if (output_ == "json" || output_ == "yaml") return ShowDocument(files, total);
    if (output_ == "name") {
      std::string names;
      for (const File& file : files) StrAppend(names, file.path, "\n");
      return Print(names);
    }
    const bool wide = output_ == "wide";
    std::vector<std::vector<std::string>> rows = {{"FILE", "FORMAT", "RECORDS", "SIZE"}};
    for (const char* name : {"BYTES", "CHUNKS", "LAYOUT", "COMPRESSOR", "SHAPE", "COLUMNS"}) {
      if (wide) rows[0].emplace_back(name);
    }
    if (!wide) rows[0].emplace_back("CONTENT");
    for (const File& file : files) {
      if (file.summary.ok()) {
        rows.push_back(Row(file.path, *file.summary, wide));
      } else {
        std::cerr << Message(file.summary.status()) << "\n";
      }
    }
    if (files.size() > 1) {
      rows.push_back(Row(StrCat("total of ", files.size() - total.unread), total.sum, wide));
      rows.back()[1] = "-";
      if (!wide) rows.back().back() = "-";
    }
    return Print(Table(rows, 3));
  }

  absl::Status ShowDocument(const std::vector<File>& files, const Total& total) const {
    Array array;
    for (const File& file : files) array.push_back(ToObject(file));
    const Document document = Object{{"files", std::move(array)},
                                     {"total", Object{{"files", files.size()},
                                                      {"unread", total.unread},
                                                      {"bytes", total.sum.bytes},
                                                      {"records", total.sum.records},
                                                      {"chunks", total.sum.chunks}}}};
    return Print(output_ == "json" ? PrintJson(document) + "\n" : PrintYaml(document));
  }

  absl::StatusOr<data::RecordRange> ParseRange() const {
    const std::vector<std::string_view> parts = Split(std::string_view(records_), ',');
    const auto first = ParseNumber<std::uint64_t>(parts[0]);
    const auto count = parts.size() == 2 ? ParseNumber<std::uint64_t>(parts[1]) : 1;
    if (!first || !count || *count == 0 || parts.size() > 2) {
      return UsageError(
          StrCat("--records: '", Escaped(records_), "' is not FIRST or FIRST,COUNT, as in 0,10"));
    }
    return data::RecordRange{.first = *first, .count = *count};
  }

  absl::Status ShowRecords(const data::OpenOptions& options) const {
    TY_ASSIGN_OR_RETURN(data::RecordRange range, ParseRange());
    TY_ASSIGN_OR_RETURN(const auto source, data::OpenRecords(files_.paths(), options));
    if (range.first >= source->Count()) {
      return absl::OutOfRangeError(
          StrCat("there is no record ", range.first, ": there are ", source->Count(), ", from 0 on"));
    }
    range.count = std::min(range.count, source->Count() - range.first);
    RecordTable table(output_);
    std::uint64_t number = range.first;
    TY_RETURN_IF_ERROR(source->NewCursor()->Read(range, [&](std::string_view record) {
      const std::string where = source->Where(number);
      return table.Add(number++, where, record);
    }));
    return table.Finish();
  }

  RecordFileFlags files_;
  std::string records_;
  std::string output_ = "table";
};

class DataVerify final : public Command {
 public:
  std::string name() const override { return "data verify"; }
  std::string summary() const override { return "Read record files whole and name all damage"; }
  std::string details() const override {
    return "Every byte is read and every checksum verified. Each damaged place is a line with its file and "
           "byte, and\n"
           "reading goes on behind it. Exits with 1 if there is any, or if a file cannot be read. CSV and "
           "plain IDX\n"
           "have no checksums: of them, quotes, columns and sizes are verified.\n\n"
           "Examples:\n"
           "  trainyard data verify train/\n"
           "  trainyard data verify 'train/data-*' test.csv\n"
           "  trainyard data verify copy.rec --format recordio -o json";
  }

  void Declare(Flags& flags) override {
    files_.Declare(flags);
    flags.Text(
        {.name = "-o,--output", .value = "FORMAT", .help = "text or json (text)", .one_of = {"text", "json"}},
        output_);
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const data::OpenOptions options, files_.Options());
    TY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, data::ExpandPaths(files_.paths()));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const absl::Status status = Verify(paths[i], StrCat(i + 1, " of ", paths.size()), options);
      if (status.ok()) continue;
      if (paths.size() == 1) return status;
      TY_RETURN_IF_ERROR(TellUnread(paths[i], status));
    }
    return Finish(paths.size());
  }

 private:
  absl::Status Verify(const std::string& path, const std::string& number, const data::OpenOptions& options) {
    absl::Status printed;
    Array damages;
    const auto found = data::VerifyFile(
        path, options,
        {.damage = [&](const data::Damage& damage) { printed.Update(TellDamage(path, damage, damages)); },
         .progress =
             [&](std::uint64_t bytes) {
               if (!line_.Due()) return;
               line_.Show(StrCat("file ", number, ", ", FormatBytes(total_.bytes + bytes), ": ", path));
             }});
    TY_RETURN_IF_ERROR(printed);
    TY_RETURN_IF_ERROR(found.status());
    total_.bytes += found->bytes;
    total_.chunks += found->chunks;
    total_.records += found->records;
    total_.damages += found->damages;
    if (found->damages > 0) ++bad_files_;
    if (output_ == "json") {
      documents_.push_back(Object{{"file", path},
                                  {"format", std::string(data::NameOf(found->format))},
                                  {"bytes", found->bytes},
                                  {"chunks", found->chunks},
                                  {"records", found->records},
                                  {"damages", std::move(damages)}});
    }
    return absl::OkStatus();
  }

  absl::Status TellDamage(const std::string& path, const data::Damage& damage, Array& damages) {
    if (output_ == "json") {
      damages.push_back(Object{{"begin", damage.begin}, {"end", damage.end}, {"message", damage.message}});
      return absl::OkStatus();
    }
    line_.Clear();
    return Print(
        StrCat(path, ": ", damage.message, " (bytes ", damage.begin, " to ", damage.end, " are lost)\n"));
  }

  absl::Status TellUnread(const std::string& path, const absl::Status& status) {
    ++bad_files_;
    ++unread_;
    line_.Clear();
    if (output_ != "json") return Print(StrCat(Message(status), "\n"));
    documents_.push_back(Object{{"file", path}, {"error", std::string(Message(status))}});
    return absl::OkStatus();
  }

  absl::Status Finish(std::size_t files) {
    line_.Clear();
    if (output_ == "json") {
      const Document document = Object{{"files", std::move(documents_)},
                                       {"total", Object{{"files", files},
                                                        {"unread", unread_},
                                                        {"bytes", total_.bytes},
                                                        {"chunks", total_.chunks},
                                                        {"records", total_.records},
                                                        {"damages", total_.damages}}}};
      TY_RETURN_IF_ERROR(Print(PrintJson(document) + "\n"));
    }
    const std::string read = StrCat(Counted(total_.records, "record"), " in ", Counted(files, "file"), ", ",
                                    FormatBytes(total_.bytes));
    if (bad_files_ == 0) return output_ == "json" ? absl::OkStatus() : Print(StrCat(read, ": no damage\n"));
    std::string bad =
        StrCat(bad_files_, " of ", Counted(files, "file"), bad_files_ == 1 ? " is" : " are", " damaged");
    if (unread_ > 0) StrAppend(bad, " or cannot be read");
    return absl::DataLossError(StrCat(bad, ": ", Counted(total_.damages, "damaged place"), ", and ",
                                      total_.records, " records that are whole"));
  }

  RecordFileFlags files_;
  std::string output_ = "text";
  ProgressLine line_;
  data::Verification total_;
  std::uint64_t bad_files_ = 0;
  std::uint64_t unread_ = 0;
  Array documents_;
};

}  // namespace

std::unique_ptr<Command> NewDataInspect() { return std::make_unique<DataInspect>(); }

std::unique_ptr<Command> NewDataVerify() { return std::make_unique<DataVerify>(); }

}  // namespace trainyard::cli
