// The streams of a server that are open: owned from their begin to their end, and ended with the server.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"

namespace trainyard::kv {

class OpenStream {
 public:
  virtual ~OpenStream() = default;
  virtual void Tick() = 0;
  virtual void Stop() = 0;  // ends it, for the server ends
};

// Owns the streams from their begin to their end. From any thread.
class OpenStreams {
 public:
  void Add(const std::shared_ptr<OpenStream>& stream);
  void Remove(OpenStream* stream);
  void Tick();
  // Ends all there are, and each that comes from now on.
  void Stop();

 private:
  std::vector<std::shared_ptr<OpenStream>> All();

  Mutex mu_;
  absl::flat_hash_map<OpenStream*, std::shared_ptr<OpenStream>> streams_ TY_GUARDED_BY(mu_);
  bool stopping_ TY_GUARDED_BY(mu_) = false;
};

}  // namespace trainyard::kv
