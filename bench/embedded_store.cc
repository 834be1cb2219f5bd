// The embedded store against the disk below it.
#include "kv/disk/embedded_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/check.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/text.h"
#include "bench/report.h"

namespace trainyard::bench {
namespace {

constexpr std::size_t kValueBytes = 256;

// A file on the same disk, filled with zeros before it is measured: a sync then costs what the disk takes and
// nothing for the file system's books. The fastest way to make one write durable, so the strictest limit.
class RawFile {
 public:
  RawFile(const std::string& path, std::size_t bytes)
      : bytes_(bytes), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    const std::string zeros(1 << 20, '\0');
    for (std::size_t at = 0; at < bytes; at += zeros.size()) {
      TY_CHECK(::pwrite(fd_.get(), zeros.data(), zeros.size(), static_cast<off_t>(at)) > 0,
               "cannot fill a file");
    }
    TY_CHECK(::fsync(fd_.get()) == 0, "cannot sync a file");
  }

  void WriteAndSync() {
    if (at_ + block_.size() > bytes_) at_ = 0;
    TY_CHECK(::pwrite(fd_.get(), block_.data(), block_.size(), static_cast<off_t>(at_)) > 0, "cannot write");
    TY_CHECK(::fdatasync(fd_.get()) == 0, "cannot sync");
    at_ += block_.size();
  }
  void Read(std::size_t at) {
    char block[512];
    TY_CHECK(::pread(fd_.get(), block, block_.size(), static_cast<off_t>(at)) > 0, "cannot read");
  }
  std::size_t block() const { return block_.size(); }

 private:
  std::size_t bytes_;
  Fd fd_;
  std::size_t at_ = 0;
  const std::string block_ = std::string(kValueBytes + 80, 'x');  // as long as a record of the store
};

std::unique_ptr<kv::LocalStore> Open(const std::string& folder) {
  auto store = kv::OpenEmbeddedStore(folder);
  TY_CHECK(store.ok(), Message(store.status()));
  return *std::move(store);
}

double CommitRate(kv::Store& store, int writers, absl::Duration time) {
  const std::string value(kValueBytes, 'v');
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(writers));
  return Rate(writers, time, [&](int writer) {
    const std::uint64_t number = numbers[static_cast<std::size_t>(writer)]++;
    const auto done = store.Put(StrCat("bench/", writer, "/", number % 1000), value);
    TY_CHECK(done.ok(), Message(done.status()));
  });
}

}  // namespace

void EmbeddedStoreRows(const Settings& settings, std::vector<Row>& rows) {
  RawFile raw(settings.folder + "/raw", 32 << 20);
  const auto store = Open(settings.folder + "/store");
  const auto sync_rate = [&] { return Rate(1, settings.time, [&](int) { raw.WriteAndSync(); }); };

  const Pair one =
      Alternate(settings.rounds, [&] { return CommitRate(*store, 1, settings.time); }, sync_rate);
  rows.push_back({.name = "embedded: durable commits, 1 writer",
                  .figure = one.figure,
                  .unit = "commits/s",
                  .limit_name = "raw write+fdatasync/s",
                  .limit = one.limit});
  const Pair many =
      Alternate(settings.rounds, [&] { return CommitRate(*store, 64, settings.time); }, sync_rate);
  rows.push_back({.name = "embedded: durable commits, 64 writers",
                  .figure = many.figure,
                  .unit = "commits/s",
                  .limit_name = "raw write+fdatasync/s",
                  .limit = many.limit,
                  .least_ratio = 10});

  for (int i = 0; i < 1000; ++i) {
    TY_CHECK(store->Put(StrCat("read/", i), std::string(kValueBytes, 'v')).ok(),
             "cannot write what is to be read");
  }
  std::uint64_t next = 0;
  const auto read = [&] {
    return Rate(1, settings.time, [&](int) {
      const auto got = store->Get(StrCat("read/", next++ % 1000), 0);
      TY_CHECK(got.ok() && got->kv, "the key was written above");
    });
  };
  const auto raw_read = [&] {
    return Rate(1, settings.time, [&](int) { raw.Read(next++ % 1000 * raw.block()); });
  };
  const Pair reads = Alternate(settings.rounds, read, raw_read);
  rows.push_back({.name = "embedded: point reads, 1 thread",
                  .figure = reads.figure,
                  .unit = "reads/s",
                  .limit_name = "raw pread/s",
                  .limit = reads.limit,
                  .least_figure = 300000});
}

}  // namespace trainyard::bench
