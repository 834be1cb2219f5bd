// A file system in memory whose power can be cut between any two calls, and whose calls can be made to fail.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/disk/file_system.h"

namespace trainyard::kv {

// Used by one thread. Folders exist when something is in them.
class FakeFileSystem final : public FileSystem {
 public:
  absl::Status MakeFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> Lock(const std::string& path) override;

  // How many calls have changed something, or tried to, so far.
  int changes() const { return changes_; }
  // The n-th changing call from now on (from 1) fails with this, once; 0: none.
  void FailChange(int n, absl::Status status);
  // From the n-th changing call on (from 1), every call fails: the power is off.
  void CutPowerAt(int n);
  // The calls work again, and nothing is lost: it was the process that ended, not the power.
  void RestartProcess() { cut_at_ = fail_at_ = 0; }
  // The power comes back. Each 512-byte sector and each name that was changed and not synced is, by the dice
  // of `ids`, as it was or as it became; what was synced is there. All files must have been closed.
  void RestorePower(IdSource& ids);

  // All files as they are now, to try several futures from one past.
  struct Inode {
    std::string now;
    std::string synced;
  };
  struct Image {
    std::map<std::string, Inode> now;
    std::map<std::string, Inode> synced;
  };
  Image Save() const;
  void Load(const Image& image);

  // A file's bytes, to look at and to damage.
  std::string& Bytes(const std::string& path);
  std::vector<std::string> Paths() const;

 private:
  friend class FakeFile;
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  absl::Status Change(const std::string& what);
  absl::Status Power() const;

  Names now_;
  Names synced_;
  int changes_ = 0;
  int fail_at_ = 0;
  absl::Status failure_;
  int cut_at_ = 0;
  bool locked_ = false;
};

}  // namespace trainyard::kv
