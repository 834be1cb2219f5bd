#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "base/check.h"
#include "base/text.h"

namespace trainyard::data {
namespace {

constexpr int kGzip = MAX_WBITS + 16;  // how zlib is told to expect gzip's header, not its own

uInt AtMostAnInt(std::size_t size) { return static_cast<uInt>(std::min<std::size_t>(size, INT_MAX)); }

Bytef* Bytes(const char* bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes)); }

}  // namespace

bool LooksLikeGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

struct GzipReader::State {
  std::string_view rest;  // not yet looked at
  std::uint64_t offset = 0;
  bool inside = false;  // a member has begun and not ended
  z_stream stream{};

  // One step of zlib over what is there.
  int Step() {
    const uInt given = AtMostAnInt(rest.size());
    stream.next_in = Bytes(rest.data());
    stream.avail_in = given;
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    offset += given - stream.avail_in;
    rest.remove_prefix(given - stream.avail_in);
    return result;
  }
};

GzipReader::GzipReader(std::string_view packed) : state_(std::make_unique<State>()) {
  state_->rest = packed;
  TY_CHECK(::inflateInit2(&state_->stream, kGzip) == Z_OK, "zlib has memory for its state");
}

GzipReader::~GzipReader() { ::inflateEnd(&state_->stream); }

std::uint64_t GzipReader::offset() const { return state_->offset; }

absl::StatusOr<std::size_t> GzipReader::Read(char* out, std::size_t size) {
  State& state = *state_;
  std::size_t done = 0;
  while (done < size) {
    if (!state.inside) {
      if (state.rest.empty()) return done;
      if (!LooksLikeGzip(state.rest)) return absl::DataLossError("this is not gzip data");
      state.inside = true;
    }
    const uInt room = AtMostAnInt(size - done);
    state.stream.next_out = Bytes(out) + done;
    state.stream.avail_out = room;
    const int result = state.Step();
    done += room - state.stream.avail_out;
    if (result == Z_STREAM_END) {
      state.inside = false;
      TY_CHECK(::inflateReset(&state.stream) == Z_OK, "zlib can begin again");
    } else if (result == Z_BUF_ERROR) {
      return absl::DataLossError("the gzip data is cut");
    } else if (result != Z_OK) {
      const char* why = state.stream.msg;
      return absl::DataLossError(StrCat("the gzip data is damaged: ", why == nullptr ? "unreadable" : why));
    }
  }
  return done;
}

struct GzipWriter::State {
  explicit State(std::string& text) : out(text) {}
  std::string& out;
  z_stream stream{};

  void Step(int flush) {
    char block[1 << 14];
    int result = Z_OK;
    do {
      stream.next_out = Bytes(block);
      stream.avail_out = sizeof block;
      result = ::deflate(&stream, flush);
      TY_CHECK(result != Z_STREAM_ERROR, "zlib packs what it is given");
      out.append(block, sizeof block - stream.avail_out);
    } while (stream.avail_out == 0 && result != Z_STREAM_END);
  }
};

GzipWriter::GzipWriter(std::string& out) : state_(std::make_unique<State>(out)) {
  const int result =
      ::deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  TY_CHECK(result == Z_OK, "zlib has memory for its state");
}

GzipWriter::~GzipWriter() { ::deflateEnd(&state_->stream); }

void GzipWriter::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    const uInt n = AtMostAnInt(bytes.size());
    state_->stream.next_in = Bytes(bytes.data());
    state_->stream.avail_in = n;
    state_->Step(Z_NO_FLUSH);
    bytes.remove_prefix(n);
  }
}

void GzipWriter::Finish() { state_->Step(Z_FINISH); }

}  // namespace trainyard::data
