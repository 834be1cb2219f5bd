// Google Benchmark over the pure parts that every request passes through.
#include <benchmark/benchmark.h>

#include "base/crc32c.h"
#include "base/text.h"
#include "kv/disk/record_codec.h"
#include "kv/key_index.h"
#include "kv/memory_store.h"
#include "kv/range_map.h"

namespace trainyard::kv {
namespace {

void FindKey(benchmark::State& state) {
  KeyIndex index;
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    keys.push_back(StrCat("registry/pods/default/pod-", i * 7919 % state.range(0)));
    if (index.Find(keys.back(), i) == nullptr) index.Add(keys.back(), {.mod_revision = i + 1});
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(index.Find(keys[next++ % keys.size()], INT64_MAX));
}
BENCHMARK(FindKey)->Arg(1000)->Arg(100000);

void EncodeRecord(benchmark::State& state) {
  const std::string value(static_cast<std::size_t>(state.range(0)), 'v');
  const Record record{
      .kind = Record::Kind::kPut, .revision = 7, .key = "registry/pods/default/pod-1", .value = value};
  std::string out;
  for (auto _ : state) {
    out.clear();
    Encode(record, {.segment = 1, .offset = 64, .group = 64}, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(EncodeRecord)->Arg(256)->Arg(65536);

void DecodeRecord(benchmark::State& state) {
  const std::string value(static_cast<std::size_t>(state.range(0)), 'v');
  const Record record{
      .kind = Record::Kind::kPut, .revision = 7, .key = "registry/pods/default/pod-1", .value = value};
  std::string bytes;
  Encode(record, {.segment = 1, .offset = 64, .group = 64}, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(Decode(bytes, 1, 64));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DecodeRecord)->Arg(256)->Arg(65536);

void FindWatchers(benchmark::State& state) {
  RangeMap<int> map;
  int item = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    map.Insert(KeyRange::Prefix(StrCat("watched/", i, "/")), &item);
  int found = 0;
  for (auto _ : state) map.ForEachContaining("watched/17/key", [&](int*) { ++found; });
  benchmark::DoNotOptimize(found);
}
BENCHMARK(FindWatchers)->Arg(10)->Arg(1000)->Arg(100000);

void PutInMemory(benchmark::State& state) {
  const auto store = NewMemoryStore(Clock::System());
  std::int64_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(store->Put(StrCat("key/", next++ % 1000), "value"));
    if (next % 100000 == 0) (void)store->Compact(next);
  }
}
BENCHMARK(PutInMemory);

}  // namespace
}  // namespace trainyard::kv

BENCHMARK_MAIN();
