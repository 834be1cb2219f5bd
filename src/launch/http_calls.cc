#include "launch/http_calls.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/curl.h"
#include "base/document.h"
#include "base/mutex.h"
#include "base/text.h"

namespace trainyard::launch {
namespace {

constexpr std::size_t kMostBody = std::size_t{4} << 20;
constexpr long kConnectMs = 2000;
constexpr long kKeepAliveSeconds = 5;
constexpr int kLongestPollMs = 1000;
constexpr long kBufferBytes = 4096;  // answers are small, and there may be many calls

class CurlCalls final : public HttpCalls {
 public:
  ~CurlCalls() override {
    {
      const MutexLock lock(mu_);
      stopping_ = true;
    }
    curl_multi_wakeup(multi_);
    if (thread_.joinable()) thread_.join();
    for (CURL* const easy : spare_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }

  absl::Status Open() {
    multi_ = curl_multi_init();
    if (multi_ == nullptr) return absl::InternalError("libcurl cannot be used");
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  Id Begin(HttpCall call, Done done) override { return Put(std::move(call), nullptr, std::move(done)); }
  Id Follow(HttpCall call, Some some, Done done) override {
    return Put(std::move(call), std::move(some), std::move(done));
  }

  void Cancel(Id id) override {
    {
      const MutexLock lock(mu_);
      cancelled_.push_back(id);
    }
    curl_multi_wakeup(multi_);
  }

 private:
  struct Call {
    Id id = 0;
    HttpCall call;
    Some some;
    Done done;
    SteadyTime due;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::string body;
  };

  Id Put(HttpCall call, Some some, Done done) {
    auto made = std::make_unique<Call>();
    made->due = Clock::System().Steady() + call.delay;
    made->call = std::move(call);
    made->some = std::move(some);
    made->done = std::move(done);
    Id id = 0;
    {
      const MutexLock lock(mu_);
      id = made->id = ++last_;
      fresh_.push_back(std::move(made));
    }
    curl_multi_wakeup(multi_);
    return id;
  }

  void Run() {
    for (;;) {
      std::vector<Id> cancelled;
      {
        const MutexLock lock(mu_);
        if (stopping_) break;
        for (auto& call : fresh_) waiting_.push_back(std::move(call));
        fresh_.clear();
        cancelled.swap(cancelled_);
      }
      for (const Id id : cancelled) Drop(id);
      const int wait = BeginDue();
      int running = 0;
      curl_multi_perform(multi_, &running);
      TakeEnded();
      curl_multi_poll(multi_, nullptr, 0, wait, nullptr);
    }
    while (!active_.empty()) Finish(active_.begin()->second->easy, absl::CancelledError("it is stopped"));
    const MutexLock lock(mu_);
    for (auto* const list : {&fresh_, &waiting_}) {
      for (const auto& call : *list) call->done(absl::CancelledError("it is stopped"));
      list->clear();
    }
  }

  // How long until the next one is due.
  int BeginDue() {
    const SteadyTime now = Clock::System().Steady();
    absl::Duration next = absl::Milliseconds(kLongestPollMs);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if ((*it)->due > now) {
        next = std::min(next, (*it)->due - now);
        ++it;
        continue;
      }
      Start(std::move(*it));
      it = waiting_.erase(it);
    }
    return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(next, absl::Milliseconds(1))));
  }

  void Start(std::unique_ptr<Call> call) {
    CURL* easy = nullptr;
    if (spare_.empty()) {
      easy = curl_easy_init();
    } else {
      easy = spare_.back();
      spare_.pop_back();
      curl_easy_reset(easy);
    }
    call->easy = easy;
    const HttpCall& what = call->call;
    curl_easy_setopt(easy, CURLOPT_URL, what.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
    if (call->some == nullptr)
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(what.timeout)));
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, what.method.c_str());
    if (!what.body.empty() || what.method == "POST") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(what.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, what.body.c_str());
      call->headers = curl_slist_append(call->headers, "Content-Type: application/json");
    }
    call->headers = curl_slist_append(call->headers, "Expect:");
    if (!what.token.empty())
      call->headers = curl_slist_append(call->headers, StrCat("Authorization: Bearer ", what.token).c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnData);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call.get());
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call.get());
    curl_multi_add_handle(multi_, easy);
    active_.emplace(call->id, std::move(call));
  }

  static std::size_t OnData(char* data, std::size_t size, std::size_t count, void* self) {
    auto& call = *static_cast<Call*>(self);
    const std::size_t bytes = size * count;
    long code = 0;
    curl_easy_getinfo(call.easy, CURLINFO_RESPONSE_CODE, &code);
    if (call.some != nullptr && code / 100 == 2) return call.some(std::string_view(data, bytes)) ? bytes : 0;
    if (call.body.size() + bytes > kMostBody) return 0;
    call.body.append(data, bytes);
    return bytes;
  }

  void TakeEnded() {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const easy = message->easy_handle;
      const CURLcode result = message->data.result;
      Finish(easy,
             result == CURLE_OK ? absl::OkStatus() : absl::UnavailableError(curl_easy_strerror(result)));
    }
  }

  void Drop(Id id) {
    if (const auto found = active_.find(id); found != active_.end())
      return Finish(found->second->easy, absl::CancelledError("it was cancelled"));
    const auto found = std::ranges::find_if(waiting_, [&](const auto& call) { return call->id == id; });
    if (found == waiting_.end()) return;
    const std::unique_ptr<Call> call = std::move(*found);
    waiting_.erase(found);
    call->done(absl::CancelledError("it was cancelled"));
  }

  void Finish(CURL* easy, const absl::Status& status) {
    Call* known = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &known);
    auto node = active_.extract(known->id);
    const std::unique_ptr<Call> call = std::move(node.mapped());
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    curl_multi_remove_handle(multi_, easy);
    curl_slist_free_all(call->headers);
    spare_.push_back(easy);
    if (status.ok()) {
      call->done(HttpAnswer{static_cast<int>(code), std::move(call->body)});
    } else {
      call->done(absl::Status(status.code(), StrCat(call->call.url, ": ", std::string(status.message()))));
    }
  }

  CURLM* multi_ = nullptr;
  std::thread thread_;
  // Of the thread.
  std::vector<std::unique_ptr<Call>> waiting_;  // for their time
  std::map<Id, std::unique_ptr<Call>> active_;
  std::vector<CURL*> spare_;

  Mutex mu_;
  std::vector<std::unique_ptr<Call>> fresh_ TY_GUARDED_BY(mu_);
  std::vector<Id> cancelled_ TY_GUARDED_BY(mu_);
  Id last_ TY_GUARDED_BY(mu_) = 0;
  bool stopping_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpCalls>> HttpCalls::Start() {
  auto calls = std::make_unique<CurlCalls>();
  if (absl::Status opened = calls->Open(); !opened.ok()) return opened;
  return calls;
}

std::vector<absl::StatusOr<HttpAnswer>> HttpCalls::DoAll(std::vector<HttpCall> calls) {
  Mutex mu;
  CondVar changed;
  std::size_t left = calls.size();
  std::vector<absl::StatusOr<HttpAnswer>> answers(calls.size(), absl::UnknownError("not asked"));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Begin(std::move(calls[i]), [&, i](absl::StatusOr<HttpAnswer> answer) {
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

std::string ErrorOf(const HttpAnswer& answer) {
  const auto document = ParseJson(answer.body);
  if (document.ok()) {
    if (const std::string_view error = StringAt(*document, {"error"}); !error.empty())
      return std::string(error);
  }
  return StrCat("it answered ", answer.code);
}

}  // namespace trainyard::launch
