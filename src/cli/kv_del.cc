// trainyard kv del
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "kv/large_value.h"

namespace trainyard::cli {
namespace {

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

}  // namespace

std::unique_ptr<Command> NewKvDel() { return std::make_unique<KvDel>(); }

}  // namespace trainyard::cli
