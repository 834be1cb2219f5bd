#include "kv/disk/embedded_store.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {
namespace {

class EmbeddedStore final : public LocalStore {
 public:
  EmbeddedStore(std::unique_ptr<DiskJournal> journal, Options options)
      : LocalStore(std::move(journal), std::move(options)) {}
  ~EmbeddedStore() override { StopKeeper(); }  // while AfterCompact() is still this class's

  absl::Status Recover() {
    TY_RETURN_IF_ERROR(
        disk().Recover([this](const Record& record, const Location& location) { Replay(record, location); }));
    StartKeeper();
    return absl::OkStatus();
  }

 private:
  DiskJournal& disk() { return static_cast<DiskJournal&>(journal()); }

  void AfterCompact() override {
    MutexLock lock(rewriting_);
    if (!disk().WorthRewriting()) return;
    if (const absl::Status status = Rewrite(); !status.ok()) {
      log::Warn("cannot give back the space of compacted records; it stays in use", {{"error", status}});
    }
  }

  absl::Status Rewrite();

  Mutex rewriting_;  // held by the one thread that rewrites
};

// Everything before the present active segment that is still needed.
struct Live {
  std::vector<Record> heads;
  std::vector<DiskJournal::LiveRecord> records;
};

Live Collect(const Mvcc& state) {
  Live live;
  live.heads.push_back({.kind = Record::Kind::kBase, .ends_txn = true, .revision = state.revision()});
  if (state.compacted() > 0) {
    live.heads.push_back({.kind = Record::Kind::kCompact, .ends_txn = true, .revision = state.compacted()});
  }
  for (const auto& [id, lease] : state.leases().entries()) {
    live.heads.push_back({.kind = Record::Kind::kLeaseGrant,
                          .ends_txn = true,
                          .lease = id,
                          .ttl_ms = absl::ToInt64Milliseconds(lease.ttl)});
  }
  state.index().ForEachChange(
      KeyRange::From(""), 0, [&](std::string_view key, const Version& version, const Version*) {
        DiskJournal::LiveRecord& item = live.records.emplace_back();
        item.key = std::string(key);
        item.location = version.location;
        item.record = {.kind = version.deleted ? Record::Kind::kDelete : Record::Kind::kPut,
                       .ends_txn = true,
                       .revision = version.mod_revision,
                       .sub = version.sub,
                       .create_revision = version.create_revision,
                       .version = version.version,
                       .lease = version.lease};
      });
  std::ranges::sort(live.records, {}, [](const DiskJournal::LiveRecord& item) {
    return std::tie(item.record.revision, item.record.sub);
  });
  return live;
}

absl::Status EmbeddedStore::Rewrite() {
  absl::Status status;
  Live live;
  WithoutWriters([&] {
    status = disk().Seal();
    if (status.ok()) WithState([&](const Mvcc& state) { live = Collect(state); });
  });
  TY_RETURN_IF_ERROR(status);
  TY_ASSIGN_OR_RETURN(DiskJournal::Rewritten rewritten, disk().Copy(live.heads, live.records));
  WithoutWriters([&] {
    status = disk().Adopt(std::move(rewritten));
    if (!status.ok()) return;
    WithState([&](Mvcc& state) {
      for (const DiskJournal::LiveRecord& item : live.records) {
        state.index().Relocate(item.key, item.record.revision, item.location);
      }
    });
    disk().RemoveOld();
  });
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStore>> OpenEmbeddedStore(const std::string& folder,
                                                              EmbeddedOptions options) {
  auto journal = DiskJournal::Open(*options.files, folder, options.journal);
  if (absl::IsPermissionDenied(journal.status())) {
    return absl::PermissionDeniedError(
        StrCat(journal.status().message(), ": a store needs a folder that this user may write to"));
  }
  TY_RETURN_IF_ERROR(journal);
  LocalStore::Options local;
  local.clock = options.clock;
  local.url = StrCat("embedded:", folder);
  local.keeper = options.keeper;
  local.progress_interval = options.progress_interval;
  auto store = std::make_unique<EmbeddedStore>(*std::move(journal), std::move(local));
  TY_RETURN_IF_ERROR(store->Recover());
  return store;
}

}  // namespace trainyard::kv
