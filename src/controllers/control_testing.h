// A whole API server with its controllers in one thread, on a clock that moves only when told to. For tests.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "controllers/actions.h"
#include "controllers/controllers.h"
#include "gtest/gtest.h"
#include "kube/api.h"
#include "kv/memory_store.h"

namespace trainyard::controllers {

// Passes requests on, except those that a test wants to fail.
class FaultyTransport final : public kube::Transport {
 public:
  using Intercept = std::function<std::optional<absl::StatusOr<kube::Response>>(const kube::Request&)>;

  explicit FaultyTransport(kube::Transport& to) : to_(to) {}
  void SetIntercept(Intercept intercept) { intercept_ = std::move(intercept); }
  // "GET /api/v1/pods" of every request that was passed on.
  std::vector<std::string>& requests() { return requests_; }

  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override {
    std::vector<absl::StatusOr<kube::Response>> answers;
    for (kube::Request& request : requests) {
      if (intercept_ != nullptr) {
        if (auto answer = intercept_(request)) {
          answers.push_back(*std::move(answer));
          continue;
        }
      }
      requests_.push_back(StrCat(request.method, " ", request.target));
      answers.push_back(std::move(to_.DoAll({std::move(request)}).front()));
    }
    return answers;
  }
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override {
    if (intercept_ != nullptr) {
      if (auto answer = intercept_(request)) {
        if (!answer->ok()) return answer->status();
        return kube::OpenedResponse{.head = **std::move(answer)};
      }
    }
    return to_.Open(std::move(request));
  }
  std::string Server() const override { return to_.Server(); }

 private:
  kube::Transport& to_;
  Intercept intercept_;
  std::vector<std::string> requests_;
};

class ControlledServer {
 public:
  explicit ControlledServer(ControllerOptions options = {}) : options_(std::move(options)) {
    options_.proxy = false;
    options_.seed = 1;
    StartControllers();
  }

  // ---- time

  ManualClock& clock() { return clock_; }
  void StopControllers() { controllers_.reset(); }
  void StartControllers() {
    controllers_ =
        std::make_unique<Controllers>(transport_, clock_, options_, [this] { return server_->resources(); });
  }
  void StartControllersWith(ControllerOptions options) {
    options_ = std::move(options);
    options_.proxy = false;
    options_.seed = 1;
    StartControllers();
  }
  // Until nothing is left to be done now.
  void Settle() {
    for (int i = 0; i < 10'000; ++i) {
      if (controllers_->Step() > clock_.Steady()) return;
    }
    ADD_FAILURE() << "the controllers do not come to rest";
  }
  // Time passes, and the controllers do what is due in it. `meanwhile` is called every second.
  void Wait(absl::Duration time, const std::function<void()>& meanwhile = [] {}) {
    const SteadyTime until = clock_.Steady() + time;
    SteadyTime second = clock_.Steady();
    Settle();
    while (clock_.Steady() < until) {
      const SteadyTime next = std::min({controllers_->Step(), until, second + absl::Seconds(1)});
      clock_.Advance(std::max(next - clock_.Steady(), absl::Milliseconds(1)));
      if (clock_.Steady() >= second + absl::Seconds(1)) {
        second = clock_.Steady();
        meanwhile();
      }
      Settle();
    }
  }

  // ---- objects

  kube::Api& api() { return api_; }
  FaultyTransport& transport() { return transport_; }
  apiserver::ApiServer& server() { return *server_; }

  Document Create(const kube::Resource& resource, std::string_view ns, std::string_view json) {
    return Parsed(api_.Create(resource, ns, std::string(json)));
  }
  Document Update(const kube::Resource& resource, const kube::ObjectKey& key, const Document& object,
                  std::string_view subresource = "") {
    return Parsed(api_.Update(resource, key, PrintJson(object), subresource));
  }
  std::optional<Document> Find(const kube::Resource& resource, const kube::ObjectKey& key) {
    auto found = api_.Get(resource, key);
    if (!found.ok()) {
      EXPECT_TRUE(kube::IsNotFound(found.status())) << found.status();
      return std::nullopt;
    }
    return ParseJson(*found).value();
  }
  bool Exists(const kube::Resource& resource, const kube::ObjectKey& key) {
    return Find(resource, key).has_value();
  }
  void Delete(const kube::Resource& resource, const kube::ObjectKey& key,
              const kube::DeleteOptions& options = {}) {
    const absl::Status status = api_.Delete(resource, key, options);
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<std::string> Names(const kube::Resource& resource, std::string_view ns) {
    std::vector<std::string> names;
    const auto page = api_.ListAll(resource, ns, {});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return names;
    for (const std::string& item : page->items) {
      names.emplace_back(StringAt(ParseJson(item).value(), {"metadata", "name"}));
    }
    return names;
  }
  // "OwnerRefInvalidNamespace Pod/x" of every event.
  std::vector<std::string> Events(std::string_view ns) {
    std::vector<std::string> events;
    const auto page = api_.ListAll(kube::Resource::Events(), ns, {});
    EXPECT_TRUE(page.ok()) << page.status();
    for (const std::string& item : page->items) {
      const Document event = ParseJson(item).value();
      events.push_back(StrCat(StringAt(event, {"reason"}), " ", StringAt(event, {"involvedObject", "kind"}),
                              "/", StringAt(event, {"involvedObject", "name"})));
    }
    std::ranges::sort(events);
    return events;
  }

 private:
  static Document Parsed(const absl::StatusOr<std::string>& answer) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? ParseJson(*answer).value() : Document(Object());
  }

  ControllerOptions options_;
  ManualClock clock_{absl::FromUnixSeconds(1'714'557'600)};
  const std::unique_ptr<kv::Store> store_ = kv::NewMemoryStore(clock_);
  const std::unique_ptr<apiserver::ApiServer> server_ =
      apiserver::ApiServer::Start({.store = store_.get(), .clock = &clock_, .seed = 1, .threads = false})
          .value();
  apiserver::DirectTransport direct_{*server_, "controllers"};
  FaultyTransport transport_{direct_};
  apiserver::DirectTransport user_{*server_, "user"};
  kube::Api api_{user_, clock_, IdSource(2), {.attempts = 1}};
  std::unique_ptr<Controllers> controllers_;
};

}  // namespace trainyard::controllers
