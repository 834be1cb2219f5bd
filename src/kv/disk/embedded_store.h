// The durable store of one machine: a LocalStore over a DiskJournal. One process at a time has it open.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kv/disk/disk_journal.h"
#include "kv/disk/file_system.h"
#include "kv/local_store.h"

namespace trainyard::kv {

struct EmbeddedOptions {
  Clock* clock = &Clock::System();
  FileSystem* files = &FileSystem::System();
  DiskJournalOptions journal;
  absl::Duration progress_interval = absl::Seconds(10);
  bool keeper = true;  // see LocalStore::Options
};

// Opens the store in `folder`, or makes one there. Leases get their whole time again. FailedPrecondition:
// another process has it open (the message names it), or the folder is something else. DataLoss: it is
// damaged (the message names the file and the place); none of its records is changed.
absl::StatusOr<std::unique_ptr<LocalStore>> OpenEmbeddedStore(const std::string& folder,
                                                              EmbeddedOptions options = {});

}  // namespace trainyard::kv
