// A client that sends anything, over a network that cuts it anywhere, to the connection of the HTTPS server.
//
// The first bytes of an input say how it is cut and how the answers come; the rest is what the client sends.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "http/connection.h"
#include "tests/support/fake_stream.h"

namespace trainyard::http {
namespace {

using testing_support::FakeStream;
using testing_support::FakeWire;

// Hands out an input's bytes; zeros when there are no more.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}
  std::uint8_t Next() {
    if (data_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(data_.front());
    data_.remove_prefix(1);
    return byte;
  }
  std::string_view Rest() { return std::exchange(data_, {}); }

 private:
  std::string_view data_;
};

class Session {
 public:
  explicit Session(Bytes script) : script_(script) {
    host_.date = "now";
    host_.options.max_body_bytes = 4096;
    host_.options.max_header_bytes = 2048;
    host_.options.max_stream_backlog_bytes = 256;
    host_.options.relayed = [](std::string_view target) { return target.starts_with("/r"); };
    host_.judge = JudgeByToken(
        [](std::string_view token) -> std::optional<Identity> {
          if (token != "t") return std::nullopt;
          return Identity{.user = "u"};
        },
        "the server");
    host_.handler = [this](ServerRequest request, std::unique_ptr<Responder> responder) {
      TY_CHECK(request.request.target.starts_with('/'), "a target begins with a slash");
      TY_CHECK(request.request.body.size() <= 4096, "a body is bounded");
      if (request.body != nullptr) bodies_.push_back(std::move(request.body));
      Answer(std::move(responder));
    };
    if ((script_.Next() & 1) != 0) wire_.identity = Identity{.user = "u"};
    connection_ =
        std::make_unique<Connection>(host_, std::make_unique<FakeStream>(wire_), [this] { ++wakes_; });
  }

  void Run(std::string_view sent) {
    bool alive = true;
    for (int step = 0; alive && step < 2000 && (!sent.empty() || step < 50); ++step) {
      const std::uint8_t how = script_.Next();
      const std::size_t size = std::min<std::size_t>(sent.size(), 1 + (how & 0x3fU) * (how & 0x40U ? 40 : 1));
      wire_.to_server += sent.substr(0, size);
      sent.remove_prefix(size);
      wire_.room = (how & 0x80U) != 0 ? script_.Next() : SIZE_MAX;
      alive = Settle(true);
      if (alive) alive = AnswerLate(how);
      if (alive && how == 0x7f) alive = connection_->OnTime() && Settle(false);
    }
    wire_.ended = true;
    wire_.room = SIZE_MAX;
    if (alive) alive = Settle(true, true);
    late_.clear();
    writers_.clear();
    if (alive) alive = Settle(false);
    TY_CHECK(!alive, "a connection ends with its client");
    connection_.reset();
  }

 private:
  bool Settle(bool readable, bool hangup = false) {
    bool alive = connection_->Advance(readable, hangup);
    for (int i = 0; alive && wakes_ > 0; ++i) {
      TY_CHECK(i < 10'000, "a connection comes to rest");
      wakes_ = 0;
      alive = connection_->Advance(false, false);
    }
    return alive;
  }

  void Answer(std::unique_ptr<Responder> responder) {
    const std::uint8_t how = script_.Next();
    switch (how % 5) {
      case 0:
        responder->Send({.body = std::string(how, 'x')});
        break;
      case 1:
        responder->Send({.code = 204});
        break;
      case 2:
        break;  // forgotten
      case 3:
        late_.push_back(std::move(responder));
        break;
      default:
        writers_.push_back(responder->Stream({}));
        writers_.back()->OnGone([] {});
        break;
    }
  }

  bool AnswerLate(std::uint8_t how) {
    if (!late_.empty()) {
      late_.back()->Send({.body = "late"});
      late_.pop_back();
    }
    if (how % 4 == 0) TakeBodies();
    for (const auto& writer : writers_) writer->Write(std::make_shared<const std::string>(how, 'y'));
    if (!writers_.empty() && how % 3 == 0) {
      if (how % 2 == 0) writers_.back()->Close();
      writers_.pop_back();
    }
    return Settle(false);
  }

  void TakeBodies() {
    for (const auto& body : bodies_) {
      TY_CHECK(body->Take().bytes.size() <= std::size_t{512} << 10, "what waits of a body is bounded");
    }
  }

  Bytes script_;
  FakeWire wire_;
  ConnectionHost host_;
  int wakes_ = 0;
  std::vector<std::unique_ptr<Responder>> late_;
  std::vector<std::shared_ptr<BodyWriter>> writers_;
  std::vector<std::shared_ptr<RequestBody>> bodies_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace
}  // namespace trainyard::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t script = std::min<std::size_t>(input.size(), 32);
  trainyard::http::Session session{trainyard::http::Bytes(input.substr(0, script))};
  session.Run(input.substr(script));
  return 0;
}
