// Convolution of images [batch, channels, height, width].
//
// It is a product of matrices: the filters by the patches of an image, written out as columns. On images as
// they lie here that is as fast as the matrix library's own convolutions, which first bring everything into
// another order, and faster for the few channels of small networks.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/kernel/elementwise.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/onednn.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"
#include "graph/kernel/window.h"

namespace trainyard::graph {
namespace {

// An image is here what one filter sees: the channels of one group of one example.
struct Convolution {
  std::int64_t batch;
  std::int64_t groups;
  std::int64_t channels;  // of a group
  std::int64_t filters;   // of a group
  Axis down;
  Axis across;

  std::int64_t patch() const { return channels * down.size * across.size; }
  std::int64_t in_size() const { return channels * down.length * across.length; }
  std::int64_t out_plane() const { return down.places * across.places; }
  std::int64_t out_size() const { return filters * out_plane(); }
  std::int64_t filter_size() const { return filters * patch(); }
  // A filter is one element, and the image its own columns.
  bool pointwise() const { return Pointwise(down) && Pointwise(across); }

 private:
  static bool Pointwise(const Axis& axis) { return axis.size == 1 && axis.stride == 1 && axis.padding == 0; }
};

Convolution ConvolutionOf(const Op& op, const Dims& input, const Dims& filter, const Dims& output) {
  const auto axis = [&](std::size_t i) {
    const int dim = static_cast<int>(i) + 2;
    return Axis{.length = input[dim],
                .places = output[dim],
                .size = filter[dim],
                .stride = op.IntList("strides")[i],
                .padding = op.IntList("paddings")[i],
                .dilation = op.IntList("dilations")[i]};
  };
  return {.batch = input[0],
          .groups = op.Int("groups"),
          .channels = filter[1],
          .filters = filter[0] / op.Int("groups"),
          .down = axis(0),
          .across = axis(1)};
}

// The patches of an image as a matrix: each is a column, and row k holds element k of each.
struct Columns {
  float* data = nullptr;
  std::int64_t stride = 0;  // from row to row
};

// Goes through the columns for a band of output lines in order. Calls row(image, column, places) for each
// line of each element of a patch that lies inside the image: place i of it is the image's element image + i
// * stride. Calls outside(column, count) for the elements of columns between, which are padding.
template <typename Row, typename Outside>
[[gnu::always_inline]] inline void ForEachRow(const Convolution& conv, Range band, std::int64_t stride,
                                              Row row, Outside outside) {
  const std::int64_t width = conv.across.places;
  const std::int64_t step = conv.down.stride * conv.across.length;
  const std::int64_t gap = stride - band.Count() * width;
  std::int64_t column = 0;
  for (std::int64_t channel = 0; channel < conv.channels; ++channel) {
    for (std::int64_t y = 0; y < conv.down.size; ++y) {
      const Range all = conv.down.PlacesInside(y);
      const Range lines = {std::clamp(all.first, band.first, band.last),
                           std::clamp(all.last, band.first, band.last)};
      for (std::int64_t x = 0; x < conv.across.size; ++x) {
        const Range places = conv.across.PlacesInside(x);
        const std::int64_t line = channel * conv.down.length + conv.down.At(lines.first, y);
        std::int64_t image = line * conv.across.length + conv.across.At(0, x);
        outside(column, (lines.first - band.first) * width);
        column += (lines.first - band.first) * width;
        for (std::int64_t i = lines.first; i < lines.last; ++i, column += width, image += step) {
          outside(column, places.first);
          row(image, column, places);
          outside(column + places.last, width - places.last);
        }
        outside(column, (band.last - lines.last) * width);
        column += (band.last - lines.last) * width + gap;
      }
    }
  }
}

// Copies in steps that are one vector each; the last overlaps the one before. Rows are often so short that a
// loop for what is left over would cost more than all else.
[[gnu::always_inline]] inline void CopyRow(std::int64_t count, const float* from, float* to) {
  constexpr std::int64_t kStep = 8;
  if (count < kStep) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i < count - kStep; i += kStep)
    std::memcpy(to + i, from + i, kStep * sizeof(float));
  std::memcpy(to + count - kStep, from + count - kStep, kStep * sizeof(float));
}

// Writes the patches for the lines `band` of the output.
TY_VECTOR void Unfold(const Convolution& conv, Range band, const float* image, const Columns& columns) {
  const std::int64_t stride = conv.across.stride;
  float* const out = columns.data;
  ForEachRow(
      conv, band, columns.stride,
      [=](std::int64_t from, std::int64_t to, Range places) {
        if (stride == 1) {
          CopyRow(places.Count(), image + (from + places.first), out + (to + places.first));
        } else {
          TY_INDEPENDENT
          for (std::int64_t i = places.first; i < places.last; ++i) out[to + i] = image[from + i * stride];
        }
      },
      [=](std::int64_t to, std::int64_t count) {
        if (count > 0) std::fill_n(out + to, count, 0.0F);
      });
}

// Adds columns to the elements of the image that they stand for.
TY_VECTOR void Fold(const Convolution& conv, Range band, const Columns& columns, float* image) {
  const std::int64_t stride = conv.across.stride;
  const float* const in = columns.data;
  ForEachRow(
      conv, band, columns.stride,
      [=](std::int64_t to, std::int64_t from, Range places) {
        if (stride == 1) {
          TY_INDEPENDENT
          for (std::int64_t i = places.first; i < places.last; ++i) image[to + i] += in[from + i];
        } else {
          TY_INDEPENDENT
          for (std::int64_t i = places.first; i < places.last; ++i) image[to + i * stride] += in[from + i];
        }
      },
      [](std::int64_t, std::int64_t) {});
}

// One band of lines of one image's output.
struct Piece {
  std::size_t part = 0;    // of the work; the pieces of one part are done one after the other
  Columns room;            // of this part alone
  std::int64_t image = 0;  // counted over batch and groups
  std::int64_t group = 0;
  Range band;
  bool begins_image = false;
  bool begins_group = false;  // of all the pieces of its part it is the group's first
};

// Cuts a convolution into pieces, some of them to be done at the same time, and keeps room for their columns.
class Pieces {
 public:
  absl::Status ForEach(const Convolution& conv, absl::FunctionRef<absl::Status(const Piece&)> work) {
    std::vector<absl::Status> results(parts());
    ParallelFor(static_cast<std::int64_t>(parts()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part)
        results[static_cast<std::size_t>(part)] = RunPart(conv, static_cast<std::size_t>(part), work);
    });
    for (const absl::Status& result : results) TY_RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

  // To be called before the others. Makes as many parts as there are threads, or fewer if there is little to
  // do; each has an image at least, if there are any.
  void Prepare(const Convolution& conv) {
    const std::int64_t line = std::max<std::int64_t>(1, conv.patch() * conv.across.places);
    height_ = std::clamp<std::int64_t>(kMostElements / line, 1, conv.down.places);
    const std::int64_t products = conv.groups * conv.filter_size() * conv.out_plane();
    const std::int64_t images_for_thread = kWorthAThread / std::max<std::int64_t>(1, products) + 1;
    const std::int64_t parts = std::min<std::int64_t>(Threads(), conv.batch / images_for_thread);
    rooms_.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, parts)));
    stride_ = RoomyStride(height_ * conv.across.places);
    for (Tensor& room : rooms_)
      room.Resize(DataType::kFloat32, {conv.pointwise() ? 0 : conv.patch() * stride_});
  }

  std::size_t parts() const { return rooms_.size(); }

 private:
  static constexpr std::int64_t kMostElements = 1 << 20;  // of the columns that are written at once
  static constexpr std::int64_t kWorthAThread = 1 << 18;  // products of two numbers: some microseconds

  absl::Status RunPart(const Convolution& conv, std::size_t part,
                       absl::FunctionRef<absl::Status(const Piece&)> work) {
    const auto share = [&](std::size_t n) {
      return conv.batch * static_cast<std::int64_t>(n) / static_cast<std::int64_t>(parts());
    };
    for (std::int64_t example = share(part); example < share(part + 1); ++example) {
      for (std::int64_t group = 0; group < conv.groups; ++group) {
        for (std::int64_t line = 0; line < conv.down.places; line += height_) {
          TY_RETURN_IF_ERROR(work({.part = part,
                                   .room = {rooms_[part].data<float>(), stride_},
                                   .image = example * conv.groups + group,
                                   .group = group,
                                   .band = {line, std::min(line + height_, conv.down.places)},
                                   .begins_image = line == 0,
                                   .begins_group = line == 0 && example == share(part)}));
        }
      }
    }
    return absl::OkStatus();
  }

  std::int64_t height_ = 1;  // of a band
  std::int64_t stride_ = 0;  // of the columns
  std::vector<Tensor> rooms_;
};

// The patches as a matrix: written into the room, or the image itself if that is how they lie.
MatrixView Patches(const Convolution& conv, const Piece& piece, const float* image) {
  MatrixView patches = {.rows = conv.patch(), .cols = piece.band.Count() * conv.across.places};
  if (conv.pointwise()) {
    patches.data = image + piece.band.first * conv.across.places;
    patches.stride = conv.out_plane();
  } else {
    Unfold(conv, piece.band, image, piece.room);
    patches.data = piece.room.data;
    patches.stride = piece.room.stride;
  }
  return patches;
}

// Where the piece's lines begin in the output.
std::int64_t OutputOffset(const Convolution& conv, const Piece& piece) {
  return piece.image * conv.out_size() + piece.band.first * conv.across.places;
}

MatrixView Filters(const Convolution& conv, const Piece& piece, const float* filters) {
  return Rows(filters + piece.group * conv.filter_size(), conv.filters, conv.patch());
}

class ConvolutionKernel final : public Kernel {
 public:
  absl::Status Run(OpRun& run) override {
    const Tensor& input = run.In("Input");
    const Tensor& filter = run.In("Filter");
    Tensor& output = run.Out("Output");
    const Convolution conv = ConvolutionOf(run.op(), input.dims(), filter.dims(), output.dims());
    pieces_.Prepare(conv);
    return pieces_.ForEach(conv, [&](const Piece& piece) {
      const MatrixView patches = Patches(conv, piece, input.data<float>() + piece.image * conv.in_size());
      return Multiply(Filters(conv, piece, filter.data<float>()), patches,
                      {.data = output.data<float>() + OutputOffset(conv, piece), .stride = conv.out_plane()});
    });
  }

 private:
  Pieces pieces_;
};

class ConvolutionGradientKernel final : public Kernel {
 public:
  absl::Status Run(OpRun& run) override {
    const Tensor& from = run.In("Output@GRAD");
    const Tensor& filter = run.In("Filter");
    const Convolution conv = ConvolutionOf(run.op(), run.In("Input").dims(), filter.dims(), from.dims());
    const Arrays arrays = {
        .from = from.data<float>(),
        .input = run.In("Input").data<float>(),
        .filter = filter.data<float>(),
        .to_input = run.HasOut("Input@GRAD") ? run.Out("Input@GRAD").data<float>() : nullptr,
        .to_filter = run.HasOut("Filter@GRAD") ? run.Out("Filter@GRAD").data<float>() : nullptr};
    pieces_.Prepare(conv);
    sums_.resize(pieces_.parts() - 1);
    for (Tensor& sum : sums_) sum.Resize(DataType::kFloat32, filter.dims());
    const absl::Status run_all =
        pieces_.ForEach(conv, [&](const Piece& piece) { return RunPiece(conv, piece, arrays); });
    TY_RETURN_IF_ERROR(run_all);
    if (run.HasOut("Filter@GRAD")) AddUp(conv, run.Out("Filter@GRAD"));
    return absl::OkStatus();
  }

 private:
  struct Arrays {
    const float* from;
    const float* input;
    const float* filter;
    float* to_input;   // null: not wanted
    float* to_filter;  // null: not wanted
  };

  absl::Status RunPiece(const Convolution& conv, const Piece& piece, const Arrays& arrays) {
    const MatrixView from = {.data = arrays.from + OutputOffset(conv, piece),
                             .rows = conv.filters,
                             .cols = piece.band.Count() * conv.across.places,
                             .stride = conv.out_plane()};
    const std::int64_t image = piece.image * conv.in_size();
    if (arrays.to_filter != nullptr) {
      // Each part adds up its own images; the first part's sum grows in the gradient itself.
      float* sum = piece.part == 0 ? arrays.to_filter : sums_[piece.part - 1].data<float>();
      const ProductPlace place = {
          .data = sum + piece.group * conv.filter_size(), .stride = conv.patch(), .add = !piece.begins_group};
      TY_RETURN_IF_ERROR(Multiply(from, Transposed(Patches(conv, piece, arrays.input + image)), place));
    }
    if (arrays.to_input == nullptr) return absl::OkStatus();
    return MultiplyBack(conv, piece, Transposed(Filters(conv, piece, arrays.filter)), from,
                        arrays.to_input + image);
  }

  static absl::Status MultiplyBack(const Convolution& conv, const Piece& piece, const MatrixView& filters,
                                   const MatrixView& from, float* image) {
    if (conv.pointwise()) {
      return Multiply(filters, from,
                      {.data = image + piece.band.first * conv.across.places, .stride = conv.out_plane()});
    }
    TY_RETURN_IF_ERROR(Multiply(filters, from, {.data = piece.room.data, .stride = piece.room.stride}));
    if (piece.begins_image) std::fill_n(image, conv.in_size(), 0.0F);
    Fold(conv, piece.band, piece.room, image);
    return absl::OkStatus();
  }

  void AddUp(const Convolution& conv, Tensor& gradient) {
    if (conv.batch == 0) std::fill_n(gradient.data<float>(), gradient.count(), 0.0F);
    for (const Tensor& sum : sums_) Map(gradient, [](float a, float b) { return a + b; }, gradient, sum);
  }

  Pieces pieces_;
  std::vector<Tensor> sums_;  // of the parts after the first
};

}  // namespace

void AddConvolutionKernels(KernelTable& table) {
  table.Add("conv2d", [](const Op&) { return std::make_unique<ConvolutionKernel>(); });
  table.Add("conv2d_grad", [](const Op&) { return std::make_unique<ConvolutionGradientKernel>(); });
}

}  // namespace trainyard::graph
