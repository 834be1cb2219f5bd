// trainyard kv range
#include <algorithm>
#include <iostream>

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "cli/kv_text.h"

namespace trainyard::cli {
namespace {

constexpr std::size_t kShownValue = 60;  // characters of a value in a table
constexpr std::int64_t kPage = 500;

std::string Shortened(const std::string& value) {
  std::string text = Shown(value);
  if (text.size() > kShownValue) {
    std::size_t end = kShownValue;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
      --end;  // not inside a character
    text = StrCat(text.substr(0, end), "… (", FormatBytes(value.size()), ")");
  }
  return text;
}

class KvRange final : public Command {
 public:
  std::string name() const override { return "kv range"; }
  std::string summary() const override { return "List the keys with a prefix"; }
  std::string details() const override {
    return "Examples:\n"
           "  trainyard kv range jobs/\n"
           "  trainyard kv range '' --limit 10 -o wide\n"
           "  trainyard kv range jobs/ --revision 42 -o json\n"
           "  trainyard kv range trainyard/jobs/default/test_1/ -o text";
  }

  void Declare(Flags& flags) override {
    flags.Argument("PREFIX", "What the keys begin with; '' is every key", prefix_);
    store_.Declare(flags);
    flags.Number({.name = "--limit", .value = "N", .help = "At most this many (all)"}, limit_);
    flags.Number({.name = "--revision", .value = "N", .help = "As it was at this revision (the newest)"},
                 revision_);
    flags.Text(
        {.name = "-o,--output",
         .value = "FORMAT",
         .help = "table, wide, json (an object a line), text (programs of graph jobs too) or name (table)",
         .one_of = {"table", "wide", "json", "text", "name"}},
        output_);
  }

  absl::Status Run() override {
    if (limit_ && *limit_ <= 0) return UsageError("--limit must be above 0");
    if (revision_ && *revision_ < 0) return UsageError("--revision must not be negative");
    TY_ASSIGN_OR_RETURN(const auto store, store_.Open());
    kv::RangeRequest request{.range = kv::KeyRange::Prefix(prefix_),
                             .revision = revision_.value_or(0),
                             .keys_only = output_ == "name"};
    std::int64_t left = limit_.value_or(INT64_MAX);
    std::vector<std::vector<std::string>> rows = Header();
    while (true) {
      request.limit = std::min(left, kPage);
      TY_ASSIGN_OR_RETURN(const kv::RangeResult page, store->Range(request));
      if (request.revision == 0) request.revision = page.revision;
      for (const kv::KeyValue& kv : page.kvs) TY_RETURN_IF_ERROR(Add(*store, kv, rows));
      left -= static_cast<std::int64_t>(page.kvs.size());
      if (page.more && left == 0) std::cerr << "there are more: raise --limit to see them\n";
      if (!page.more || left == 0) break;
      request.range.begin = page.kvs.back().key + '\0';
    }
    if (rows.size() == 1) {
      std::cerr << "no key begins with " << Quoted(prefix_) << " in " << store->Url() << "\n";
      return absl::OkStatus();
    }
    return Print(Table(rows, 3));
  }

 private:
  std::vector<std::vector<std::string>> Header() const {
    if (output_ == "table") return {{"KEY", "REVISION", "VALUE"}};
    if (output_ == "wide") return {{"KEY", "CREATED", "MODIFIED", "VERSION", "LEASE", "SIZE", "VALUE"}};
    return {};
  }

  // A row of the table, or printed at once where there is none.
  absl::Status Add(kv::Store& store, const kv::KeyValue& kv,
                   std::vector<std::vector<std::string>>& rows) const {
    if (output_ == "text") {
      TY_ASSIGN_OR_RETURN(const std::string text, TextOf(store, kv));
      return Print(text);
    }
    if (output_ == "json") return Print(ToJson(kv) + "\n");
    if (output_ == "name") return Print(kv.key + "\n");
    if (output_ == "table") {
      rows.push_back({Escaped(kv.key), StrCat(kv.mod_revision), Shortened(kv.value)});
    } else {
      rows.push_back({Escaped(kv.key), StrCat(kv.create_revision), StrCat(kv.mod_revision),
                      StrCat(kv.version), kv.lease == kv::kNoLease ? "-" : StrCat(kv.lease),
                      FormatBytes(kv.value.size()), Shortened(kv.value)});
    }
    return absl::OkStatus();
  }

  StoreFlag store_;
  std::string prefix_;
  std::optional<std::int64_t> limit_;
  std::optional<std::int64_t> revision_;
  std::string output_ = "table";
};

}  // namespace

std::unique_ptr<Command> NewKvRange() { return std::make_unique<KvRange>(); }

}  // namespace trainyard::cli
