// trainyard kv put
#include <iostream>

#include "base/files.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "kv/large_value.h"

namespace trainyard::cli {
namespace {

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

}  // namespace

std::unique_ptr<Command> NewKvPut() { return std::make_unique<KvPut>(); }

}  // namespace trainyard::cli
