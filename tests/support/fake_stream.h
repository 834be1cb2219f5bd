// A connection's bytes in memory, for tests and the fuzzer: they are the client, and the network.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "http/byte_stream.h"

namespace trainyard::testing_support {

// Both ends of it, as the test sees them.
struct FakeWire {
  std::string to_server;
  bool ended = false;   // behind to_server
  bool broken = false;  // at once
  std::string from_server;
  std::size_t room = SIZE_MAX;  // bytes that may still be written
  bool writing_ended = false;
  int writes = 0;
  std::optional<http::Identity> identity;
  std::string promised;  // what the next write must begin with
};

class FakeStream final : public http::ByteStream {
 public:
  explicit FakeStream(FakeWire& wire) : wire_(wire) {}

  Result Read(char* buffer, std::size_t size) override {
    if (wire_.broken) return {Io::kBroken};
    if (wire_.to_server.empty()) return {wire_.ended ? Io::kEnd : Io::kWait};
    const std::size_t got = std::min(size, wire_.to_server.size());
    std::copy_n(wire_.to_server.data(), got, buffer);
    wire_.to_server.erase(0, got);
    return {Io::kDone, got};
  }

  Result Write(std::string_view bytes) override {
    if (wire_.broken) return {Io::kBroken};
    TY_CHECK(!bytes.empty() && !wire_.writing_ended, "something is written, and nothing after the end");
    TY_CHECK(bytes.starts_with(wire_.promised), "a write that had to wait is repeated with the same bytes");
    ++wire_.writes;
    if (wire_.room == 0) {
      wire_.promised = bytes;
      return {Io::kWait};
    }
    wire_.promised.clear();
    const std::size_t put = std::min(bytes.size(), wire_.room);
    wire_.room -= put;
    wire_.from_server += bytes.substr(0, put);
    return {Io::kDone, put};
  }

  void EndWriting() override { wire_.writing_ended = true; }
  const std::optional<http::Identity>& identity() const override { return wire_.identity; }

 private:
  FakeWire& wire_;
};

}  // namespace trainyard::testing_support
