// What watchers cost the writer, and how fast events reach them.
#include <memory>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/report.h"
#include "kv/disk/embedded_store.h"
#include "kv/memory_store.h"

namespace trainyard::bench {
namespace {

constexpr int kWatchers = 1000;

std::vector<std::unique_ptr<kv::Watcher>> Watch(kv::Store& store, bool distinct) {
  std::vector<std::unique_ptr<kv::Watcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    auto watcher =
        store.Watch({.range = kv::KeyRange::Prefix(distinct ? StrCat("watched/", i, "/") : "watched/")});
    TY_CHECK(watcher.ok(), Message(watcher.status()));
    watchers.push_back(*std::move(watcher));
  }
  return watchers;
}

// Writes below the watched prefixes in turn; whoever watches drains its events, as a user would.
double WriteRate(kv::Store& store, const std::vector<std::unique_ptr<kv::Watcher>>& watchers,
                 absl::Duration time) {
  std::uint64_t next = 0;
  return Rate(1, time, [&](int) {
    const std::size_t i = next++ % kWatchers;
    const auto done = store.Put(StrCat("watched/", i, "/key"), "value");
    TY_CHECK(done.ok(), Message(done.status()));
    if (!watchers.empty()) TY_CHECK(watchers[i]->Next(absl::Seconds(10)).ok(), "the watcher sees the write");
  });
}

Row Slowdown(const std::string& name, kv::Store& store, const Settings& settings) {
  const Pair pair = Alternate(
      settings.rounds,
      [&] {
        const auto watchers = Watch(store, /*distinct=*/true);
        return WriteRate(store, watchers, settings.time);
      },
      [&] { return WriteRate(store, {}, settings.time); });
  return {.name = name,
          .figure = pair.figure,
          .unit = "writes/s",
          .limit_name = "without watchers/s",
          .limit = pair.limit,
          .least_ratio = 0.5};
}

}  // namespace

void WatchRows(const Settings& settings, std::vector<Row>& rows) {
  auto embedded = kv::OpenEmbeddedStore(settings.folder + "/watched");
  TY_CHECK(embedded.ok(), Message(embedded.status()));
  const auto memory = kv::NewMemoryStore(Clock::System());
  rows.push_back(Slowdown("embedded: writes under 1000 watchers", **embedded, settings));
  // Without a disk to hide behind.
  rows.push_back(Slowdown("memory: writes under 1000 watchers", *memory, settings));

  const auto watchers = Watch(**embedded, /*distinct=*/false);
  const double rounds = Rate(1, settings.time, [&](int) {
    TY_CHECK((*embedded)->Put("watched/all", "value").ok(), "a write");
    for (const auto& watcher : watchers) TY_CHECK(watcher->Next(absl::Seconds(10)).ok(), "everybody sees it");
  });
  rows.push_back({.name = "embedded: watch fan-out, 1 write to 1000 watchers",
                  .figure = rounds * kWatchers,
                  .unit = "events/s"});
}

}  // namespace trainyard::bench
