// trainyard kv get, put, del, range, watch
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/clock.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "kv/follower.h"
#include "kv/large_value.h"

namespace trainyard::cli {
namespace {

class KvGet final : public Command {
 public:
  std::string name() const override { return "kv get"; }
  std::string summary() const override { return "Print the value of a key"; }
  std::string details() const override {
    return "Examples:\n"
           "  trainyard kv get jobs/mnist --store etcd://10.0.0.1:2379\n"
           "  trainyard kv get jobs/mnist --revision 42 -o json";
  }

  void Declare(Flags& flags) override {
    flags.Argument("KEY", "The key", key_);
    store_.Declare(flags);
    flags.Number({.name = "--revision", .value = "N", .help = "As it was at this revision (the newest)"},
                 revision_);
    flags.Switch({.name = "--chunked", .help = "The value was put with --chunked"}, chunked_);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "value or json (value)",
                .one_of = {"value", "json"}},
               output_);
  }

  absl::Status Run() override {
    if (chunked_ && (revision_ || output_ == "json")) {
      return UsageError("--chunked goes with neither --revision nor -o json");
    }
    if (revision_ && *revision_ < 0) return UsageError("--revision must not be negative");
    TY_ASSIGN_OR_RETURN(const auto store, store_.Open());
    if (chunked_) {
      TY_ASSIGN_OR_RETURN(const auto large, kv::GetLarge(*store, key_));
      return large ? PrintValue(large->value) : NotFound(*store);
    }
    TY_ASSIGN_OR_RETURN(const kv::GetResult result, store->Get(key_, revision_.value_or(0)));
    if (!result.kv) return NotFound(*store);
    return output_ == "json" ? Print(ToJson(*result.kv) + "\n") : PrintValue(result.kv->value);
  }

 private:
  absl::Status NotFound(const kv::Store& store) const {
    return absl::NotFoundError(StrCat("there is no key ", Quoted(key_), " in ", store.Url()));
  }
  // To a file go the value's own bytes and no more.
  static absl::Status PrintValue(const std::string& value) {
    return Print(::isatty(STDOUT_FILENO) != 0 ? value + "\n" : value);
  }

  StoreFlag store_;
  std::string key_;
  std::optional<std::int64_t> revision_;
  bool chunked_ = false;
  std::string output_ = "value";
};

constexpr std::size_t kMostChunked = std::size_t{1} << 30;  // it is held in memory

class KvPut final : public Command {
 public:
  std::string name() const override { return "kv put"; }
  std::string summary() const override { return "Store a value under a key and print its revision"; }
  std::string details() const override {
    return "Examples:\n"
           "  trainyard kv put greeting hello\n"
           "  trainyard kv put model -f weights.bin --chunked\n"
           "  trainyard kv put lock me --if-absent --ttl 10s";
  }

  void Declare(Flags& flags) override {
    flags.Argument("KEY", "The key", key_);
    flags.OptionalArgument("VALUE", "The value; without it, give --file", value_);
    store_.Declare(flags);
    flags.Text(
        {.name = "-f,--file", .value = "FILE", .help = "Take the value from this file; - is standard input"},
        file_);
    flags.Switch({.name = "--if-absent", .help = "Only if the key does not exist"}, if_absent_);
    flags.Number(
        {.name = "--if-revision", .value = "N", .help = "Only if it was last modified at this revision"},
        if_revision_);
    flags.Duration(
        {.name = "--ttl",
         .value = "TIME",
         .help = "Delete it after this time, as 10s or 5m; an embedded store counts it while it is open"},
        ttl_);
    flags.Switch({.name = "--chunked", .help = "Store a value of any size, in pieces"}, chunked_);
  }

  absl::Status Run() override {
    if (value_.has_value() == !file_.empty()) return UsageError("give either a VALUE or --file");
    if (if_revision_ && *if_revision_ < 0) return UsageError("--if-revision must not be negative");
    if (if_absent_ && if_revision_) return UsageError("--if-absent and --if-revision exclude each other");
    if (chunked_ && ttl_) return UsageError("--chunked and --ttl exclude each other");
    if (ttl_) {
      if (const absl::Status valid = kv::ValidateTtl(*ttl_); !valid.ok()) return UsageError(Message(valid));
    }
    TY_ASSIGN_OR_RETURN(const std::string value, ReadValue());
    TY_ASSIGN_OR_RETURN(const auto store, store_.Open(kv::IfMissing::kCreate));
    std::optional<kv::Revision> expected = if_absent_ ? std::optional<kv::Revision>(0) : if_revision_;
    if (chunked_) {
      IdSource ids = IdSource::Random();
      TY_ASSIGN_OR_RETURN(const kv::Revision revision, kv::PutLarge(*store, ids, key_, value, expected));
      return Print(StrCat(revision, "\n"));
    }
    return PutWhole(*store, value, expected);
  }

 private:
  absl::StatusOr<std::string> ReadValue() const {
    if (value_) return *value_;
    if (chunked_) return ReadFile(file_, kMostChunked);
    absl::StatusOr<std::string> value = ReadFile(file_, kv::kMaxRequestBytes);
    if (absl::IsInvalidArgument(value.status())) {
      return Annotate(value.status(), "add --chunked to store a value above the 1.5 MiB request limit");
    }
    return value;
  }

  absl::Status PutWhole(kv::Store& store, const std::string& value,
                        std::optional<kv::Revision> expected) const {
    kv::LeaseId lease = kv::kNoLease;
    if (ttl_) {
      TY_ASSIGN_OR_RETURN(const kv::Lease granted, store.GrantLease(*ttl_));
      lease = granted.id;
      if (store.Url().starts_with("embedded:")) {
        std::cerr << "note: an embedded store counts this time only while a process has it open\n";
      }
    }
    kv::TxnRequest request{.then = {kv::PutOp{key_, value, lease}}};
    if (expected) {
      request.compares = {kv::ModifiedAt(key_, *expected)};
      request.otherwise = {kv::GetOp{{.range = kv::KeyRange::Key(key_), .keys_only = true}}};
    }
    TY_ASSIGN_OR_RETURN(const kv::TxnResult result, store.Txn(request));
    if (result.succeeded) return Print(StrCat(result.revision, "\n"));
    if (lease != kv::kNoLease) TY_RETURN_IF_ERROR(store.RevokeLease(lease));
    const auto& now = std::get<kv::RangeResult>(result.results.at(0)).kvs;
    return absl::FailedPreconditionError(StrCat(
        Quoted(key_), " was left as it is: it ",
        now.empty() ? "does not exist" : StrCat("was last modified at revision ", now[0].mod_revision)));
  }

  StoreFlag store_;
  std::string key_;
  std::optional<std::string> value_;
  std::string file_;
  bool if_absent_ = false;
  std::optional<std::int64_t> if_revision_;
  std::optional<absl::Duration> ttl_;
  bool chunked_ = false;
};

class KvDel final : public Command {
 public:
  std::string name() const override { return "kv del"; }
  std::string summary() const override {
    return "Delete a key, or all keys with a prefix, and print how many";
  }
  std::string details() const override {
    return "Examples:\n"
           "  trainyard kv del greeting\n"
           "  trainyard kv del jobs/mnist/ --prefix";
  }

  void Declare(Flags& flags) override {
    flags.Argument("KEY", "The key, or with --prefix what the keys begin with", key_);
    store_.Declare(flags);
    flags.Switch({.name = "--prefix", .help = "All keys that begin with KEY"}, prefix_);
    flags.Switch({.name = "--chunked", .help = "The value was put with --chunked"}, chunked_);
  }

  absl::Status Run() override {
    if (prefix_ && chunked_) return UsageError("--prefix deletes chunks too: leave --chunked out");
    if (key_.empty()) return UsageError("KEY must not be empty; as a prefix it would delete everything");
    TY_ASSIGN_OR_RETURN(const auto store, store_.Open());
    std::int64_t deleted = 0;
    if (chunked_) {
      TY_ASSIGN_OR_RETURN(const bool was_there, kv::DeleteLarge(*store, key_));
      deleted = was_there ? 1 : 0;
    } else {
      TY_ASSIGN_OR_RETURN(const kv::DeleteResult result,
                          store->Delete(prefix_ ? kv::KeyRange::Prefix(key_) : kv::KeyRange::Key(key_)));
      deleted = result.deleted;
    }
    if (deleted == 0 && !prefix_) {
      return absl::NotFoundError(StrCat("there is no key ", Quoted(key_), " in ", store->Url()));
    }
    return Print(StrCat(deleted, "\n"));
  }

 private:
  StoreFlag store_;
  std::string key_;
  bool prefix_ = false;
  bool chunked_ = false;
};

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

class KvWatch final : public Command {
 public:
  std::string name() const override { return "kv watch"; }
  std::string summary() const override {
    return "Print what happens to the keys with a prefix, as it happens";
  }
  std::string details() const override {
    return "Examples:\n"
           "  trainyard kv watch jobs/ --store etcd://10.0.0.1:2379\n"
           "  trainyard kv watch '' --from-revision 1 --timeout 1s\n\n"
           "Prints LIST for what is there when it starts, then PUT and DELETE. When the history that it "
           "needs has been\n"
           "compacted away it lists again, after a line RELIST.";
  }

  void Declare(Flags& flags) override {
    flags.Argument("PREFIX", "What the keys begin with; '' is every key", prefix_);
    store_.Declare(flags);
    flags.Number({.name = "--from-revision", .value = "N", .help = "Begin with the events of this revision"},
                 from_);
    flags.Number({.name = "--count", .value = "N", .help = "End after this many events"}, count_);
    flags.Duration({.name = "--timeout", .value = "TIME", .help = "End after this time, as 10s or 5m"},
                   timeout_);
    flags.Text({.name = "-o,--output",
                .value = "FORMAT",
                .help = "text or json (an object a line) (text)",
                .one_of = {"text", "json"}},
               output_);
  }

  absl::Status Run() override {
    if (count_ && *count_ <= 0) return UsageError("--count must be above 0");
    if (from_ && *from_ <= 0) return UsageError("--from-revision must be above 0");
    TY_ASSIGN_OR_RETURN(const auto store, store_.Open());
    if (store->Url().starts_with("embedded:") && !timeout_ && !count_) {
      std::cerr << "note: nobody else can write to an embedded store while this command has it open; "
                   "--timeout ends it\n";
    }
    kv::Follower follower(*store, kv::KeyRange::Prefix(prefix_), {.start_revision = from_.value_or(0)});
    const SteadyTime deadline = Clock::System().Steady() + timeout_.value_or(absl::InfiniteDuration());
    std::int64_t left = count_.value_or(INT64_MAX);
    for (bool first = true; left > 0; first = false) {
      const auto update = follower.Next(
          deadline == SteadyTime::Never() ? absl::InfiniteDuration() : deadline - Clock::System().Steady());
      if (absl::IsDeadlineExceeded(update.status())) return absl::OkStatus();
      TY_RETURN_IF_ERROR(update);
      TY_RETURN_IF_ERROR(Show(*update, /*again=*/!first || from_, left));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Show(const kv::Follower::Update& update, bool again, std::int64_t& left) const {
    if (const auto* snapshot = std::get_if<kv::Snapshot>(&update)) {
      if (again) TY_RETURN_IF_ERROR(Line("RELIST", {.mod_revision = snapshot->revision}));
      for (const kv::KeyValue& kv : snapshot->kvs) TY_RETURN_IF_ERROR(Line("LIST", kv));
      return absl::OkStatus();
    }
    for (const kv::WatchEvent& event : std::get<kv::WatchBatch>(update).events) {
      if (left-- == 0) return absl::OkStatus();
      TY_RETURN_IF_ERROR(Line(event.type == kv::WatchEvent::Type::kPut ? "PUT" : "DELETE", event.kv));
    }
    return absl::OkStatus();
  }

  absl::Status Line(std::string_view type, const kv::KeyValue& kv) const {
    if (output_ == "json") {
      return Print(JsonObject().Add("type", type).AddRaw("kv", ToJson(kv)).Str() + "\n");
    }
    std::string line = StrCat(type, " ", kv.mod_revision);
    if (!kv.key.empty()) StrAppend(line, " ", Escaped(kv.key));
    if (kv.version > 0) StrAppend(line, " ", Escaped(kv.value));
    return Print(line + "\n");
  }

  StoreFlag store_;
  std::string prefix_;
  std::optional<std::int64_t> from_;
  std::optional<std::int64_t> count_;
  std::optional<absl::Duration> timeout_;
  std::string output_ = "text";
};

}  // namespace

std::unique_ptr<Command> NewKvGet() { return std::make_unique<KvGet>(); }

std::unique_ptr<Command> NewKvPut() { return std::make_unique<KvPut>(); }

std::unique_ptr<Command> NewKvDel() { return std::make_unique<KvDel>(); }

std::unique_ptr<Command> NewKvRange() { return std::make_unique<KvRange>(); }

std::unique_ptr<Command> NewKvWatch() { return std::make_unique<KvWatch>(); }

}  // namespace trainyard::cli
