// Writes to an embedded store as fast as it can until it is killed, and reports every acknowledged
// transaction on standard output. Made to die: integration/crash_test.cc kills it again and again on the same
// store.
//
// usage: crash_writer FOLDER THREADS
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "base/text.h"
#include "kv/disk/embedded_store.h"
#include "tests/integration/crash_report.h"

namespace trainyard {
namespace {

void WriteForEver(kv::Store& store, std::uint32_t thread) {
  const auto now = store.Get(CrashKey(thread, 0));
  std::uint64_t number = now.ok() && now->kv ? CrashNumber(now->kv->value) : 0;
  while (true) {
    ++number;
    const std::string value = CrashValue(thread, number);
    const auto done =
        store.Txn({.then = {kv::PutOp{CrashKey(thread, 0), value}, kv::PutOp{CrashKey(thread, 1), value}}});
    if (!done.ok()) {
      std::cerr << done.status() << "\n";
      std::_Exit(3);
    }
    const CrashReport report{.thread = thread, .number = number, .revision = done->revision};
    if (::write(STDOUT_FILENO, &report, sizeof report) != sizeof report) std::_Exit(4);
    // Often enough that kills fall into compactions and into rewriting, too.
    if (number % 64 == 0) (void)store.Compact(done->revision);
  }
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  kv::EmbeddedOptions options;
  options.journal.first_segment_bytes = 32 << 10;
  options.journal.max_segment_bytes = 256 << 10;
  const auto store = kv::OpenEmbeddedStore(argv[1], options);
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return 1;
  }
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(std::atoi(argv[2])); ++i) {
    threads.emplace_back([&, i] { WriteForEver(**store, i); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) { return trainyard::Main(argc, argv); }
