#include "kv/local_store.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {

LocalStore::LocalStore(std::unique_ptr<Journal> journal, Options options)
    : options_(std::move(options)),
      journal_(std::move(journal)),
      lease_ids_(options_.lease_seed ? IdSource(*options_.lease_seed) : IdSource::Random()),
      state_(*journal_),
      alarm_(options_.clock->NewAlarm()) {
  MutexLock lock(mu_);
  next_progress_ = options_.clock->Steady() + options_.progress_interval;
}

LocalStore::~LocalStore() {
  StopKeeper();
  MutexLock lock(mu_);
  TY_CHECK(watchers_.size() == 0, "a watcher outlives its store");
}

void LocalStore::Replay(const Record& record, const Location& location) {
  MutexLock lock(mu_);
  state_.Apply(record, location, options_.clock->Steady());
}

void LocalStore::StartKeeper() {
  {
    MutexLock lock(mu_);
    for (const Version& version : state_.Settle()) journal_->Release(version.location);
    published_ = state_.revision();
  }
  if (options_.keeper) keeper_ = std::thread([this] { KeepHouse(); });
}

void LocalStore::StopKeeper() {
  if (!keeper_.joinable()) return;
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  alarm_->Notify();
  keeper_.join();
}

// ---- reading

absl::StatusOr<GetResult> LocalStore::Get(std::string_view key, Revision revision) {
  TY_RETURN_IF_ERROR(ValidateKey(key));
  TickWithoutKeeper();
  GetResult result;
  Version version;
  std::shared_ptr<const RecordSource> source;
  {
    MutexLock lock(mu_);
    TY_RETURN_IF_ERROR(state_.CheckReadable(revision, published_));
    result.revision = published_;
    const Version* found = state_.index().Find(key, revision == 0 ? published_ : revision);
    if (found == nullptr) return result;
    version = *found;
    source = journal_->Find(version.location);
  }
  TY_ASSIGN_OR_RETURN(std::string value, source->ReadValue(version.location));
  result.kv = ToKeyValue(key, version, std::move(value));
  return result;
}

absl::StatusOr<RangeResult> LocalStore::Range(const RangeRequest& request) {
  TY_RETURN_IF_ERROR(Validate(request));
  TickWithoutKeeper();
  RangeResult result;
  std::vector<std::pair<Location, std::shared_ptr<const RecordSource>>> values;
  {
    MutexLock lock(mu_);
    TY_RETURN_IF_ERROR(state_.CheckReadable(request.revision, published_));
    result.revision = published_;
    const Revision at = request.revision == 0 ? published_ : request.revision;
    state_.index().ForEach(request.range, at, [&](std::string_view key, const Version& version) {
      if (request.limit > 0 && result.kvs.size() == static_cast<std::size_t>(request.limit)) {
        result.more = true;
        return false;
      }
      result.kvs.push_back(ToKeyValue(key, version));
      if (!request.keys_only) values.emplace_back(version.location, journal_->Find(version.location));
      return true;
    });
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    TY_ASSIGN_OR_RETURN(result.kvs[i].value, values[i].second->ReadValue(values[i].first));
  }
  return result;
}

// ---- writing, in groups

absl::StatusOr<TxnResult> LocalStore::Txn(const TxnRequest& request) {
  TY_RETURN_IF_ERROR(Validate(request));
  TickWithoutKeeper();
  return Commit(&request);
}

void LocalStore::TxnAsync(TxnRequest request, TxnDone done) {
  if (const absl::Status valid = Validate(request); !valid.ok()) {
    done(valid);
    return;
  }
  if (!options_.keeper) {
    done(Txn(request));
    return;
  }
  auto pending = std::make_unique<Pending>();
  pending->request = std::move(request);
  pending->command = &pending->request;
  pending->done = std::move(done);
  bool leads = false;
  {
    MutexLock lock(mu_);
    std::shared_ptr<Group> group = Join(*pending.release(), leads);  // Finish() owns it again
    if (leads) led_by_keeper_ = std::move(group);
  }
  if (leads) alarm_->Notify();
}

absl::StatusOr<Lease> LocalStore::GrantLease(absl::Duration ttl) {
  TY_RETURN_IF_ERROR(ValidateTtl(ttl));
  TickWithoutKeeper();
  const Lease lease{.id = static_cast<LeaseId>(lease_ids_.Next() >> 1 | 1),
                    .ttl = absl::Ceil(ttl, absl::Seconds(1))};  // whole seconds, as etcd's
  TY_RETURN_IF_ERROR(Commit(Grant{lease.id, lease.ttl}));
  if (options_.keeper) alarm_->Notify();  // it may be the next to end
  return lease;
}

absl::StatusOr<absl::Duration> LocalStore::KeepAlive(LeaseId lease) {
  TickWithoutKeeper();
  MutexLock lock(mu_);
  const SteadyTime now = options_.clock->Steady();
  const LeaseTable::Entry* entry = state_.leases().Find(lease);
  // One that is due has ended, though nobody has deleted its keys yet.
  if (entry == nullptr || entry->deadline <= now) {
    return LeaseNotFoundError(lease);
  }
  return *state_.leases().Renew(lease, now);
}

absl::Status LocalStore::RevokeLease(LeaseId lease) {
  TickWithoutKeeper();
  return Commit(Revoke{lease}).status();
}

absl::Status LocalStore::Compact(Revision revision) {
  TickWithoutKeeper();
  TY_RETURN_IF_ERROR(Commit(Compaction{revision}));
  AfterCompact();
  return absl::OkStatus();
}

absl::StatusOr<TxnResult> LocalStore::Commit(Command command) {
  Pending pending{.command = command};
  bool leads = false;
  std::shared_ptr<Group> group;
  {
    MutexLock lock(mu_);
    group = Join(pending, leads);
    // A group that waits for the keeper is led by whoever comes first: also by the keeper itself, which
    // commits too.
    if (!leads && led_by_keeper_ == group) {
      led_by_keeper_ = nullptr;
      leads = true;
    }
  }
  if (leads) {
    Lead(*group);
  } else {
    group->over.wait(false);
  }
  return std::move(pending.result);
}

std::shared_ptr<LocalStore::Group> LocalStore::Join(Pending& pending, bool& leads) {
  leads = forming_ == nullptr;
  if (leads) forming_ = std::make_shared<Group>();
  forming_->members.push_back(&pending);
  return forming_;
}

void LocalStore::TakeTurn() {
  while (turn_taken_) turn_ended_.Wait(mu_);
  turn_taken_ = true;
}

void LocalStore::EndTurn() {
  turn_taken_ = false;
  turn_ended_.SignalAll();
}

void LocalStore::Lead(Group& group) {
  bool changes = false;
  {
    MutexLock lock(mu_);
    TakeTurn();
    TY_CHECK(forming_.get() == &group, "a group forms until its leader's turn");
    forming_ = nullptr;
    for (Pending* member : group.members) {
      Evaluate(*member);
      changes = changes || !member->changes.records.empty();
    }
  }
  const absl::Status flushed = changes ? journal_->Flush() : absl::OkStatus();
  {
    MutexLock lock(mu_);
    Finish(group, flushed);
    EndTurn();
  }
  group.over = true;
  group.over.notify_all();
  CallReadyWatchers();
}

void LocalStore::Evaluate(Pending& pending) {
  if (const auto* request = std::get_if<const TxnRequest*>(&pending.command)) {
    pending.result = state_.Evaluate(**request, pending.changes);
  } else {
    absl::Status status;
    if (const auto* grant = std::get_if<Grant>(&pending.command)) {
      status = state_.EvaluateGrant(grant->id, grant->ttl, pending.changes);
    } else if (const auto* revoke = std::get_if<Revoke>(&pending.command)) {
      status = state_.EvaluateRevoke(revoke->id, pending.changes);
    } else {
      status = state_.EvaluateCompact(std::get<Compaction>(pending.command).revision, pending.changes);
    }
    pending.result = status.ok() ? absl::StatusOr<TxnResult>(TxnResult{.succeeded = true}) : status;
  }
  const std::vector<Record>& records = pending.changes.records;
  if (records.empty()) return;
  journal_->Stage(records, pending.locations);
  const SteadyTime now = options_.clock->Steady();
  for (std::size_t i = 0; i < records.size(); ++i) state_.Apply(records[i], pending.locations[i], now);
}

void LocalStore::Finish(Group& group, const absl::Status& flushed) {
  if (flushed.ok()) {
    Deliveries deliveries;
    for (const Pending* member : group.members) {
      for (const Record& record : member->changes.records) FindWatchers(record, deliveries);
    }
    Deliver(deliveries);
    published_ = state_.revision();
    for (const Version& version : state_.Settle()) journal_->Release(version.location);
  } else {
    for (auto member = group.members.rbegin(); member != group.members.rend(); ++member) {
      const std::vector<Record>& records = (*member)->changes.records;
      for (auto record = records.rbegin(); record != records.rend(); ++record) state_.Undo(*record);
      (*member)->result = flushed;
    }
  }
  const bool had = !finished_.empty();
  for (Pending* member : group.members) {
    if (member->done != nullptr) finished_.emplace_back(member);
  }
  if (!had && !finished_.empty()) alarm_->Notify();
}

// ---- watching

std::optional<WatchEvent> LocalStore::EventOf(const Record& record, bool with_previous) const {
  if (record.kind != Record::Kind::kPut && record.kind != Record::Kind::kDelete) return std::nullopt;
  WatchEvent event;
  event.type = record.kind == Record::Kind::kPut ? WatchEvent::Type::kPut : WatchEvent::Type::kDelete;
  event.kv = ToKeyValue(record);
  const Version* before = with_previous ? state_.index().Find(record.key, record.revision - 1) : nullptr;
  if (before != nullptr) {
    absl::StatusOr<std::string> value = journal_->Find(before->location)->ReadValue(before->location);
    if (value.ok()) {
      event.previous = ToKeyValue(record.key, *before, *std::move(value));
    } else {
      log::Error("cannot read the value before a change", {{"key", record.key}, {"error", value.status()}});
    }
  }
  return event;
}

void LocalStore::FindWatchers(const Record& record, Deliveries& deliveries) const {
  bool with_previous = false;
  std::vector<LocalWatcher*> interested;
  watchers_.ForEachContaining(record.key, [&](LocalWatcher* watcher) {
    interested.push_back(watcher);
    with_previous = with_previous || watcher->request().with_previous;
  });
  if (interested.empty()) return;
  std::optional<WatchEvent> event = EventOf(record, with_previous);
  if (!event) return;
  const auto shared = std::make_shared<const WatchEvent>(*std::move(event));
  for (LocalWatcher* watcher : interested) deliveries[watcher].push_back(shared);
}

// Each watcher gets all that a group has for it at once: between two events of one revision it could be
// drained, and the second would come too late.
void LocalStore::Deliver(const Deliveries& deliveries) {
  for (const auto& [watcher, events] : deliveries) {
    if (watcher->Push(events)) ready_.push_back(watcher);
  }
}

// A watcher that goes waits for the calls under way, so none of them reaches one that is gone.
void LocalStore::CallReadyWatchers() {
  std::vector<LocalWatcher*> ready;
  {
    MutexLock lock(mu_);
    if (ready_.empty()) return;
    ready.swap(ready_);
    ++calling_;
  }
  for (const LocalWatcher* watcher : ready) watcher->CallOnReady();
  MutexLock lock(mu_);
  --calling_;
  called_.SignalAll();
}

absl::StatusOr<std::unique_ptr<Watcher>> LocalStore::Watch(WatchRequest request) {
  TY_RETURN_IF_ERROR(Validate(request));
  TickWithoutKeeper();
  MutexLock lock(mu_);
  if (request.start_revision == 0) request.start_revision = published_ + 1;
  auto watcher = std::make_unique<LocalWatcher>(static_cast<WatchSource&>(*this), std::move(request));
  watcher->Restart(PastSince(watcher->request(), watcher->request().start_revision));
  watchers_.Insert(watcher->request().range, watcher.get());
  return watcher;
}

absl::StatusOr<std::vector<PastEvent>> LocalStore::PastSince(const WatchRequest& request, Revision from) {
  std::vector<PastEvent> past;
  if (from > published_) return past;
  if (from < state_.compacted()) return CompactedError(from, state_.compacted());
  const auto add = [&, newest = published_](std::string_view key, const Version& version,
                                            const Version* previous) {
    if (version.mod_revision > newest) return;
    PastEvent& event = past.emplace_back();
    event.key = std::string(key);
    event.version = version;
    event.source = journal_->Find(version.location);
    if (request.with_previous && previous != nullptr) {
      event.previous = *previous;
      event.previous_source = journal_->Find(previous->location);
    }
  };
  state_.index().ForEachChange(request.range, from, add);
  std::ranges::sort(past, {},
                    [](const PastEvent& e) { return std::tie(e.version.mod_revision, e.version.sub); });
  return past;
}

void LocalStore::CatchUp(LocalWatcher& watcher) {
  MutexLock lock(mu_);
  watcher.Restart(PastSince(watcher.request(), watcher.next_revision()));
}

void LocalStore::Forget(LocalWatcher& watcher) {
  MutexLock lock(mu_);
  watchers_.Erase(watcher.request().range, &watcher);  // first: nobody puts it into ready_ any more
  std::erase(ready_, &watcher);
  while (calling_ > 0) called_.Wait(mu_);
}

// ---- what time brings

void LocalStore::EndDueLeases() {
  std::vector<LeaseId> due;
  {
    MutexLock lock(mu_);
    const SteadyTime now = options_.clock->Steady();
    if (now >= lease_retry_) due = state_.leases().Due(now);
  }
  for (const LeaseId id : due) {
    const absl::Status revoked = Commit(Revoke{id}).status();
    if (!revoked.ok() && !absl::IsNotFound(revoked)) {
      log::Warn("cannot end a lease; trying again in a second", {{"lease", id}, {"error", revoked}});
      MutexLock lock(mu_);
      lease_retry_ = options_.clock->Steady() + absl::Seconds(1);
      return;
    }
  }
}

void LocalStore::TellProgress() {
  {
    MutexLock lock(mu_);
    const SteadyTime now = options_.clock->Steady();
    if (now < next_progress_) return;
    next_progress_ = now + options_.progress_interval;
    std::vector<LocalWatcher*> all;
    watchers_.ForEach([&](LocalWatcher* watcher) { all.push_back(watcher); });
    for (LocalWatcher* watcher : all) {
      if (watcher->PushProgress(published_)) ready_.push_back(watcher);
    }
  }
  CallReadyWatchers();
}

void LocalStore::Tick() {
  EndDueLeases();
  TellProgress();
}

void LocalStore::TickWithoutKeeper() {
  if (!options_.keeper) Tick();
}

void LocalStore::KeepHouse() {
  while (true) {
    std::shared_ptr<Group> group;
    std::vector<std::unique_ptr<Pending>> finished;
    SteadyTime wake;
    {
      MutexLock lock(mu_);
      group = std::move(led_by_keeper_);
      finished.swap(finished_);
      if (stopping_ && group == nullptr && finished.empty()) return;
      wake = std::min(std::max(state_.leases().NextDeadline(), lease_retry_), next_progress_);
    }
    for (const std::unique_ptr<Pending>& pending : finished) pending->done(std::move(pending->result));
    if (group != nullptr) {
      Lead(*group);
    } else if (finished.empty()) {
      alarm_->WaitUntil(wake);
    }
    Tick();
  }
}

void LocalStore::WithoutWriters(const std::function<void()>& work) {
  {
    MutexLock lock(mu_);
    TakeTurn();
  }
  work();
  MutexLock lock(mu_);
  EndTurn();
}

void LocalStore::WithState(const std::function<void(Mvcc&)>& work) {
  MutexLock lock(mu_);
  work(state_);
}

}  // namespace trainyard::kv
