// Runs a fuzz target without libFuzzer: every seed, then seeds that are cut, joined and damaged at random,
// for a bounded time. It learns nothing on the way, as scripts/fuzz does; but it can be part of every test
// run.
//
// usage: NAME SECONDS SEED-FOLDER
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMaxBytes = 16384;
const std::string* current = nullptr;  // for the handler

void KeepInput(int signal) {
  if (current != nullptr) {
    const int file = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0 && ::write(file, current->data(), current->size()) >= 0) {
      constexpr std::string_view kSaid = "the input is in crash-input in this folder\n";
      (void)!::write(STDERR_FILENO, kSaid.data(), kSaid.size());
    }
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void Try(const std::string& input) {
  current = &input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string Next() {
    std::string input = Pick();
    for (std::size_t count = 1 + Below(8); count > 0; --count) Change(input);
    if (input.size() > kMaxBytes) input.resize(kMaxBytes);
    return input;
  }

 private:
  std::size_t Below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const std::string& Pick() { return seeds_[Below(seeds_.size())]; }

  void Change(std::string& input) {
    const std::size_t at = Below(input.size() + 1);
    const std::size_t size = Below(std::min<std::size_t>(input.size() - at, 32) + 1);
    switch (Below(7)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
        break;
      case 1:
        input.insert(at, 1, static_cast<char>(Below(256)));
        break;
      case 2:
        input.erase(at, size);
        break;
      case 3:
        input.insert(at, input.substr(at, size));
        break;
      case 4: {
        const std::string& other = Pick();
        const std::size_t from = Below(other.size());
        input.insert(at, other.substr(from, Below(64)));
        break;
      }
      case 5: {
        static constexpr std::string_view kWords[] = {"null",
                                                      "true",
                                                      "-1",
                                                      "0",
                                                      "1e999",
                                                      "\"\"",
                                                      "{}",
                                                      "[]",
                                                      "\\u0000",
                                                      "..",
                                                      "%2e%2e",
                                                      "/",
                                                      "$patch",
                                                      "\r\n",
                                                      "---",
                                                      "&a",
                                                      "*a",
                                                      "k8s",
                                                      "18446744073709551616"};
        input.insert(at, kWords[Below(std::size(kWords))]);
        break;
      }
      default:
        std::swap(input[Below(input.size())], input[Below(input.size())]);
        break;
    }
  }

  const std::vector<std::string> seeds_;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SECONDS SEED-FOLDER\n", argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, KeepInput);
  std::vector<std::string> seeds;
  for (const auto& file : std::filesystem::directory_iterator(argv[2])) {
    std::ifstream in(file.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds\n", argv[2]);
    return 2;
  }
  for (const std::string& seed : seeds) Try(seed);
  Mutator mutator(seeds);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  long runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    const std::string input = mutator.Next();
    Try(input);
  }
  std::printf("%zu seeds and %ld damaged ones\n", seeds.size(), runs);
  return runs > 0 ? 0 : 1;
}
