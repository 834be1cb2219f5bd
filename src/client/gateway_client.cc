#include "client/gateway_client.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

// The first line of the answer, as a document: answers to a stream of one question have one.
absl::StatusOr<Document> Parsed(const kube::Response& response, std::string_view where) {
  std::string_view body = response.body;
  body = body.substr(0, body.find('\n'));
  auto document = ParseJson(body);
  if (document.ok() && document->is_object()) return document;
  return absl::InternalError(StrCat(where, " answers what no etcd does (",
                                    Shortened(Escaped(body), std::size_t{200}), "): check the address"));
}

}  // namespace

GatewayClient::GatewayClient(std::unique_ptr<kube::Transport> transport, std::string path,
                             absl::Duration timeout)
    : transport_(std::move(transport)), path_(std::move(path)), timeout_(timeout) {}

std::string GatewayClient::url() const { return StrCat(transport_->Server(), path_); }
std::string GatewayClient::where() const { return StrCat("the store at ", url()); }

kube::Request GatewayClient::RequestFor(const Question& question, absl::Duration timeout) const {
  return {
      .method = "POST", .target = StrCat(path_, question.path), .body = question.body, .timeout = timeout};
}

Verdict GatewayClient::Take(const Question& question, const absl::StatusOr<kube::Response>& response) {
  Verdict verdict = Judge(response, where(), question.asked);
  if (verdict.outcome == Outcome::kDone || verdict.outcome == Outcome::kRefused) answered_ = true;
  // What only reads has not changed anything, whatever became of it.
  if (verdict.outcome == Outcome::kUnknown && question.kind == Kind::kRead) {
    verdict = {Outcome::kNotMade, absl::UnavailableError(verdict.status.message())};
  }
  return verdict;
}

absl::StatusOr<Document> GatewayClient::Call(const Question& question) {
  const SteadyTime deadline = Clock::System().Steady() + timeout_;
  for (absl::Duration pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    std::vector<kube::Request> requests;
    requests.push_back(RequestFor(question, deadline - Clock::System().Steady()));
    const auto responses = transport_->DoAll(std::move(requests));
    const Verdict verdict = Take(question, responses.front());
    if (verdict.outcome == Outcome::kDone) return Parsed(*responses.front(), where());
    // Nothing is begun that has no time left: how a write ended that was never sent must not be in doubt.
    const bool again =
        verdict.outcome == Outcome::kNotMade && answered_ && Clock::System().Steady() + pause < deadline;
    if (!again) return verdict.status;
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(pause));
  }
}

std::vector<absl::StatusOr<Document>> GatewayClient::CallAll(const std::vector<Question>& questions) {
  std::vector<kube::Request> requests;
  requests.reserve(questions.size());
  for (const Question& question : questions) requests.push_back(RequestFor(question, timeout_));
  const auto responses = transport_->DoAll(std::move(requests));
  std::vector<absl::StatusOr<Document>> answers;
  answers.reserve(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Verdict verdict = Take(questions[i], responses[i]);
    if (verdict.outcome == Outcome::kDone) {
      answers.push_back(Parsed(*responses[i], where()));
    } else if (verdict.outcome == Outcome::kNotMade && answered_) {
      answers.push_back(Call(questions[i]));
    } else {
      answers.emplace_back(verdict.status);
    }
  }
  return answers;
}

absl::StatusOr<std::unique_ptr<kube::BodyReader>> GatewayClient::Open(const Question& question) {
  auto opened = transport_->Open(RequestFor(question, timeout_));
  const Verdict verdict =
      Take(question, opened.ok() ? absl::StatusOr<kube::Response>(std::move(opened->head)) : opened.status());
  if (verdict.outcome == Outcome::kDone) return std::move(opened->body);
  return verdict.status;
}

}  // namespace trainyard::client
