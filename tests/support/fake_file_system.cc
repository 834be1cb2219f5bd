#include "tests/support/fake_file_system.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::kv {

class FakeFile final : public File {
 public:
  FakeFile(FakeFileSystem& files, std::shared_ptr<FakeFileSystem::Inode> inode, bool lock)
      : files_(files), inode_(std::move(inode)), lock_(lock) {}
  ~FakeFile() override {
    if (lock_) files_.locked_ = false;
  }

  absl::StatusOr<std::string> ReadAt(std::uint64_t offset, std::size_t length) const override {
    TY_RETURN_IF_ERROR(files_.Power());
    if (offset >= inode_->now.size()) return std::string();
    return inode_->now.substr(offset, length);
  }
  absl::Status WriteAt(std::uint64_t offset, std::string_view bytes) override {
    TY_RETURN_IF_ERROR(files_.Change("write"));
    if (inode_->now.size() < offset + bytes.size()) inode_->now.resize(offset + bytes.size());
    inode_->now.replace(offset, bytes.size(), bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    TY_RETURN_IF_ERROR(files_.Change("sync"));
    inode_->synced = inode_->now;
    return absl::OkStatus();
  }
  absl::StatusOr<std::uint64_t> Size() const override {
    TY_RETURN_IF_ERROR(files_.Power());
    return inode_->now.size();
  }

 private:
  FakeFileSystem& files_;
  std::shared_ptr<FakeFileSystem::Inode> inode_;
  bool lock_;
};

absl::Status FakeFileSystem::Power() const {
  if (cut_at_ > 0 && changes_ >= cut_at_) return absl::AbortedError("the power is off");
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Change(const std::string& what) {
  ++changes_;
  TY_RETURN_IF_ERROR(Power());
  if (changes_ == fail_at_) return Annotate(failure_, what);
  return absl::OkStatus();
}

void FakeFileSystem::FailChange(int n, absl::Status status) {
  fail_at_ = n == 0 ? 0 : changes_ + n;
  failure_ = std::move(status);
}

void FakeFileSystem::CutPowerAt(int n) { cut_at_ = changes_ + n; }

void FakeFileSystem::RestorePower(IdSource& ids) {
  constexpr std::size_t kSector = 512;
  const auto became = [&] { return ids.Below(2) == 1; };
  Names after;
  std::set<std::string> paths;
  for (const auto& [path, inode] : now_) paths.insert(path);
  for (const auto& [path, inode] : synced_) paths.insert(path);
  for (const std::string& path : paths) {
    const Names& from = became() ? now_ : synced_;
    if (const auto it = from.find(path); it != from.end()) after[path] = it->second;
  }
  std::set<Inode*> done;
  for (const auto& [path, inode] : after) {
    if (!done.insert(inode.get()).second) continue;
    std::string bytes = inode->synced;
    if (bytes.size() != inode->now.size() && became()) bytes.resize(inode->now.size());
    for (std::size_t at = 0; at < std::min(bytes.size(), inode->now.size()); at += kSector) {
      const std::size_t length = std::min({kSector, inode->now.size() - at, bytes.size() - at});
      if (became()) bytes.replace(at, length, inode->now, at, length);
    }
    inode->now = inode->synced = std::move(bytes);
  }
  now_ = synced_ = after;
  cut_at_ = fail_at_ = 0;
  TY_CHECK(!locked_, "files are closed before the power returns");
}

FakeFileSystem::Image FakeFileSystem::Save() const {
  Image image;
  for (const auto& [path, inode] : now_) image.now[path] = *inode;
  for (const auto& [path, inode] : synced_) image.synced[path] = *inode;
  return image;
}

void FakeFileSystem::Load(const Image& image) {
  TY_CHECK(!locked_, "files are closed before others take their place");
  now_.clear();
  synced_.clear();
  for (const auto& [path, inode] : image.now) now_[path] = std::make_shared<Inode>(inode);
  for (const auto& [path, inode] : image.synced) {
    // A name that means the same file now and after a cut must go on doing so.
    const auto it = image.now.find(path);
    const bool same =
        it != image.now.end() && it->second.now == inode.now && it->second.synced == inode.synced;
    synced_[path] = same ? now_[path] : std::make_shared<Inode>(inode);
  }
  cut_at_ = fail_at_ = 0;
}

absl::Status FakeFileSystem::MakeFolder(const std::string&) { return Power(); }

absl::StatusOr<std::vector<std::string>> FakeFileSystem::List(const std::string& path) {
  TY_RETURN_IF_ERROR(Power());
  std::vector<std::string> names;
  for (const auto& [name, inode] : now_) {
    if (name.starts_with(StrCat(path, "/"))) names.push_back(name.substr(path.size() + 1));
  }
  return names;
}

absl::StatusOr<std::unique_ptr<File>> FakeFileSystem::Open(const std::string& path, Mode mode) {
  if (mode == Mode::kCreate) {
    TY_RETURN_IF_ERROR(Change("create"));
    now_[path] = std::make_shared<Inode>();
  } else {
    TY_RETURN_IF_ERROR(Power());
  }
  const auto it = now_.find(path);
  if (it == now_.end()) return absl::NotFoundError(StrCat("cannot open ", path, ": No such file"));
  return std::make_unique<FakeFile>(*this, it->second, false);
}

absl::Status FakeFileSystem::Rename(const std::string& from, const std::string& to) {
  TY_RETURN_IF_ERROR(Change("rename"));
  now_[to] = now_[from];
  now_.erase(from);
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Remove(const std::string& path) {
  TY_RETURN_IF_ERROR(Change("remove"));
  now_.erase(path);
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SyncFolder(const std::string&) {
  TY_RETURN_IF_ERROR(Change("sync folder"));
  synced_ = now_;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<File>> FakeFileSystem::Lock(const std::string& path) {
  TY_RETURN_IF_ERROR(Power());
  if (locked_) return absl::FailedPreconditionError("is in use by process 1");
  locked_ = true;
  now_.try_emplace(path, std::make_shared<Inode>());
  return std::make_unique<FakeFile>(*this, now_[path], true);
}

std::string& FakeFileSystem::Bytes(const std::string& path) {
  const auto it = now_.find(path);
  TY_CHECK(it != now_.end(), path);
  return it->second->now;
}

std::vector<std::string> FakeFileSystem::Paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : now_) paths.push_back(path);
  return paths;
}

}  // namespace trainyard::kv
