#include "local/api/direct_transport.h"

#include <deque>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/text.h"

namespace trainyard::local {
namespace {

// Waits for all answers of a batch.
struct Batch {
  Mutex mu;
  CondVar changed;
  std::vector<absl::StatusOr<kube::Response>> answers TY_GUARDED_BY(mu);
  std::size_t missing TY_GUARDED_BY(mu) = 0;
};

// A body on its way from the server's threads to the reader's.
class Pipe final : public BodyWriter {
 public:
  explicit Pipe(std::shared_ptr<Alarm> news = nullptr) : news_(std::move(news)) {}

  bool Write(std::shared_ptr<const std::string> piece) override {
    {
      MutexLock lock(mu_);
      if (cancelled_ || closed_) return false;
      backlog_ += piece->size();
      pieces_.push_back(std::move(piece));
      changed_.SignalAll();
    }
    if (news_ != nullptr) news_->Notify();
    return true;
  }

  std::size_t Backlog() override {
    MutexLock lock(mu_);
    return backlog_;
  }

  void Close() override {
    {
      MutexLock lock(mu_);
      closed_ = true;
      gone_ = nullptr;
      changed_.SignalAll();
    }
    if (news_ != nullptr) news_->Notify();
  }

  void OnGone(std::function<void()> gone) override {
    {
      MutexLock lock(mu_);
      if (!cancelled_) {
        gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }

  absl::StatusOr<std::string> Read(absl::Duration timeout, const std::function<void()>& pump) {
    pump();
    const SteadyTime deadline = Clock::System().Steady() + timeout;
    MutexLock lock(mu_);
    while (pieces_.empty() && !closed_ && !cancelled_) {
      if (timeout <= absl::ZeroDuration() || !changed_.WaitUntil(mu_, deadline)) {
        if (pieces_.empty() && !closed_ && !cancelled_)
          return absl::DeadlineExceededError("nothing came in time");
      }
    }
    if (cancelled_) return absl::CancelledError("the reader has gone");
    std::string all;
    for (const auto& piece : pieces_) all += *piece;
    pieces_.clear();
    backlog_ = 0;
    return all;
  }

  void Cancel() {
    std::function<void()> gone;
    {
      MutexLock lock(mu_);
      cancelled_ = true;
      gone.swap(gone_);
      changed_.SignalAll();
    }
    if (gone) gone();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<std::shared_ptr<const std::string>> pieces_ TY_GUARDED_BY(mu_);
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
  std::function<void()> gone_ TY_GUARDED_BY(mu_);
  const std::shared_ptr<Alarm> news_;
};

class PipeReader final : public kube::BodyReader {
 public:
  PipeReader(std::shared_ptr<Pipe> pipe, std::function<void()> pump)
      : pipe_(std::move(pipe)), pump_(std::move(pump)) {}
  ~PipeReader() override { pipe_->Cancel(); }
  absl::StatusOr<std::string> Read(absl::Duration timeout) override { return pipe_->Read(timeout, pump_); }
  void Cancel() override { pipe_->Cancel(); }

 private:
  std::shared_ptr<Pipe> pipe_;
  std::function<void()> pump_;
};

// The head of an opened answer, or a whole one.
struct Opening {
  Mutex mu;
  CondVar changed;
  std::optional<kube::Response> head TY_GUARDED_BY(mu);
  std::shared_ptr<Pipe> pipe TY_GUARDED_BY(mu);
};

class OpeningResponder final : public Responder {
 public:
  OpeningResponder(std::shared_ptr<Opening> opening, std::shared_ptr<Alarm> news)
      : opening_(std::move(opening)), news_(std::move(news)) {}
  void Send(kube::Response response) override {
    MutexLock lock(opening_->mu);
    opening_->head = std::move(response);
    opening_->changed.SignalAll();
  }
  std::shared_ptr<BodyWriter> Stream(kube::Response head) override {
    auto pipe = std::make_shared<Pipe>(news_);
    MutexLock lock(opening_->mu);
    opening_->head = std::move(head);
    opening_->pipe = pipe;
    opening_->changed.SignalAll();
    return pipe;
  }

 private:
  std::shared_ptr<Opening> opening_;
  std::shared_ptr<Alarm> news_;
};

class BatchResponder final : public Responder {
 public:
  BatchResponder(std::shared_ptr<Batch> batch, std::size_t place) : batch_(std::move(batch)), place_(place) {}
  void Send(kube::Response response) override {
    MutexLock lock(batch_->mu);
    batch_->answers[place_] = std::move(response);
    if (--batch_->missing == 0) batch_->changed.SignalAll();
  }
  // Nobody asks for a stream through DoAll() who wants to read it: it is closed at once.
  std::shared_ptr<BodyWriter> Stream(kube::Response head) override {
    auto pipe = std::make_shared<Pipe>();
    pipe->Cancel();
    Send(std::move(head));
    return pipe;
  }

 private:
  std::shared_ptr<Batch> batch_;
  const std::size_t place_;
};

}  // namespace

ApiRequest DirectTransport::Wrap(kube::Request request) const {
  return {.request = std::move(request),
          .identity = {.user = StrCat("system:", name_), .groups = {"system:masters"}},
          .user_agent = name_};
}

std::vector<absl::StatusOr<kube::Response>> DirectTransport::DoAll(std::vector<kube::Request> requests) {
  auto batch = std::make_shared<Batch>();
  {
    MutexLock lock(batch->mu);
    batch->answers.assign(requests.size(), absl::UnknownError("not answered"));
    batch->missing = requests.size();
  }
  for (std::size_t at = 0; at < requests.size(); ++at) {
    server_.Handle(Wrap(std::move(requests[at])), std::make_unique<BatchResponder>(batch, at));
  }
  MutexLock lock(batch->mu);
  while (batch->missing > 0) batch->changed.Wait(batch->mu);
  return std::move(batch->answers);
}

absl::StatusOr<kube::OpenedResponse> DirectTransport::Open(kube::Request request) {
  auto opening = std::make_shared<Opening>();
  server_.Handle(Wrap(std::move(request)), std::make_unique<OpeningResponder>(opening, news_));
  MutexLock lock(opening->mu);
  while (!opening->head) opening->changed.Wait(opening->mu);
  kube::OpenedResponse opened{.head = *std::move(opening->head)};
  const bool good = opened.head.code >= 200 && opened.head.code < 300;
  if (!opening->pipe && good) {  // all of it is here
    opening->pipe = std::make_shared<Pipe>();
    if (!opened.head.body.empty())
      opening->pipe->Write(std::make_shared<const std::string>(std::move(opened.head.body)));
    opening->pipe->Close();
  }
  if (opening->pipe) {
    opened.body = std::make_unique<PipeReader>(opening->pipe, [this] { server_.PumpIfNeeded(); });
  }
  return opened;
}

}  // namespace trainyard::local
