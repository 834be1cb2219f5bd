// The bytes of one connection, whatever carries them: TLS over a socket, or a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/responder.h"

namespace trainyard::http {

// Nothing here blocks. Used by one thread.
class ByteStream {
 public:
  enum class Io : std::uint8_t {
    kDone,    // `bytes` were carried
    kWait,    // none for now: try again when the connection is ready
    kEnd,     // the peer will send no more
    kBroken,  // of no more use in either direction
  };
  struct Result {
    Io io = Io::kWait;
    std::size_t bytes = 0;
  };

  virtual ~ByteStream() = default;
  virtual Result Read(char* buffer, std::size_t size) = 0;
  // After kWait the next call must begin with the same bytes, and may have more behind them.
  virtual Result Write(std::string_view bytes) = 0;
  // Tells the peer that nothing more will be written.
  virtual void EndWriting() = 0;
  // False: the next Read() would only find that there is nothing.
  virtual bool MayHaveMore() const { return true; }
  // Who the peer has proved to be. Known once Read() has returned bytes.
  virtual const std::optional<Identity>& identity() const = 0;
};

}  // namespace trainyard::http
