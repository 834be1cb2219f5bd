#include "kv/etcd/etcd_server_streams.h"

#include "gtest/gtest.h"

namespace trainyard::kv {
namespace {

class CountingStream final : public OpenStream {
 public:
  void Tick() override { ++ticks; }
  void Stop() override { ++stops; }
  int ticks = 0;
  int stops = 0;
};

TEST(OpenStreams, TellThoseThatAreOpen) {
  OpenStreams streams;
  const auto open = std::make_shared<CountingStream>();
  const auto ended = std::make_shared<CountingStream>();
  streams.Add(open);
  streams.Add(ended);
  streams.Tick();
  streams.Remove(ended.get());
  streams.Remove(ended.get());
  streams.Tick();
  EXPECT_EQ(open->ticks, 2);
  EXPECT_EQ(ended->ticks, 1);
  EXPECT_EQ(ended.use_count(), 1) << "what has ended is not held";
}

TEST(OpenStreams, EndAlsoThoseThatComeTooLate) {
  OpenStreams streams;
  const auto before = std::make_shared<CountingStream>();
  const auto late = std::make_shared<CountingStream>();
  streams.Add(before);
  streams.Stop();
  streams.Add(late);
  EXPECT_EQ(before->stops, 1);
  EXPECT_EQ(late->stops, 1);
}

}  // namespace
}  // namespace trainyard::kv
