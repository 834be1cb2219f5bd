// A way to the API server on which everything goes wrong that can: seeded, and the same for the same seed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/ids.h"
#include "base/text.h"
#include "kube/error.h"
#include "kube/http.h"

namespace trainyard::sim {

// How likely each fault is, in thousandths of the requests.
struct FaultRates {
  int refused = 0;       // 5xx, and nothing was done
  int lost = 0;          // it was done, and the answer never came
  int stale = 0;         // somebody else writes to the object just before
  int broken_watch = 0;  // a watch ends, or is told that its version is gone
};

// One process's way. Once it has crashed nothing of it reaches the server any more.
class FaultyTransport final : public kube::Transport {
 public:
  struct Hooks {
    std::function<void(const kube::Request&)> before_write;  // what is about to reach the server
    std::function<void(const kube::Request&)> disturb;       // writes to the same object
    std::function<void(const kube::Request&)> after_write;   // what has reached it; may be empty
  };

  FaultyTransport(kube::Transport& to, std::uint64_t seed, Hooks hooks)
      : to_(to), random_(seed), hooks_(std::move(hooks)) {}

  FaultRates rates;
  std::optional<int> writes_until_crash;
  bool knows_gates = true;  // the server; else it drops the gates of pods, as one before 1.26
  bool crashed = false;
  int writes = 0;

  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override {
    std::vector<absl::StatusOr<kube::Response>> answers;
    for (kube::Request& request : requests) answers.push_back(DoOne(std::move(request)));
    return answers;
  }

  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override {
    if (crashed) return absl::UnavailableError("crashed");
    if (Chance(rates.refused)) return absl::UnavailableError("refused");
    auto opened = to_.Open(std::move(request));
    if (!opened.ok() || opened->body == nullptr) return opened;
    opened->body = std::make_unique<FaultyBody>(*this, std::move(opened->body));
    return opened;
  }
  std::string Server() const override { return "the simulated server"; }

 private:
  class FaultyBody final : public kube::BodyReader {
   public:
    FaultyBody(FaultyTransport& transport, std::unique_ptr<kube::BodyReader> body)
        : transport_(transport), body_(std::move(body)) {}
    absl::StatusOr<std::string> Read(absl::Duration timeout) override {
      if (transport_.crashed || broken_) return absl::UnavailableError("broken");
      if (transport_.Chance(transport_.rates.broken_watch)) {
        broken_ = true;
        if (transport_.random_.Below(2) == 0) return absl::UnavailableError("broken");
        return std::string(
            R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}})"
            "\n");
      }
      return body_->Read(timeout);
    }
    void Cancel() override { body_->Cancel(); }

   private:
    FaultyTransport& transport_;
    const std::unique_ptr<kube::BodyReader> body_;
    bool broken_ = false;
  };

  bool Chance(int thousandths) {
    return thousandths > 0 && random_.Below(1000) < static_cast<std::uint64_t>(thousandths);
  }

  absl::StatusOr<kube::Response> DoOne(kube::Request request) {
    if (crashed) return absl::UnavailableError("crashed");
    const bool write = request.method != "GET";
    if (Chance(rates.refused)) {
      return random_.Below(2) == 0
                 ? absl::StatusOr<kube::Response>(absl::UnavailableError("refused"))
                 : kube::ToResponse({.code = 500, .reason = "InternalError", .message = "it fell over"});
    }
    if (!write) return Do(std::move(request));
    if (writes_until_crash && --*writes_until_crash < 0) {
      crashed = true;
      return absl::UnavailableError("crashed");
    }
    if (Chance(rates.stale)) hooks_.disturb(request);
    ++writes;
    hooks_.before_write(request);
    const bool lost = Chance(rates.lost);
    if (!knows_gates) DropGates(request);
    auto answer = Do(request);
    if (hooks_.after_write) hooks_.after_write(request);
    if (lost) return absl::DeadlineExceededError("no answer");
    return answer;
  }
  static void DropGates(kube::Request& request) {
    if (request.method != "POST" || request.body.find("schedulingGates") == std::string::npos) return;
    Document object = ParseJson(request.body).value();
    MakeObjectAt(object, {"spec"}).erase("schedulingGates");
    request.body = PrintJson(object);
  }

  absl::StatusOr<kube::Response> Do(kube::Request request) {
    std::vector<kube::Request> one;
    one.push_back(std::move(request));
    return std::move(to_.DoAll(std::move(one)).front());
  }

  kube::Transport& to_;
  IdSource random_;
  const Hooks hooks_;
};

}  // namespace trainyard::sim
