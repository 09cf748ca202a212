// Conv1D in FP32: any kernel, stride, padding, pooling and epilogue, in one launch.
#include "conv.cuh"
#include "epilogue.cuh"

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
		// A window may lie in the padding altogether.
		if (!live(n, step) || start >= n || start + a.Kernel <= 0) return p;
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
		v = apply(a.Epilogue, v, in_place(a.Epilogue) ? *out(row, column) : 0.0f);
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

}  // namespace conv1d
