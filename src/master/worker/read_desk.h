// Records that another thread reads than the trainer's own: objects of an interpreter are that thread's alone
// to make, to keep and to forget. The trainer's thread asks here, and is given a ticket for what was read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "tasks/task.h"

namespace trainyard::master {

// Stands for records that were read. When nobody has it any more, they are to be forgotten.
using ReadTicket = std::int64_t;

struct ReadRequest {
  ReadTicket ticket = 0;  // for what is read; from 1 on
  tasks::Kind kind = tasks::Kind::kTraining;
  std::vector<std::int64_t> numbers;  // of the records, in any order
  std::vector<ReadTicket> forgotten;  // that nobody has any more
  bool operator==(const ReadRequest&) const = default;
};

class ReadDesk : public std::enable_shared_from_this<ReadDesk> {
 public:
  static std::shared_ptr<ReadDesk> Open() { return std::make_shared<ReadDesk>(); }

  // Has these records read, and waits for it. One thread at a time. The error is the reader's own; Cancelled:
  // Close() was called.
  absl::StatusOr<std::shared_ptr<const ReadTicket>> Ask(tasks::Kind kind, std::vector<std::int64_t> numbers);

  // For the thread that reads: what it is asked for. Nothing: Close() was called.
  std::optional<ReadRequest> Next();
  // What became of it.
  void Answer(ReadTicket ticket, absl::Status read);

  // Whoever waits here is let go. From any thread, any number of times.
  void Close();

 private:
  void Forget(ReadTicket ticket);

  Mutex mu_;
  CondVar changed_;
  ReadTicket last_ TY_GUARDED_BY(mu_) = 0;
  std::optional<ReadRequest> asked_ TY_GUARDED_BY(mu_);
  std::optional<absl::Status> answer_ TY_GUARDED_BY(mu_);  // to what was asked last
  std::vector<ReadTicket> forgotten_ TY_GUARDED_BY(mu_);
  bool closed_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::master
