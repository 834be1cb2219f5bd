#include "kv/gateway/gateway_exchange.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "kv/gateway/gateway_json.h"

namespace trainyard::kv {
namespace {

constexpr std::size_t kEnoughLines = std::size_t{64} << 10;

}  // namespace

absl::Status ServerStopped() { return absl::UnavailableError("etcdserver: server stopped"); }

http::Response ToHttpResponse(GatewayAnswer answer) {
  return {
      .code = answer.code, .content_type = std::move(answer.content_type), .body = std::move(answer.body)};
}

// ---- from any thread

std::shared_ptr<http::BodyWriter> GatewayStream::writer() {
  const MutexLock lock(mu_);
  return writer_;
}

bool GatewayStream::IsOpen() {
  const MutexLock lock(mu_);
  return writer_ != nullptr && !ended_;
}

bool GatewayStream::HasBacklog() {
  const auto writer = this->writer();
  return writer != nullptr && writer->Backlog() > 0;
}

void GatewayStream::Tick() {
  const auto writer = this->writer();
  const std::size_t backlog = writer == nullptr ? 0 : writer->Backlog();
  {
    const MutexLock lock(mu_);
    const bool untaken = backlog > 0 && backlog == std::exchange(backlog_, backlog);
    if (!untaken) return;
    park_ = true;
  }
  Wake();
}

void GatewayStream::Stop() {
  std::shared_ptr<http::BodyWriter> writer;
  {
    const MutexLock lock(mu_);
    stopped_ = true;
    if (ended_) return;
    writer = writer_;
  }
  if (writer == nullptr) return;  // whoever opens it finds out
  writer->Write(std::make_shared<const std::string>(PrintStreamError(ServerStopped())));
  writer->Close();
  {
    const MutexLock lock(mu_);
    ended_ = true;
  }
  Wake();
}

void GatewayStream::Wake() {
  {
    const MutexLock lock(mu_);
    woken_ = true;
    if (std::exchange(scheduled_, true)) return;
  }
  const auto self = weak_from_this().lock();
  if (self == nullptr) return;  // on its way out
  host_.workers.Post([self] { self->Run(); });
}

// ---- on a worker

void GatewayStream::Run() {
  while (true) {
    bool ended = false;
    bool park = false;
    {
      const MutexLock lock(mu_);
      if (!std::exchange(woken_, false)) {
        scheduled_ = false;
        return;
      }
      ended = ended_;
      park = std::exchange(park_, false);
    }
    if (ended) {
      stream_ = nullptr;  // with its watches
      ended_call_(this);
      continue;
    }
    if (stream_ == nullptr) Open();
    if (stream_ != nullptr && park) stream_->Park();
    if (stream_ != nullptr) Fill();
  }
}

void GatewayStream::Open() {
  auto stream = route_.stream(host_.calls, body_, [this] { Wake(); });
  bool stopped = false;
  {
    const MutexLock lock(mu_);
    stopped = stopped_;
  }
  if (stopped && stream.ok()) stream = ServerStopped();
  if (!stream.ok()) {
    responder_->Send(ToHttpResponse(GatewayAnswer::Error(stream.status())));
    const MutexLock lock(mu_);
    ended_ = woken_ = true;
    return;
  }
  stream_ = *std::move(stream);
  const std::shared_ptr<http::BodyWriter> writer = responder_->Stream({});
  {
    const MutexLock lock(mu_);
    writer_ = writer;
  }
  writer->OnGone([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      const MutexLock lock(self->mu_);
      self->ended_ = true;
    }
    self->Wake();
  });
}

void GatewayStream::Fill() {
  const auto writer = this->writer();
  while (writer->Backlog() == 0 && !stream_->Ended()) {
    std::string lines;
    while (lines.size() < kEnoughLines && !stream_->Ended()) {
      std::optional<std::string> line = stream_->Next();
      if (!line) break;
      lines += *line;
    }
    if (lines.empty() && !stream_->Ended()) return;
    if (!lines.empty()) writer->Write(std::make_shared<const std::string>(std::move(lines)));
  }
  if (!stream_->Ended()) {
    writer->OnRoom(0, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Wake();
    });
    return;
  }
  writer->Close();
  const MutexLock lock(mu_);
  ended_ = woken_ = true;
}

}  // namespace trainyard::kv
