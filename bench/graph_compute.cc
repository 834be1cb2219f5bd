// Arithmetic of programs against the library that multiplies for them, and against the processor. What counts
// is this process's own time: what else the machine does meanwhile is no part of it.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "bench/graph.h"
#include "graph/kernel/tensor.h"
#include "graph/kernel/threads.h"
#include "graph/pass/backward.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace trainyard::bench {
namespace {

using graph::Tensor;

constexpr std::int64_t kGraphComputeBatch = 256;
constexpr std::int64_t kSize = 1024;
constexpr std::int64_t kMlpBatch = 128;

// A product as oneDNN does it by the faster of its two ways: a call, or a primitive that was prepared.
class BareProduct {
 public:
  struct Matrix {
    float* data = nullptr;
    std::int64_t stride = 0;
    bool transposed = false;
  };
  BareProduct(Matrix a, Matrix b, std::int64_t rows, std::int64_t inner, std::int64_t cols)
      : a_(a), b_(b), rows_(rows), inner_(inner), cols_(cols), out_(graph::DataType::kFloat32, {rows, cols}) {
    const dnnl::memory::desc left = Describe(a, rows, inner);
    const dnnl::memory::desc right = Describe(b, inner, cols);
    const dnnl::memory::desc out = Describe({.stride = cols}, rows, cols);
    primitive_ = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, out), engine_));
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(left, engine_, a.data)},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(right, engine_, b.data)},
                  {DNNL_ARG_DST, dnnl::memory(out, engine_, out_.data<float>())}};
    Prepared();
    Called();
    const absl::Duration time = absl::Milliseconds(30);
    prepared_ = CpuRate(time, [&] { Prepared(); }) > CpuRate(time, [&] { Called(); });
  }
  void Run() { prepared_ ? Prepared() : Called(); }

 private:
  static dnnl::memory::desc Describe(const Matrix& matrix, std::int64_t rows, std::int64_t cols) {
    const dnnl::memory::dims strides =
        matrix.transposed ? dnnl::memory::dims{1, matrix.stride} : dnnl::memory::dims{matrix.stride, 1};
    return {{rows, cols}, dnnl::memory::data_type::f32, strides};
  }
  void Prepared() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  void Called() {
    const dnnl_status_t done =
        dnnl_sgemm(a_.transposed ? 'T' : 'N', b_.transposed ? 'T' : 'N', rows_, cols_, inner_, 1.0F, a_.data,
                   a_.stride, b_.data, b_.stride, 0.0F, out_.data<float>(), cols_);
    TY_CHECK(done == dnnl_success, "oneDNN multiplies");
  }

  const Matrix a_;
  const Matrix b_;
  const std::int64_t rows_;
  const std::int64_t inner_;
  const std::int64_t cols_;
  Tensor out_;
  dnnl::engine engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream_ = dnnl::stream(engine_);
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  bool prepared_ = false;
};

// The three products of one layer: forward, its input's gradient, its weight's gradient.
class BareLayer {
 public:
  void Run() {
    forward_.Run();
    of_input_.Run();
    of_weight_.Run();
  }

 private:
  // Rows that lie a little farther apart than they are long, which the library is faster on.
  static constexpr std::int64_t kStride = kSize + 16;
  Tensor x_ = Tensor(graph::DataType::kFloat32, {kGraphComputeBatch, kStride});
  Tensor w_ = Tensor(graph::DataType::kFloat32, {kSize, kStride});
  Tensor d_ = Tensor(graph::DataType::kFloat32, {kGraphComputeBatch, kStride});
  BareProduct forward_{
      {x_.data<float>(), kStride}, {w_.data<float>(), kStride}, kGraphComputeBatch, kSize, kSize};
  BareProduct of_input_{
      {d_.data<float>(), kStride}, {w_.data<float>(), kStride, true}, kGraphComputeBatch, kSize, kSize};
  BareProduct of_weight_{
      {x_.data<float>(), kStride, true}, {d_.data<float>(), kStride}, kSize, kGraphComputeBatch, kSize};
};

// The same as a program with an fc, its bias and a loss, gradients of all three but no update.
class LayerProgram {
 public:
  absl::Status Make() {
    graph::Builder net("fc");
    const graph::Ref x =
        net.Parameter({kGraphComputeBatch, kSize}, {.name = "x", .initializer = graph::Uniform()});
    const graph::Ref loss = net.Mean(net.Fc(x, kSize));
    TY_ASSIGN_OR_RETURN(graph::Programs programs, net.Finish());
    TY_RETURN_IF_ERROR(graph::AppendBackward(programs.main, loss.name).status());
    TY_RETURN_IF_ERROR(graph::RunOnce(programs.startup, scope_, services_));
    TY_ASSIGN_OR_RETURN(block_, graph::PreparedBlock::Make(programs.main, 0, scope_));
    return block_->Run(services_);
  }
  void Run() {
    const absl::Status run = block_->Run(services_);
    TY_CHECK(run.ok(), Message(run));
  }

 private:
  graph::Scope scope_;
  graph::Services services_;
  std::unique_ptr<graph::PreparedBlock> block_;
};

absl::StatusOr<Pair> MeasureLayer(const Settings& settings) {
  LayerProgram program;
  TY_RETURN_IF_ERROR(program.Make());
  BareLayer bare;
  return Alternate(
      3 * settings.rounds, [&] { return CpuRate(settings.time / 4, [&] { program.Run(); }); },
      [&] { return CpuRate(settings.time / 4, [&] { bare.Run(); }); });
}

absl::StatusOr<Pair> MeasureMlp(const Settings& settings) {
  TY_ASSIGN_OR_RETURN(const Digits digits,
                      WriteDigits(settings.folder + "/digits", settings.quick ? 1280 : 60000));
  TY_ASSIGN_OR_RETURN(const graph::Programs programs, MakeMlp(digits, kMlpBatch));
  TY_ASSIGN_OR_RETURN(const std::unique_ptr<LocalTraining> training, LocalTraining::Make(programs, 1));
  TY_RETURN_IF_ERROR(ProcessorPeak(absl::ZeroDuration()).status());
  const auto step = [&] {
    const absl::Status run = training->Step();
    TY_CHECK(run.ok(), Message(run));
  };
  step();
  return Alternate(
      3 * settings.rounds, [&] { return CpuRate(settings.time / 4, step) * kMlpBatch; },
      [&] { return *ProcessorPeak(settings.time / 10) / MlpArithmetic(); });
}

}  // namespace

double CpuRate(absl::Duration time, const std::function<void()>& work) {
  const absl::Duration begin = OwnCpuTime();
  std::int64_t done = 0;
  absl::Duration used;
  do {
    work();
    ++done;
    used = OwnCpuTime() - begin;
  } while (used < time);
  return static_cast<double>(done) / absl::ToDoubleSeconds(used);
}

void GraphComputeRows(const Settings& settings, std::vector<Row>& rows) {
  graph::SetThreads(1);
  const auto add = [&](Row row, const absl::StatusOr<Pair>& pair) {
    if (pair.ok()) row.limit = pair->limit;
    Add(rows, std::move(row), pair.ok() ? absl::StatusOr<double>(pair->figure) : pair.status());
  };
  add({.name = "graph: fc 1024x1024 forward and backward, batch 256, one core",
       .unit = "batches/s",
       .limit_name = "bare oneDNN products of the same sizes/s",
       .least_ratio = 0.85},
      MeasureLayer(settings));
  add({.name = "graph: MLP 784-128-64-10, batch 128, one core",
       .unit = "samples/s",
       .limit_name = "the same arithmetic at the core's peak/s",
       .least_ratio = 0.4},
      MeasureMlp(settings));
}

}  // namespace trainyard::bench
