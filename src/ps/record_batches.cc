#include "ps/record_batches.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/permutation.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/record_sources.h"

namespace trainyard::ps {
namespace {

constexpr std::size_t kAhead = 2;  // batches that are ready before they are asked for

using graph::Tensor;

absl::Status EndOfShare() { return absl::OutOfRangeError("the share of records is used up"); }

// Takes the first `count` places out of `places`.
Ranges TakeFront(Ranges& places, std::int64_t count) {
  Ranges front = Front(places, count);
  TY_CHECK(Take(places, front).ok(), "what is in front is there");
  return front;
}

absl::Status CheckPlaces(const Ranges& places, std::int64_t count) {
  std::int64_t behind = 0;
  for (const Range& range : places) {
    if (range.begin < behind || range.end <= range.begin || range.end > count) {
      return absl::InvalidArgumentError(
          StrCat("places ", Print(places), " are no share of ", count, " records"));
    }
    behind = range.end;
  }
  return absl::OkStatus();
}

}  // namespace

std::int64_t RecordAt(std::int64_t place, std::int64_t count, std::int64_t pass, std::uint64_t shuffle_seed) {
  return shuffle_seed == 0 ? place : Permutation(count, pass, shuffle_seed).At(place);
}

// A thread fills `ready_`; Next() swaps tensors with what it finds there, so that memory goes round and
// nothing is copied.
class RecordBatches::Reader {
 public:
  explicit Reader(std::unique_ptr<RecordSources> sources) : sources_(std::move(sources)) {
    thread_ = std::thread([this] { Work(); });
  }

  ~Reader() {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }

  std::int64_t count() const { return sources_->count(); }

  void Assign(Share share, bool endless) {
    next_pass_ = share.pass;
    const MutexLock lock(mu_);
    ++epoch_;
    while (!ready_.empty()) {
      Recycle(std::move(ready_.front().fields));
      ready_.pop_front();
    }
    endless_ = endless;
    pass_ = share.pass;
    wrong_ = CheckPlaces(share.places, sources_->count());
    left_ = std::move(share.places);
    assigned_ = true;
    changed_.SignalAll();
  }

  absl::Status Next(absl::Span<Tensor* const> fields) {
    TY_CHECK(fields.size() == sources_->types().size(),
             "a batch has as many tensors as the read has outputs");
    const MutexLock lock(mu_);
    while (ready_.empty() && assigned_) changed_.Wait(mu_);
    if (ready_.empty()) return EndOfShare();
    Batch& batch = ready_.front();
    // An error stays until something else is assigned.
    if (!batch.status.ok() && !batch.ends_pass) return batch.status;
    const absl::Status status = batch.status;
    if (status.ok()) {
      for (std::size_t i = 0; i < fields.size(); ++i) std::swap(*fields[i], batch.fields[i]);
      last_ = std::move(batch.share);
    } else {
      next_pass_ = batch.share.pass + 1;
    }
    Recycle(std::move(batch.fields));
    ready_.pop_front();
    changed_.SignalAll();
    return status;
  }

  std::int64_t next_pass() const { return next_pass_; }
  const Share& last() const { return last_; }

 private:
  struct Batch {
    absl::Status status;
    bool ends_pass = false;  // nothing is wrong: the next pass begins
    Share share;
    std::vector<Tensor> fields;
  };

  // Memory that somebody else still looks at is theirs.
  void Recycle(std::vector<Tensor> fields) TY_REQUIRES(mu_) {
    for (Tensor& tensor : fields) {
      if (tensor.owner().use_count() > 1) tensor = Tensor();
    }
    if (!fields.empty() && spare_.size() <= kAhead) spare_.push_back(std::move(fields));
  }

  void Work() {
    mu_.Lock();
    while (!stopping_) {
      if (!assigned_ || ready_.size() >= kAhead) {
        changed_.Wait(mu_);
        continue;
      }
      Batch batch = Begin();
      if (batch.status.ok()) {
        const std::int64_t epoch = epoch_;
        mu_.Unlock();
        batch.status = Fill(batch);
        mu_.Lock();
        if (epoch != epoch_) {
          Recycle(std::move(batch.fields));
          continue;
        }
      }
      if (!batch.status.ok() && !batch.ends_pass) assigned_ = false;
      // The end of a share is told by there being nothing more.
      if (!absl::IsOutOfRange(batch.status) || batch.ends_pass) ready_.push_back(std::move(batch));
      changed_.SignalAll();
    }
    mu_.Unlock();
  }

  // What is to be read next, or why nothing is.
  Batch Begin() TY_REQUIRES(mu_) {
    Batch batch;
    batch.share.pass = pass_;
    if (!wrong_.ok()) {
      batch.status = wrong_;
    } else if (!left_.empty()) {
      batch.share.places = TakeFront(left_, sources_->batch_size());
      if (!spare_.empty()) {
        batch.fields = std::move(spare_.back());
        spare_.pop_back();
      }
    } else {
      batch.status = EndOfShare();
      batch.ends_pass = endless_;
      ++pass_;
      if (endless_) left_ = {{0, sources_->count()}};
    }
    return batch;
  }

  absl::Status Fill(Batch& batch) {
    numbers_.clear();
    std::int64_t row = 0;
    const std::uint64_t seed = sources_->shuffle_seed();
    if (seed != 0 && (!order_ || order_pass_ != batch.share.pass)) {
      order_.emplace(sources_->count(), batch.share.pass, seed);
      order_pass_ = batch.share.pass;
    }
    for (const Range& range : batch.share.places) {
      for (std::int64_t place = range.begin; place < range.end; ++place) {
        numbers_.push_back({seed == 0 ? place : order_->At(place), row++});
      }
    }
    absl::Status status = sources_->Read(numbers_, batch.fields);
    // That would be taken for the end of a pass.
    if (absl::IsOutOfRange(status)) return {absl::StatusCode::kFailedPrecondition, status.message()};
    return status;
  }

  const std::unique_ptr<RecordSources> sources_;

  // The caller's.
  std::int64_t next_pass_ = 0;
  Share last_;

  // The thread's.
  std::vector<RecordSources::Row> numbers_;
  std::optional<Permutation> order_;
  std::int64_t order_pass_ = 0;

  Mutex mu_;
  CondVar changed_;
  std::int64_t epoch_ TY_GUARDED_BY(mu_) = 0;  // of the assignment
  bool assigned_ TY_GUARDED_BY(mu_) = false;   // and not yet read to its end
  bool endless_ TY_GUARDED_BY(mu_) = false;
  std::int64_t pass_ TY_GUARDED_BY(mu_) = 0;  // that `left_` is of
  Ranges left_ TY_GUARDED_BY(mu_);            // not read yet
  absl::Status wrong_ TY_GUARDED_BY(mu_);     // with what was assigned
  std::deque<Batch> ready_ TY_GUARDED_BY(mu_);
  std::vector<std::vector<Tensor>> spare_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<RecordBatches>> RecordBatches::Open(const graph::Op& read) {
  TY_ASSIGN_OR_RETURN(auto sources, RecordSources::Open(read));
  return std::unique_ptr<RecordBatches>(new RecordBatches(std::make_unique<Reader>(std::move(sources))));
}

RecordBatches::RecordBatches(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
RecordBatches::~RecordBatches() = default;

std::int64_t RecordBatches::count() const { return reader_->count(); }
void RecordBatches::Assign(Share share) { reader_->Assign(std::move(share), false); }
void RecordBatches::AssignAll() { reader_->Assign({.places = {{0, reader_->count()}}}, true); }
absl::Status RecordBatches::Next(absl::Span<graph::Tensor* const> fields) { return reader_->Next(fields); }
std::int64_t RecordBatches::pass() const { return reader_->next_pass(); }
const Share& RecordBatches::last() const { return reader_->last(); }

}  // namespace trainyard::ps
