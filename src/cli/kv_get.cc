// trainyard kv get
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
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

}  // namespace

std::unique_ptr<Command> NewKvGet() { return std::make_unique<KvGet>(); }

}  // namespace trainyard::cli
