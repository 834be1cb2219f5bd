#include "ps/record_sources.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "data/open.h"
#include "data/paths.h"
#include "graph/op/check.h"

namespace trainyard::ps {
namespace {

using graph::Tensor;

template <typename... Parts>
absl::Status WrongRead(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat("read: ", parts...));
}

// An attribute that has one entry for each output, or none at all.
template <typename List>
absl::Status CheckLength(std::string_view name, const List& list, std::size_t outputs) {
  if (list.empty() || list.size() == outputs) return absl::OkStatus();
  return WrongRead(name, " has ", list.size(), " entries for ", outputs, " outputs");
}

// The fields of each source.
absl::StatusOr<std::vector<std::vector<RecordField>>> FieldsOf(const graph::Op& read,
                                                               const std::vector<graph::VarType>& types) {
  const std::vector<std::string>& names = read.Out("Out");
  const graph::Ints& sources_of = read.IntList("sources_of");
  const graph::Ints& begins = read.IntList("begins");
  const graph::Floats& scales = read.FloatList("scales");
  TY_RETURN_IF_ERROR(CheckLength("sources_of", sources_of, names.size()));
  TY_RETURN_IF_ERROR(CheckLength("begins", begins, names.size()));
  TY_RETURN_IF_ERROR(CheckLength("scales", scales, names.size()));
  std::vector<std::vector<RecordField>> fields(read.StringList("sources").size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::int64_t source = sources_of.empty() ? 0 : sources_of[i];
    if (source < 0 || source >= static_cast<std::int64_t>(fields.size()))
      return WrongRead(names[i], " comes from source ", source, ", and there are ", fields.size(),
                       ", from 0 on");
    const RecordField field{.name = names[i],
                            .output = i,
                            .type = types[i].data_type,
                            .elements = types[i].dims.Count(1, types[i].dims.rank()),
                            .begin = begins.empty() ? -1 : begins[i],
                            .scale = scales.empty() ? 1 : scales[i]};
    if (field.begin < -1 || field.begin > graph::kMaxElements)
      return WrongRead(names[i], " begins at ", field.begin);
    fields[static_cast<std::size_t>(source)].push_back(field);
  }
  return fields;
}

absl::StatusOr<std::vector<std::string>> PathsOf(const std::string& source) {
  std::vector<std::string> paths;
  for (const std::string_view path : Split(source, ',')) paths.emplace_back(path);
  return data::ExpandPaths(paths);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordSources>> RecordSources::Open(const graph::Op& given) {
  if (given.type != "read") return absl::InvalidArgumentError(StrCat(given.type, " reads no records"));
  absl::StatusOr<graph::Op> read = graph::Complete(given);
  if (!read.ok()) return Annotate(read.status(), "read");
  const absl::StatusOr<graph::Typing::Types> types = graph::InferTypes(*read, {});
  if (!types.ok()) return Annotate(types.status(), "read");
  if (!types->contains("Out")) return WrongRead("it has no outputs");
  std::unique_ptr<RecordSources> sources(new RecordSources);
  sources->types_ = types->at("Out");
  sources->batch_size_ = read->Int("batch_size");
  sources->shuffle_seed_ = static_cast<std::uint64_t>(read->Int("shuffle_seed"));
  TY_ASSIGN_OR_RETURN(std::vector<std::vector<RecordField>> fields, FieldsOf(*read, sources->types_));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    TY_RETURN_IF_ERROR(sources->OpenSource(*read, i, std::move(fields[i])));
  }
  const Source& first = sources->sources_.front();
  sources->count_ = static_cast<std::int64_t>(first.records->Count());
  if (sources->count_ == 0) return WrongRead("there are no records in ", first.name);
  for (const Source& source : sources->sources_) {
    if (source.records->Count() != first.records->Count()) {
      return WrongRead(first.name, " has ", first.records->Count(), " records and ", source.name, " has ",
                       source.records->Count(), ": they must go together");
    }
  }
  return sources;
}

absl::Status RecordSources::OpenSource(const graph::Op& read, std::size_t number,
                                       std::vector<RecordField> fields) {
  Source& source = sources_.emplace_back();
  source.name = read.StringList("sources")[number];
  if (fields.empty()) return WrongRead("no field comes from source ", number, ", ", source.name);
  const absl::StatusOr<data::Format> format = data::ParseFormat(read.String("format"));
  if (!format.ok()) return Annotate(format.status(), "read");
  TY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsOf(source.name));
  const data::OpenOptions options{.format = *format, .csv = {.header = read.Bool("skip_header")}};
  TY_ASSIGN_OR_RETURN(source.records, data::OpenRecords(paths, options));
  source.cursor = source.records->NewCursor();
  auto decoder = MakeRecordDecoder(*source.records, std::move(fields));
  if (!decoder.ok()) return Annotate(decoder.status(), StrCat("read: ", source.name));
  source.decoder = *std::move(decoder);
  return absl::OkStatus();
}

absl::Status RecordSources::Read(std::vector<Row>& rows, std::vector<Tensor>& batch) {
  const auto by_number = [](const Row& a, const Row& b) { return a.number < b.number; };
  if (!std::is_sorted(rows.begin(), rows.end(), by_number)) std::sort(rows.begin(), rows.end(), by_number);
  batch.resize(types_.size());
  for (std::size_t i = 0; i < types_.size(); ++i) {
    graph::Dims dims = types_[i].dims;
    dims[0] = static_cast<std::int64_t>(rows.size());
    batch[i].Resize(types_[i].data_type, std::move(dims));
  }
  for (Source& source : sources_) {
    for (auto next = rows.begin(); next != rows.end();) {
      const auto first = static_cast<std::uint64_t>(next->number);
      auto end = next + 1;
      while (end != rows.end() && end->number == (end - 1)->number + 1) ++end;
      TY_RETURN_IF_ERROR(
          source.cursor->Read({first, static_cast<std::uint64_t>(end - next)}, [&](std::string_view record) {
            const Row& row = *next++;
            absl::Status decoded = source.decoder->Decode(record, row.row, absl::MakeSpan(batch));
            if (decoded.ok()) [[likely]]
              return decoded;
            return Annotate(decoded, source.records->Where(static_cast<std::uint64_t>(row.number)));
          }));
      next = end;
    }
  }
  return absl::OkStatus();
}

}  // namespace trainyard::ps
