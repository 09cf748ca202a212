// Conv1D in FP32: any kernel, stride, padding, pooling and epilogue, in one launch. On
// tensor cores it is in conv1d_stretch.cuh, or a product.
#include "conv.cuh"
#include "conv1d_stretch.cuh"
#include "epilogue.cuh"
#include "tile_prepare.cuh"

namespace conv1d {

// Source is the steps of all items as windows; see conv.cuh.
struct Source {
	const Conv1D& a;
	uint32_t rows, columns, depth, parts;
	const float* weights;
	int64_t stride;

	__device__ explicit Source(const Conv1D& args)
	    : a(args), rows(args.Rows), columns(args.Columns), depth(args.In * args.Kernel), parts(args.Pool),
	      weights(args.Weights), stride(args.WeightsRow) {}

	// A window begins at a step of an item that has length steps.
	struct Place {
		const float* x;
		int32_t start, length;
	};
	struct Tap {
		int32_t step;
		uint32_t channel;
		bool within;
	};

	// length returns the steps of an item. With mirrored ends more are wanted than are
	// mirrored.
	__device__ uint32_t length(uint32_t item) const {
		const int64_t least = a.Reflect ? max(a.PadLeft, a.PadRight) : 0;
		return ::rows::number_of(a.Lengths, item, (uint32_t)min(least, (int64_t)0xffffffff));
	}

	// live reports whether an item of n steps has the output step of a row.
	__device__ bool live(uint32_t n, uint32_t row) const {
		if (a.Lengths.P == nullptr) return true;
		const int64_t room = (int64_t)n + a.PadLeft + a.PadRight - a.Kernel;
		return n > 0 && room >= 0 && a.From + row < (room / a.Stride + 1) / a.Pool;
	}

	__device__ Place place(uint32_t row, uint32_t part) const {
		Place p = {a.X.P, 0, 0};
		if (row >= rows) return p;
		const uint32_t item = row / a.ItemRows, step = row % a.ItemRows;
		const uint32_t n = length(item);
		const int64_t start = ((a.From + step) * a.Pool + part) * a.Stride - a.PadLeft;
		// A window may lie in the zeros altogether.
		if (!live(n, step) || (!a.Reflect && (start >= n || start + a.Kernel <= 0))) return p;
		p.x += (int64_t)item * a.X.Batch;
		p.start = (int32_t)start;
		p.length = (int32_t)n;
		return p;
	}

	__device__ Tap tap(uint32_t k) const { return {(int32_t)(k / a.In), k % a.In, k < depth}; }

	__device__ float load(const Place& p, const Tap& t) const {
		int32_t step = p.start + t.step;
		if (a.Reflect) {
			if (step < 0) step = -step;
			if (step >= p.length) step = 2 * (p.length - 1) - step;
		}
		if (!t.within || (uint32_t)step >= (uint32_t)p.length) return 0.0f;
		return p.x[step * a.X.Row + t.channel];
	}

	__device__ float* out(uint32_t row, uint32_t column) const {
		return ::rows::at(a.Y, row / a.ItemRows, row % a.ItemRows, column);
	}

	__device__ float finish(uint32_t row, uint32_t column, float v) const {
		if (a.Bias != nullptr) v += a.Bias[column];
		// What is beyond an item's length may never have been written.
		const bool before = in_place(a.Epilogue) && live(length(row / a.ItemRows), row % a.ItemRows);
		v = apply(a.Epilogue, v, before ? *out(row, column) : 0.0f);
		return a.Abs ? fabsf(v) : v;
	}

	__device__ void put(uint32_t row, uint32_t column, uint32_t n, const float* v) const {
		const bool kept = live(length(row / a.ItemRows), row % a.ItemRows);
		float4 q = {0.0f, 0.0f, 0.0f, 0.0f};
		if (kept) q = {v[0], n > 1 ? v[1] : 0.0f, n > 2 ? v[2] : 0.0f, n > 3 ? v[3] : 0.0f};
		::rows::store(out(row, column), n, a.Vectors, q);
	}
};

// pack makes a row of the matrix of weights in a block.
__device__ void pack(const ConvPack& a) { conv::pack(a); }

// tile and few have their outputs and channels in x; see conv.cuh.
__device__ void tile(const Conv1D& a) { conv::tile(Source(a)); }
__device__ void few(const Conv1D& a) { conv::few(Source(a)); }

// pool makes outputs of the steps that they come from, which a product left in X, epilogue
// included. A thread takes four channels.
__device__ void pool(const Conv1D& a) {
	const Source s(a);
	const uint32_t each = ceil_div(a.Columns, 4u);
	const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (number >= (int64_t)a.Rows * each) return;
	const uint32_t row = (uint32_t)(number / each), column = 4 * (uint32_t)(number % each);
	const uint32_t left = a.Columns - column;
	const float* x = a.X.P + (int64_t)row * a.Pool * a.X.Row + column;
	float best[4] = {};
	for (uint32_t part = 0; part < a.Pool; part++) {
		const float4 q = ::rows::load(x + part * a.X.Row, left, a.X.Row % 4 == 0);
		const float v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float c = a.Abs ? fabsf(v[i]) : v[i];
			best[i] = a.Pool == 1 ? c : conv::larger(part == 0 ? -infinity() : best[i], c);
		}
	}
	s.put(row, column, min(left, 4u), best);
}

// rows_of makes the weights of an output channel in a block.
__device__ void rows_of(const ConvRows& a) {
	const uint32_t depth = a.Groups * a.Width;
	for (uint32_t k = threadIdx.x; k < a.Stride; k += blockDim.x) {
		const uint32_t group = k / a.Width, step = k % a.Width / a.In, in = k % a.Width % a.In;
		const uint32_t tap = group * a.Group + step;
		float v = 0.0f;
		if (k < depth && step < (group + 1 < a.Groups ? a.Group : a.Steps) && tap < a.Taps) {
			v = a.Matrix[((int64_t)tap * a.In + in) * a.MatrixStride + blockIdx.x];
		}
		const int64_t at = blockIdx.x * a.Stride + k;
		if (a.Type == conv::TypeF16) {
			reinterpret_cast<half*>(a.Rows)[at] = to_half(v);
		} else if (a.Type == conv::TypeBF16) {
			reinterpret_cast<uint16_t*>(a.Rows)[at] = (uint16_t)(bits_of(v) >> 16);
		} else {
			reinterpret_cast<float*>(a.Rows)[at] = v;
		}
	}
}

// groups makes 1024 times eight elements of an item in a block, four times eight in each
// thread.
__device__ void groups(const ConvGroups& a) {
	const uint64_t all = (uint64_t)a.Groups * a.Width / 8;
	const uint32_t blocks = (uint32_t)ceil_div(all, (uint64_t)1024);
	const uint32_t item = blockIdx.x / blocks, block = blockIdx.x % blocks;
	float peak = 0.0f;
	for (uint32_t i = threadIdx.x; i < a.Parts; i += 256) peak = fmaxf(peak, a.Peaks[item * a.Parts + i]);
	const tile::Scale scale = tile::scale_of(block_max<256>(peak));
	if (block == 0 && threadIdx.x == 0) a.Scales[item] = scale.inverse;
	const int64_t length = count_of(a.Lengths, item);
	const float* x = a.X.P + (int64_t)item * a.X.Batch;
	for (uint32_t i = 0; i < 4; i++) {
		const uint64_t eight = (uint64_t)block * 1024 + i * 256 + threadIdx.x;
		if (eight >= all) return;
		const uint32_t group = (uint32_t)(8 * eight / a.Width), first = (uint32_t)(8 * eight - (uint64_t)group * a.Width);
		float v[8];
#pragma unroll
		for (uint32_t j = 0; j < 8; j++) {
			const uint32_t step = (first + j) / a.Columns, column = (first + j) % a.Columns;
			int64_t at = a.First + (int64_t)group * a.Group + step;
			if (a.Reflect) {
				if (at < 0) at = -at;
				if (at >= length) at = 2 * (length - 1) - at;
			}
			const bool there = step < a.Steps && at >= 0 && at < length;
			v[j] = there ? x[at * a.X.Row + column] : 0.0f;
		}
		const int64_t to = (int64_t)item * a.Groups * a.Width + 8 * eight;
		tile::put(a.High, a.Low, to, {v[0], v[1], v[2], v[3]}, scale.factor);
		tile::put(a.High, a.Low, to + 4, {v[4], v[5], v[6], v[7]}, scale.factor);
	}
}

}  // namespace conv1d
