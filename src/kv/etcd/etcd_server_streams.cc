#include "kv/etcd/etcd_server_streams.h"

#include <utility>

namespace trainyard::kv {

void OpenStreams::Add(const std::shared_ptr<OpenStream>& stream) {
  {
    MutexLock lock(mu_);
    streams_.emplace(stream.get(), stream);
    if (!stopping_) return;
  }
  stream->Stop();
}

void OpenStreams::Remove(OpenStream* stream) {
  std::shared_ptr<OpenStream> removed;  // goes after the lock
  MutexLock lock(mu_);
  if (const auto it = streams_.find(stream); it != streams_.end()) {
    removed = std::move(it->second);
    streams_.erase(it);
  }
}

std::vector<std::shared_ptr<OpenStream>> OpenStreams::All() {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<OpenStream>> all;
  all.reserve(streams_.size());
  for (const auto& [key, stream] : streams_) all.push_back(stream);
  return all;
}

void OpenStreams::Tick() {
  for (const auto& stream : All()) stream->Tick();
}

void OpenStreams::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  for (const auto& stream : All()) stream->Stop();
}

}  // namespace trainyard::kv
