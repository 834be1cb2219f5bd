#include "data/convert.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/csv/fields.h"
#include "data/record_encoder.h"
#include "data/record_source.h"

namespace trainyard::data {
namespace {

constexpr std::uint64_t kProgressStride = 1 << 20;  // bytes between calls of progress

struct Source {
  std::string name;
  std::unique_ptr<const RecordSource> records;
  std::unique_ptr<RecordCursor> cursor;
  std::unique_ptr<RecordEncoder> encoder;
};

std::string NameOf(const std::vector<std::string>& paths) {
  return paths.size() == 1 ? paths.front() : StrCat(paths.front(), " and others");
}

absl::StatusOr<Source> Open(const std::vector<std::string>& paths, const OpenOptions& options) {
  TY_ASSIGN_OR_RETURN(auto records, OpenRecords(paths, options));
  auto cursor = records->NewCursor();
  return Source{.name = NameOf(paths), .records = std::move(records), .cursor = std::move(cursor)};
}

absl::StatusOr<std::vector<Source>> OpenAll(const std::vector<std::string>& paths,
                                            const ConvertOptions& options) {
  std::vector<Source> sources;
  if (!options.zip || paths.empty()) {
    TY_ASSIGN_OR_RETURN(sources.emplace_back(), Open(paths, options.open));
    return sources;
  }
  for (const std::string& path : paths) {
    TY_ASSIGN_OR_RETURN(sources.emplace_back(), Open({path}, options.open));
    const Source& first = sources.front();
    const Source& last = sources.back();
    if (last.records->Count() != first.records->Count()) {
      return absl::InvalidArgumentError(StrCat(first.name, " has ", first.records->Count(), " records and ",
                                               last.name, " has ", last.records->Count(),
                                               ": to go together they must have equally many"));
    }
  }
  return sources;
}

// It has a record.
absl::StatusOr<std::optional<std::uint64_t>> ElementsOf(const Source& source, const CsvOptions& csv) {
  if (const ItemShape* shape = source.records->Shape()) return shape->Elements();
  if (source.records->format() != Format::kCsv) return std::nullopt;
  std::uint64_t columns = 0;
  TY_RETURN_IF_ERROR(source.cursor->Read({0, 1}, [&](std::string_view record) -> absl::Status {
    CsvFields fields(csv);
    TY_ASSIGN_OR_RETURN(const auto split, fields.Split(record, *source.records, 0));
    columns = split.size();
    return absl::OkStatus();
  }));
  return columns;
}

absl::Status MakeEncoders(const ConvertOptions& options, std::vector<Source>& sources) {
  std::vector<FieldSpec> fields = options.fields;
  if (fields.empty()) fields.resize(sources.size());
  std::vector<SourceElements> elements;
  for (const Source& source : sources) {
    TY_ASSIGN_OR_RETURN(auto count, ElementsOf(source, options.open.csv));
    elements.push_back({.name = source.name, .elements = count});
  }
  TY_ASSIGN_OR_RETURN(auto dealt, DealFields(fields, elements));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].encoder = MakeRecordEncoder(*sources[i].records, options.open.csv, std::move(dealt[i]));
  }
  return absl::OkStatus();
}

class Converter {
 public:
  Converter(std::vector<Source> sources, RecordOutput& output)
      : sources_(std::move(sources)), output_(output) {}

  absl::Status Run(absl::FunctionRef<absl::Status(ConvertProgress)> progress) {
    const std::uint64_t count = sources_.front().records->Count();
    std::uint64_t number = 0;
    return sources_.front().cursor->Read({0, count}, [&](std::string_view first) -> absl::Status {
      TY_RETURN_IF_ERROR(Write(first, number++));
      if (since_ < kProgressStride) return absl::OkStatus();
      since_ = 0;
      return progress({.done = number, .records = count});
    });
  }

 private:
  absl::Status Write(std::string_view first, std::uint64_t number) {
    record_.clear();
    TY_RETURN_IF_ERROR(Append(sources_.front(), first, number));
    for (std::size_t i = 1; i < sources_.size(); ++i) {
      TY_RETURN_IF_ERROR(sources_[i].cursor->Read(
          {number, 1}, [&](std::string_view record) { return Append(sources_[i], record, number); }));
    }
    since_ += record_.size() + 1;
    const absl::Status written = output_.Write(record_);
    // Only what is about the record is said of its place.
    if (absl::IsInvalidArgument(written)) return Annotate(written, sources_.front().records->Where(number));
    return written;
  }

  absl::Status Append(Source& source, std::string_view record, std::uint64_t number) {
    const absl::Status status = source.encoder->Append(record, record_);
    return status.ok() ? status : Annotate(status, source.records->Where(number));
  }

  std::vector<Source> sources_;
  RecordOutput& output_;
  std::string record_;
  std::uint64_t since_ = 0;  // bytes since progress was told
};

}  // namespace

absl::StatusOr<Converted> Convert(const std::vector<std::string>& paths, const ConvertOptions& options,
                                  absl::FunctionRef<absl::Status(ConvertProgress)> progress) {
  TY_ASSIGN_OR_RETURN(auto output, RecordOutput::Create(options.output));
  TY_ASSIGN_OR_RETURN(auto sources, OpenAll(paths, options));
  const std::uint64_t records = sources.front().records->Count();
  if (records > 0) {
    TY_RETURN_IF_ERROR(MakeEncoders(options, sources));
    TY_RETURN_IF_ERROR(Converter(std::move(sources), *output).Run(progress));
  }
  TY_ASSIGN_OR_RETURN(const OutputSize size, output->Finish());
  return Converted{.records = records, .output = size};
}

}  // namespace trainyard::data
