// trainyard data verify
#include <iostream>

#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_common.h"
#include "cli/kv_common.h"
#include "data/paths.h"
#include "data/verify.h"

namespace trainyard::cli {
namespace {

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

std::unique_ptr<Command> NewDataVerify() { return std::make_unique<DataVerify>(); }

}  // namespace trainyard::cli
