#include "http/calls.h"

#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/document.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "http/client_engine.h"

namespace trainyard::http {
namespace {

constexpr std::size_t kMostCallBody = std::size_t{4} << 20;
constexpr std::size_t kMostCalls = 16'384;  // at a time

class OneCall final : public ClientExchange {
 public:
  OneCall(Call call, Calls::Some some, std::function<void(absl::StatusOr<Answer>)> done)
      : ClientExchange({.method = std::move(call.method),
                        .target = std::move(call.url),
                        .body = std::move(call.body),
                        .timeout = call.timeout,
                        .idle_limit = absl::InfiniteDuration()},
                       std::make_shared<const Credential>(CredentialOf(call.token)), some != nullptr),
        some_(std::move(some)),
        done_(std::move(done)) {
    if (call.delay > absl::ZeroDuration()) due = Clock::System().Steady() + call.delay;
  }

  void OnHead(Response head) override { answer_.code = head.code; }
  bool OnBody(std::string_view bytes) override {
    if (some_ != nullptr && answer_.code / 100 == 2) {
      some_(bytes);
    } else if (answer_.body.size() < kMostCallBody) {
      answer_.body.append(bytes);
    }
    return true;
  }
  void OnEnd(absl::Status status) override {
    if (status.ok()) return done_(std::move(answer_));
    done_(absl::IsCancelled(status) ? std::move(status) : absl::UnavailableError(status.message()));
  }

 private:
  static Credential CredentialOf(std::string_view token) {
    Credential credential;
    if (!token.empty()) credential.headers.push_back(BearerHeader(token));
    return credential;
  }

  const Calls::Some some_;
  const std::function<void(absl::StatusOr<Answer>)> done_;
  Answer answer_;
};

class EngineCalls final : public Calls {
 public:
  explicit EngineCalls(std::shared_ptr<ClientEngine> engine) : engine_(std::move(engine)) {}
  ~EngineCalls() override { engine_->Stop(); }

  Id Begin(Call call, Done done) override { return Follow(std::move(call), nullptr, std::move(done)); }
  Id Follow(Call call, Some some, Done done) override {
    std::shared_ptr<OneCall> begun;
    Id id = 0;
    {
      const MutexLock lock(mu_);
      id = ++last_;
      begun = std::make_shared<OneCall>(std::move(call), std::move(some),
                                        [this, id, done = std::move(done)](absl::StatusOr<Answer> answer) {
                                          Forget(id);
                                          done(std::move(answer));
                                        });
      under_way_.emplace(id, begun);
    }
    engine_->Begin({std::move(begun)});
    return id;
  }
  void Cancel(Id id) override {
    std::shared_ptr<OneCall> call;
    {
      const MutexLock lock(mu_);
      const auto found = under_way_.find(id);
      if (found == under_way_.end()) return;
      call = found->second;
    }
    engine_->Cancel(std::move(call));
  }

 private:
  void Forget(Id id) {
    const MutexLock lock(mu_);
    under_way_.erase(id);
  }

  const std::shared_ptr<ClientEngine> engine_;
  Mutex mu_;
  Id last_ TY_GUARDED_BY(mu_) = 0;
  std::unordered_map<Id, std::shared_ptr<OneCall>> under_way_ TY_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Calls>> Calls::Start() {
  TY_ASSIGN_OR_RETURN(Endpoint endpoint, MakeEndpoint({}, {.max_in_flight = kMostCalls,
                                                           .connect_timeout = absl::Seconds(2),
                                                           .max_body_bytes = kMostCallBody,
                                                           .buffer_bytes = 4096,  // answers are small
                                                           .keep_alive = absl::Seconds(5),
                                                           .direct = true,
                                                           .repeats = true}));
  TY_ASSIGN_OR_RETURN(std::shared_ptr<ClientEngine> engine, ClientEngine::Start(std::move(endpoint)));
  return std::make_unique<EngineCalls>(std::move(engine));
}

std::vector<absl::StatusOr<Answer>> Calls::DoAll(std::vector<Call> calls) {
  Mutex mu;
  CondVar changed;
  std::size_t left = calls.size();
  std::vector<absl::StatusOr<Answer>> answers(calls.size(), absl::UnknownError("not asked"));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Begin(std::move(calls[i]), [&, i](absl::StatusOr<Answer> answer) {
      const MutexLock lock(mu);
      answers[i] = std::move(answer);
      --left;
      changed.Signal();
    });
  }
  const MutexLock lock(mu);
  while (left > 0) changed.Wait(mu);
  return answers;
}

std::string ErrorOf(const Answer& answer) {
  const auto document = ParseJson(answer.body);
  if (document.ok()) {
    if (const std::string_view error = StringAt(*document, {"error"}); !error.empty())
      return std::string(error);
  }
  return StrCat("it answered ", answer.code);
}

}  // namespace trainyard::http
