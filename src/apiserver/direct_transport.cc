#include "apiserver/direct_transport.h"

#include <deque>

#include "apiserver/proxy_target.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// Waits for all answers of a batch.
struct Batch {
  Mutex mu;
  CondVar changed;
  std::vector<absl::StatusOr<kube::Response>> answers TY_GUARDED_BY(mu);
  std::size_t missing TY_GUARDED_BY(mu) = 0;
};

// A body on its way from the server's threads to the reader's.
class Pipe {
 public:
  explicit Pipe(std::shared_ptr<Alarm> news = nullptr) : news_(std::move(news)) {}

  bool Write(std::shared_ptr<const std::string> piece) {
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

  std::size_t Backlog() {
    MutexLock lock(mu_);
    return backlog_;
  }

  void OnRoom(std::size_t bytes, std::function<void()> room) {
    {
      MutexLock lock(mu_);
      if (cancelled_ || closed_) return;
      if (backlog_ > bytes) {
        room_.swap(room);  // called when the reader has taken all of it
        return;
      }
    }
    room();
  }

  void Close() { End(/*complete=*/true); }
  // Whoever wrote it is gone in the middle.
  void Cut() { End(/*complete=*/false); }

  void OnGone(std::function<void()> gone) {
    {
      MutexLock lock(mu_);
      if (closed_) return;
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
    std::string all;
    std::function<void()> room;
    {
      MutexLock lock(mu_);
      while (pieces_.empty() && !closed_ && !cancelled_) {
        if (timeout <= absl::ZeroDuration() || !changed_.WaitUntil(mu_, deadline)) {
          if (pieces_.empty() && !closed_ && !cancelled_)
            return absl::DeadlineExceededError("nothing came in time");
        }
      }
      if (cancelled_) return absl::CancelledError("the reader has gone");
      if (pieces_.empty() && cut_) return absl::UnavailableError("the answer broke off");
      for (const auto& piece : pieces_) all += *piece;
      pieces_.clear();
      backlog_ = 0;
      room.swap(room_);
    }
    if (room) room();
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
  void End(bool complete) {
    std::function<void()> gone;  // outside the lock: it may own the writer that ends with it
    std::function<void()> room;
    {
      MutexLock lock(mu_);
      if (closed_) return;
      closed_ = true;
      cut_ = !complete;
      gone.swap(gone_);
      room.swap(room_);
      changed_.SignalAll();
    }
    if (news_ != nullptr) news_->Notify();
  }

  Mutex mu_;
  CondVar changed_;
  std::deque<std::shared_ptr<const std::string>> pieces_ TY_GUARDED_BY(mu_);
  std::size_t backlog_ TY_GUARDED_BY(mu_) = 0;
  bool closed_ TY_GUARDED_BY(mu_) = false;
  bool cut_ TY_GUARDED_BY(mu_) = false;
  bool cancelled_ TY_GUARDED_BY(mu_) = false;
  std::function<void()> gone_ TY_GUARDED_BY(mu_);
  std::function<void()> room_ TY_GUARDED_BY(mu_);
  const std::shared_ptr<Alarm> news_;
};

// The writer's end of it.
class PipeWriter final : public http::BodyWriter {
 public:
  explicit PipeWriter(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
  ~PipeWriter() override { pipe_->Cut(); }
  bool Write(std::shared_ptr<const std::string> piece) override { return pipe_->Write(std::move(piece)); }
  std::size_t Backlog() override { return pipe_->Backlog(); }
  void OnRoom(std::size_t bytes, std::function<void()> room) override {
    pipe_->OnRoom(bytes, std::move(room));
  }
  void Close() override { pipe_->Close(); }
  void OnGone(std::function<void()> gone) override { pipe_->OnGone(std::move(gone)); }

 private:
  const std::shared_ptr<Pipe> pipe_;
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

class OpeningResponder final : public http::Responder {
 public:
  OpeningResponder(std::shared_ptr<Opening> opening, std::shared_ptr<Alarm> news)
      : opening_(std::move(opening)), news_(std::move(news)) {}
  void Send(kube::Response response) override {
    MutexLock lock(opening_->mu);
    opening_->head = std::move(response);
    opening_->changed.SignalAll();
  }
  std::shared_ptr<http::BodyWriter> Stream(kube::Response head) override {
    auto pipe = std::make_shared<Pipe>(news_);
    MutexLock lock(opening_->mu);
    opening_->head = std::move(head);
    opening_->pipe = pipe;
    opening_->changed.SignalAll();
    return std::make_shared<PipeWriter>(std::move(pipe));
  }

 private:
  std::shared_ptr<Opening> opening_;
  std::shared_ptr<Alarm> news_;
};

// An answer that comes in pieces, put together for one who waits for all of it.
class Collector final : public http::BodyWriter {
 public:
  using Done = std::function<void(absl::StatusOr<kube::Response>)>;
  Collector(kube::Response head, Done done) : answer_(std::move(head)), done_(std::move(done)) {}
  ~Collector() override { End(absl::UnknownError("the answer broke off; what was asked for may be done")); }

  bool Write(std::shared_ptr<const std::string> piece) override {
    MutexLock lock(mu_);
    answer_.body += *piece;
    return true;
  }
  std::size_t Backlog() override { return 0; }
  void OnRoom(std::size_t /*bytes*/, std::function<void()> room) override { room(); }
  void Close() override { End(absl::OkStatus()); }
  void OnGone(std::function<void()> /*gone*/) override {}

 private:
  void End(const absl::Status& status) {
    Done done;
    kube::Response answer;
    {
      MutexLock lock(mu_);
      done.swap(done_);
      answer = std::move(answer_);
    }
    if (done == nullptr) return;
    if (status.ok()) {
      done(std::move(answer));
    } else {
      done(status);
    }
  }

  Mutex mu_;
  kube::Response answer_ TY_GUARDED_BY(mu_);
  Done done_ TY_GUARDED_BY(mu_);
};

class BatchResponder final : public http::Responder {
 public:
  // `collects`: an answer in pieces has an end that is to be waited for.
  BatchResponder(std::shared_ptr<Batch> batch, std::size_t place, bool collects)
      : batch_(std::move(batch)), place_(place), collects_(collects) {}
  void Send(kube::Response response) override { Answer(*batch_, place_, std::move(response)); }
  // Nobody asks for a watch or a log that goes on through DoAll() who wants to read it: it is closed at once.
  std::shared_ptr<http::BodyWriter> Stream(kube::Response head) override {
    if (collects_) {
      return std::make_shared<Collector>(
          std::move(head), [batch = batch_, place = place_](absl::StatusOr<kube::Response> answer) {
            Answer(*batch, place, std::move(answer));
          });
    }
    auto pipe = std::make_shared<Pipe>();
    pipe->Cancel();
    Send(std::move(head));
    return std::make_shared<PipeWriter>(std::move(pipe));
  }

 private:
  static void Answer(Batch& batch, std::size_t place, absl::StatusOr<kube::Response> answer) {
    MutexLock lock(batch.mu);
    batch.answers[place] = std::move(answer);
    if (--batch.missing == 0) batch.changed.SignalAll();
  }

  std::shared_ptr<Batch> batch_;
  const std::size_t place_;
  const bool collects_;
};

// A pod's log as far as it is written.
bool IsWholeLog(std::string_view target) {
  const std::size_t query = std::min(target.find('?'), target.size());
  return target.substr(0, query).ends_with("/log") && target.find("follow=", query) == std::string_view::npos;
}

}  // namespace

http::ServerRequest DirectTransport::Wrap(kube::Request request) const {
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
    const bool collects = IsProxyTarget(requests[at].target) || IsWholeLog(requests[at].target);
    server_.Handle(Wrap(std::move(requests[at])), std::make_unique<BatchResponder>(batch, at, collects));
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
  if (opening->pipe && !good) {  // an error is read whole
    const std::shared_ptr<Pipe> pipe = opening->pipe;
    for (auto more = pipe->Read(absl::InfiniteDuration(), [] {}); more.ok() && !more->empty();
         more = pipe->Read(absl::InfiniteDuration(), [] {})) {
      opened.head.body += *more;
    }
  } else if (opening->pipe) {
    opened.body = std::make_unique<PipeReader>(opening->pipe, [this] { server_.PumpIfNeeded(); });
  }
  return opened;
}

}  // namespace trainyard::apiserver
