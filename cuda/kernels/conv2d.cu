// Conv2D in FP32: kernels of 3×3 and 1×1, stride 1 or 2, in one launch. On tensor cores it
// is in conv2d_image.cuh, or a product.
#include "conv.cuh"
#include "conv2d_image.cuh"

namespace conv2d {

// Source is the pixels of all images as windows; see conv.cuh.
struct Source {
	const Conv2D& a;
	uint32_t rows, columns, depth, parts = 1;
	const float* weights;
	int64_t stride;

	__device__ explicit Source(const Conv2D& args)
	    : a(args), rows(args.Rows), columns(args.Columns), depth(args.In * args.Size * args.Size),
	      weights(args.Weights), stride(args.WeightsRow) {}

	// A window begins at a line and a column of an image. Beyond the last row there is none.
	struct Place {
		const float* x;
		int32_t line, column;
	};
	struct Tap {
		int32_t line, column;
		uint32_t channel;
		bool within;
	};

	__device__ Place place(uint32_t row, uint32_t) const {
		if (row >= rows) return {a.X.P, -(1 << 30), 0};
		const uint32_t pixel = row % a.ItemRows;
		const int32_t border = (int32_t)(a.Size / 2);
		return {a.X.P + (int64_t)(row / a.ItemRows) * a.X.Batch,
		        (int32_t)((a.From + pixel / a.OutWidth) * a.Stride) - border,
		        (int32_t)(pixel % a.OutWidth * a.Stride) - border};
	}

	__device__ Tap tap(uint32_t k) const {
		const uint32_t tap = k / a.In;
		return {(int32_t)(tap / a.Size), (int32_t)(tap % a.Size), k % a.In, k < depth};
	}

	__device__ float load(const Place& p, const Tap& t) const {
		const uint32_t line = (uint32_t)(p.line + t.line), column = (uint32_t)(p.column + t.column);
		if (!t.within || line >= a.Height || column >= a.Width) return 0.0f;
		return p.x[((int64_t)line * a.Width + column) * a.X.Row + t.channel];
	}

	__device__ float finish(uint32_t row, uint32_t column, float v) const {
		if (a.Residual.P != nullptr) v += *::rows::at(a.Residual, row / a.ItemRows, row % a.ItemRows, column);
		if (a.Bias != nullptr) v += a.Bias[column];
		return a.ReLU && v < 0.0f ? 0.0f : v;
	}

	__device__ void put(uint32_t row, uint32_t column, uint32_t n, const float* v) const {
		const float4 q = {v[0], n > 1 ? v[1] : 0.0f, n > 2 ? v[2] : 0.0f, n > 3 ? v[3] : 0.0f};
		::rows::store(::rows::at(a.Y, row / a.ItemRows, row % a.ItemRows, column), n, a.Vectors, q);
	}
};

// tile and few have their outputs and channels in x; see conv.cuh.
__device__ void tile(const Conv2D& a) { conv::tile(Source(a)); }
__device__ void few(const Conv2D& a) { conv::few(Source(a)); }

// Line is how many pixels that follow each other in a line a thread of single takes.
constexpr uint32_t Line = 4;

// single is for images of one channel and kernels of 3×3, which are all stores: a thread
// keeps the weights of four channels in registers and walks along a line. Units, in x, are
// channels in fours, then walks, then lines of all images.
__device__ void single(const Conv2D& a) {
	const Source s(a);
	const uint32_t groups = ceil_div(a.Columns, 4u), walks = ceil_div(a.OutWidth, Line);
	const uint32_t unit = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t column = 4 * (unit % groups), walk = unit / groups % walks, line = unit / groups / walks;
	const uint64_t first = (uint64_t)line * a.OutWidth + walk * Line;  // output pixel
	if (first >= a.Rows) return;
	const uint32_t count = min(a.OutWidth - walk * Line, Line), left = min(a.Columns - column, 4u);

	float4 w[9];
#pragma unroll
	for (uint32_t k = 0; k < 9; k++) w[k] = load4(a.Weights + k * a.WeightsRow + column);
	Source::Place place = s.place((uint32_t)first, 0);
	float window[3][3];
	const auto fetch = [&](int32_t column) {
#pragma unroll
		for (int32_t i = 0; i < 3; i++) window[i][column] = s.load(place, Source::Tap{i, column, 0, true});
	};
	fetch(0);
	fetch(1);
	for (uint32_t x = 0; x < count; x++) {
		fetch(2);
		float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
		for (int32_t k = 0; k < 9; k++) {
			const float p = window[k / 3][k % 3];
			v = {fmaf(p, w[k].x, v.x), fmaf(p, w[k].y, v.y), fmaf(p, w[k].z, v.z), fmaf(p, w[k].w, v.w)};
		}
		float out[4] = {v.x, v.y, v.z, v.w};
		const uint32_t row = (uint32_t)first + x;
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			if (i < left) out[i] = s.finish(row, column + i, out[i]);
		}
		s.put(row, column, left, out);
		place.column += a.Stride;
#pragma unroll
		for (int32_t i = 0; i < 3; i++) {
			window[i][0] = a.Stride == 1 ? window[i][1] : window[i][2];
			window[i][1] = window[i][2];
		}
		if (a.Stride > 1) fetch(1);
	}
}

}  // namespace conv2d
