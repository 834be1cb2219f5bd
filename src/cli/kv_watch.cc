// trainyard kv watch
#include <iostream>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kv_common.h"
#include "kv/follower.h"

namespace trainyard::cli {
namespace {

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

std::unique_ptr<Command> NewKvWatch() { return std::make_unique<KvWatch>(); }

}  // namespace trainyard::cli
