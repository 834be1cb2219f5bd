#include "http/plain_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace trainyard::http {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Fd socket) : socket_(std::move(socket)) {}

  Result Read(char* buffer, std::size_t size) override {
    const ssize_t got = ::recv(socket_.get(), buffer, size, 0);
    if (got < 0) return Failed();
    drained_ = static_cast<std::size_t>(got) < size;
    return got == 0 ? Result{Io::kEnd} : Result{Io::kDone, static_cast<std::size_t>(got)};
  }
  Result Write(std::string_view bytes) override {
    const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return put < 0 ? Failed() : Result{Io::kDone, static_cast<std::size_t>(put)};
  }
  void EndWriting() override { ::shutdown(socket_.get(), SHUT_WR); }
  bool MayHaveMore() const override { return !drained_; }
  const std::optional<Identity>& identity() const override { return nobody_; }

 private:
  static Result Failed() {
    return {errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Io::kWait : Io::kBroken};
  }

  const Fd socket_;
  const std::optional<Identity> nobody_;
  bool drained_ = false;  // the last read took all there was
};

}  // namespace

std::unique_ptr<ByteStream> NewPlainStream(Fd socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace trainyard::http
