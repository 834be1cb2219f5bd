#include "master/worker/read_desk.h"

#include <utility>

namespace trainyard::master {

absl::StatusOr<std::shared_ptr<const ReadTicket>> ReadDesk::Ask(tasks::Kind kind,
                                                                std::vector<std::int64_t> numbers) {
  const MutexLock lock(mu_);
  const ReadTicket ticket = ++last_;
  asked_ = ReadRequest{.ticket = ticket, .kind = kind, .numbers = std::move(numbers)};
  answer_.reset();
  changed_.SignalAll();
  while (!answer_ && !closed_) changed_.Wait(mu_);
  if (!answer_) return absl::CancelledError("the worker is stopping");
  if (!answer_->ok()) return *answer_;
  return std::shared_ptr<const ReadTicket>(new ReadTicket(ticket),
                                           [desk = shared_from_this()](const ReadTicket* dropped) {
                                             desk->Forget(*dropped);
                                             delete dropped;
                                           });
}

std::optional<ReadRequest> ReadDesk::Next() {
  const MutexLock lock(mu_);
  while (!asked_ && !closed_) changed_.Wait(mu_);
  if (closed_) return std::nullopt;
  std::optional<ReadRequest> request = std::exchange(asked_, std::nullopt);
  request->forgotten = std::exchange(forgotten_, {});
  return request;
}

void ReadDesk::Answer(ReadTicket ticket, absl::Status read) {
  const MutexLock lock(mu_);
  if (ticket != last_) return;
  answer_ = std::move(read);
  changed_.SignalAll();
}

void ReadDesk::Close() {
  const MutexLock lock(mu_);
  closed_ = true;
  changed_.SignalAll();
}

void ReadDesk::Forget(ReadTicket ticket) {
  const MutexLock lock(mu_);
  forgotten_.push_back(ticket);
}

}  // namespace trainyard::master
