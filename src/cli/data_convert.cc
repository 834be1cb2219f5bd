// trainyard data convert
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_common.h"
#include "cli/ending_signals.h"
#include "cli/kv_common.h"
#include "data/convert.h"

namespace trainyard::cli {
namespace {

class DataConvert final : public Command {
 public:
  std::string name() const override { return "data convert"; }
  std::string summary() const override { return "Write RecordIO files from record files of any format"; }
  std::string details() const override {
    return "Records of all PATHS are written one behind the other. With --zip each of PATHS is a source of "
           "its own,\n"
           "and a record is made of one of each, by number.\n\n"
           "Without --as records stay as they are: the bytes of a record, a line of CSV, an item of IDX. "
           "--as makes\n"
           "numbers of them as trainers read them from RecordIO: f32 or i64, little-endian. It lists fields; "
           "each is\n"
           "TYPE[xELEMENTS][/DIVISOR], and without xELEMENTS it takes all that are left of its source "
           "(elements of an\n"
           "item of IDX, columns of CSV). raw is a source's record as it is.\n\n"
           "What is written gets its name when it is complete; if anything fails there is nothing new.\n\n"
           "Examples:\n"
           "  trainyard data convert old.rec --to new.rec --compressor none\n"
           "  trainyard data convert train.csv --skip-header --as f32x4,i64 --to train.rec\n"
           "  trainyard data convert images.gz labels.gz --zip --as f32/255,i64 --to train/ "
           "--records-per-file 16384";
  }

  void Declare(Flags& flags) override {
    files_.Declare(flags);
    flags.Text(
        {.name = "--to",
         .value = "PATH",
         .help =
             "The file to write; a folder if it ends in /, is one, or with --records-per-file. Its files\n"
             "are data-00000 and so on"},
        to_);
    flags.Switch({.name = "--zip", .help = "Make each record of one of each of PATHS, by number"}, zip_);
    flags.Text({.name = "--as", .value = "FIELDS", .help = "What elements become, as in f32/255,i64 (raw)"},
               as_);
    flags.Text({.name = "--compressor",
                .value = "NAME",
                .help = "none, snappy or gzip (snappy)",
                .one_of = {"none", "snappy", "gzip"}},
               compressor_);
    flags.Number(
        {.name = "--records-per-file", .value = "N", .help = "At most so many in each file (all in one)"},
        records_per_file_);
    flags.Number({.name = "--max-chunk",
                  .value = "BYTES",
                  .help = "At most so many bytes of records in a chunk (33554432)"},
                 max_chunk_);
    flags.Switch({.name = "--overwrite", .help = "Replace what was written before"}, overwrite_);
  }

  absl::Status Run() override {
    TY_ASSIGN_OR_RETURN(const data::ConvertOptions options, Options());
    const EndingSignals signals;  // so that drafts are removed
    ProgressLine line;
    const SteadyTime begin = Clock::System().Steady();
    const auto converted = data::Convert(files_.paths(), options, [&](data::ConvertProgress progress) {
      if (signals.AwaitFor(absl::ZeroDuration()))
        return absl::CancelledError("it was interrupted: nothing is written");
      if (line.Due()) {
        line.Show(StrCat(Percent(progress.done, progress.records), ": ", progress.done, " of ",
                         Counted(progress.records, "record")));
      }
      return absl::OkStatus();
    });
    line.Clear();
    if (absl::IsAlreadyExists(converted.status())) return Annotate(converted.status(), "--to");
    TY_RETURN_IF_ERROR(converted.status());
    const auto took = absl::ToInt64Milliseconds(Clock::System().Steady() - begin);
    return Print(StrCat(Counted(converted->records, "record"), " written to ", to_, ": ",
                        Counted(converted->output.files, "file"), ", ", FormatBytes(converted->output.bytes),
                        ", ", took, " ms\n"));
  }

 private:
  absl::StatusOr<data::ConvertOptions> Options() const {
    data::ConvertOptions options{.zip = zip_};
    TY_ASSIGN_OR_RETURN(options.open, files_.Options());
    if (to_.empty()) return UsageError("--to is missing: name the file or the folder that is to be written");
    if (records_per_file_ && *records_per_file_ <= 0) return UsageError("--records-per-file must be above 0");
    if (max_chunk_ && (*max_chunk_ <= 0 || *max_chunk_ > static_cast<std::int64_t>(data::kMaxChunkBytes))) {
      return UsageError(StrCat("--max-chunk must be above 0 and at most ", data::kMaxChunkBytes));
    }
    if (!as_.empty()) {
      auto fields = data::ParseFieldSpecs(as_);
      if (!fields.ok()) return UsageError(StrCat("--as: ", Message(fields.status())));
      options.fields = *std::move(fields);
    }
    TY_ASSIGN_OR_RETURN(const data::Compressor compressor, data::ParseCompressor(compressor_));
    options.output = {.path = to_,
                      .records_per_file = static_cast<std::uint64_t>(records_per_file_.value_or(0)),
                      .overwrite = overwrite_,
                      .writer = {.compressor = compressor,
                                 .max_chunk_bytes = static_cast<std::uint64_t>(max_chunk_.value_or(0))}};
    return options;
  }

  RecordFileFlags files_;
  std::string to_;
  bool zip_ = false;
  std::string as_;
  std::string compressor_ = "snappy";
  std::optional<std::int64_t> records_per_file_;
  std::optional<std::int64_t> max_chunk_;
  bool overwrite_ = false;
};

}  // namespace

std::unique_ptr<Command> NewDataConvert() { return std::make_unique<DataConvert>(); }

}  // namespace trainyard::cli
