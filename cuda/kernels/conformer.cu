// What Conformers have beside products: ConvGLU and DepthwiseConv2D, each in one launch.
#include "conformer_depthwise.cuh"
#include "tile_prepare.cuh"

namespace conformer {

// Pairs of channels, of which left (1 or more) are within the row.
__device__ inline float2 load_pair(const float* p, uint32_t left, bool vectors) {
	if (vectors) return load2(p);
	return {p[0], left > 1 ? p[1] : 0.0f};
}
__device__ inline void store_pair(float* p, uint32_t left, bool vectors, float2 v) {
	if (vectors) {
		store2(p, v);
		return;
	}
	p[0] = v.x;
	if (left > 1) p[1] = v.y;
}

// gate is sigmoid without branches, which keep loads and products from overlapping, and
// with few instructions, since a kernel of this family hardly does anything else. For the
// v that matter it is off by 2e-7: rounding v·log₂e costs |v|·6e-8, and far out, where that
// is more, sigmoid is 1 or next to nothing. NaN and infinities come out right.
__device__ inline float gate(float v) { return reciprocal_flush(1.0f + exp2_flush(v * -1.44269504088896340736f)); }

// activated is v·sigmoid(v).
__device__ inline float activated(float v) { return (v < -87.0f ? -87.0f : v) * gate(v); }

// A Gates is a pair of channels of a row before they are gated.
struct Gates {
	float2 value, gate;
};

// load returns those of a row of an item of length rows, or of the nearest that there is.
__device__ inline Gates load(const ConvGLU& a, const float* x, int32_t row, int32_t length, uint32_t left, bool vectors) {
	const float* p = x + min(max(row, 0), length - 1) * a.X.Row;
	return {load_pair(p, left, vectors), load_pair(p + a.Channels, left, vectors)};
}

// gated returns value·sigmoid(gate); zeros outside of the item.
__device__ inline float2 gated(Gates g, int32_t row, int32_t length) {
	const bool inside = (uint32_t)row < (uint32_t)length;
	return {inside ? g.value.x * gate(g.gate.x) : 0.0f, inside ? g.value.y * gate(g.gate.y) : 0.0f};
}

// The rows of the weights are filled up to whole quads.
__device__ inline float2 weight(const ConvGLU& a, uint32_t row, uint32_t channel) {
	return load2(a.Weights + (int64_t)row * a.WeightsRow + channel);
}

__device__ inline float2 add(float2 p, float2 q) { return {p.x + q.x, p.y + q.y}; }
__device__ inline float2 multiply_add(float2 p, float2 q, float2 r) { return {fmaf(p.x, q.x, r.x), fmaf(p.y, q.y, r.y)}; }

// finished normalises and activates a pair that was moved to its mean.
__device__ inline float2 finished(float2 v, float scale, float2 gain, float2 shift) {
	return {activated(fmaf(v.x * scale, gain.x, shift.x)), activated(fmaf(v.y * scale, gain.y, shift.y))};
}

// fold halves the numbers that a lane combines, and goes on until one is left: lanes that
// differ in a bit exchange those that the other keeps.
template <int Lanes, int Half, int Slots, class Op>
__device__ void fold(float (&s)[Slots], Op op) {
	const bool upper = lane_id() & (Half * Lanes);
#pragma unroll
	for (int i = 0; i < Half; i++) {
		const float given = upper ? s[i] : s[i + Half], kept = upper ? s[i + Half] : s[i];
		s[i] = op(kept, shfl_xor(given, Half * Lanes));
	}
	if constexpr (Half > 1) fold<Lanes, Half / 2>(s, op);
}

// over_rows combines Rows numbers of each thread over the block, and returns what finish
// makes of the results. 16 numbers take 16 shuffles.
template <int Threads, int Rows, class Op, class Finish>
__device__ void over_rows(const float (&v)[Rows], float (&results)[Rows], Op op, Finish finish) {
	constexpr int Slots = Rows <= 4 ? 4 : 16, Lanes = 32 / Slots, Warps = Threads / 32;
	constexpr int Shares = Slots * Warps < 32 ? 32 : Slots * Warps;  // whole warps
	static_assert(Rows <= Slots && Shares <= Threads && (Warps & (Warps - 1)) == 0, "each share has a thread");
	__shared__ float shares[Shares];
	__shared__ float totals[Shares / Warps];
	float s[Slots];
#pragma unroll
	for (int i = 0; i < Slots; i++) s[i] = i < Rows ? v[i] : 0.0f;
	fold<Lanes, Slots / 2>(s, op);
#pragma unroll
	for (int m = Lanes / 2; m > 0; m /= 2) s[0] = op(s[0], shfl_xor(s[0], m));
	if (lane_id() % Lanes == 0) shares[lane_id() / Lanes * Warps + warp_id()] = s[0];
	__syncthreads();
	if (threadIdx.x < Shares) {
		const float total = warp_reduce<Warps>(shares[threadIdx.x], op);
		if (threadIdx.x % Warps == 0) totals[threadIdx.x / Warps] = finish(total);
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < Rows; i++) results[i] = totals[i];
}

// store_halves stores a thread's pairs of rows that follow each other as the left operand of
// products, with the bits that preparing them from memory would give. The block has whole
// rows; zeros are beside them.
template <int Threads, int Rows>
__device__ void store_halves(const Halves& to, const float2 (&y)[Rows], int64_t first, uint32_t rows, uint32_t channel) {
	float share[Rows], peak[Rows];
#pragma unroll
	for (int i = 0; i < Rows; i++) share[i] = tile::peak_of(tile::peak_of(0.0f, y[i].x), y[i].y);
	over_rows<Threads>(share, peak, Largest(), [](float p) { return p; });
#pragma unroll
	for (int i = 0; i < Rows; i++) {
		if (i >= rows) return;
		const tile::Scale s = tile::scale_of(peak[i]);
		if (threadIdx.x == 0) to.Scales[first + i] = s.inverse;
		if (channel >= to.Stride) continue;
		const uint2 p = tile::parts(y[i].x * s.factor, y[i].y * s.factor);
		const int64_t at = (first + i) * to.Stride + channel;
		*reinterpret_cast<uint32_t*>(to.High + at) = p.x;
		if (to.Low != nullptr) *reinterpret_cast<uint32_t*>(to.Low + at) = p.y;
	}
}

// convglu_of computes Rows output rows of an item × 2·Threads channels, a pair of them in
// each thread: input rows are met once, and added to all outputs that they reach. Taps 0:
// their number is not known, and the inputs pass by the outputs in registers. With AsHalves
// results are left as those, too, and as F32 only if Y is there.
template <int Threads, int Rows, int Taps, bool AsHalves>
__device__ void convglu_of(const ConvGLU& a, bool vectors) {
	const uint32_t tile = blockIdx.x / a.ColumnTiles, item = tile / a.RowTiles;
	const uint32_t channel = 2 * (blockIdx.x % a.ColumnTiles * Threads + threadIdx.x);
	const uint32_t left = channel < a.Channels ? a.Channels - channel : 0;
	const uint32_t first = tile % a.RowTiles * Rows;
	const int32_t length = (int32_t)rows::number_of(a.Lengths, item, 0), row = (int32_t)(a.From + first);
	const int taps = Taps ? Taps : (int)a.Kernel;

	float2 v[Rows];
#pragma unroll
	for (int i = 0; i < Rows; i++) v[i] = {0.0f, 0.0f};
	float2 gain = {0.0f, 0.0f}, shift = {0.0f, 0.0f};
	if (left > 0 && row < length) {
		const float* x = a.X.P + (int64_t)item * a.X.Batch + channel;
		if constexpr (Taps > 0) {
			float2 w[Taps > 0 ? Taps : 1];
#pragma unroll
			for (int i = 0; i < Taps; i++) w[i] = weight(a, i, channel);
			constexpr int Ahead = 6, All = Rows + Taps - 1;  // rows that are under way
			Gates ring[Ahead];
#pragma unroll
			for (int u = 0; u < Ahead; u++) ring[u] = load(a, x, row + u - Taps / 2, length, left, vectors);
#pragma unroll
			for (int u = 0; u < All; u++) {
				const Gates now = ring[u % Ahead];
				if (u + Ahead < All) ring[u % Ahead] = load(a, x, row + u + Ahead - Taps / 2, length, left, vectors);
				const float2 g = gated(now, row + u - Taps / 2, length);
#pragma unroll
				for (int i = 0; i < Rows; i++) {
					if (i <= u && u - i < Taps) v[i] = multiply_add(g, w[u - i], v[i]);
				}
			}
		} else {
			constexpr int Ahead = 4;
			const int32_t begin = row - taps / 2;
			float2 met[Rows];  // of each output the input that the tap at hand is for
			met[0] = {0.0f, 0.0f};
#pragma unroll
			for (int i = 1; i < Rows; i++) met[i] = gated(load(a, x, begin + i - 1, length, left, vectors), begin + i - 1, length);
			Gates queue[Ahead];
#pragma unroll
			for (int u = 0; u < Ahead; u++) queue[u] = load(a, x, begin + Rows - 1 + u, length, left, vectors);
			for (int tap = 0; tap < taps; tap++) {
				const int32_t next = begin + Rows - 1 + tap;
				const float2 w = weight(a, tap, channel);
#pragma unroll
				for (int i = 1; i < Rows; i++) met[i - 1] = met[i];
				met[Rows - 1] = gated(queue[0], next, length);
#pragma unroll
				for (int i = 1; i < Ahead; i++) queue[i - 1] = queue[i];
				queue[Ahead - 1] = load(a, x, next + Ahead, length, left, vectors);
#pragma unroll
				for (int i = 0; i < Rows; i++) v[i] = multiply_add(met[i], w, v[i]);
			}
		}
		const float2 bias = weight(a, taps, channel);
		gain = weight(a, taps + 1, channel);
		shift = weight(a, taps + 2, channel);
#pragma unroll
		for (int i = 0; i < Rows; i++) v[i] = add(v[i], bias);
	}
	float scale[Rows];
#pragma unroll
	for (int i = 0; i < Rows; i++) scale[i] = 1.0f;
	if (a.Normalised) {
		const float each = 1.0f / a.Channels;
		float share[Rows], sum[Rows];
#pragma unroll
		for (int i = 0; i < Rows; i++) share[i] = v[i].x + v[i].y;
		over_rows<Threads>(share, sum, Add(), [&](float total) { return total * each; });
#pragma unroll
		for (int i = 0; i < Rows; i++) {
			v[i] = {v[i].x - sum[i], v[i].y - sum[i]};
			share[i] = left > 1 ? fmaf(v[i].x, v[i].x, v[i].y * v[i].y) : left > 0 ? v[i].x * v[i].x : 0.0f;
		}
		over_rows<Threads>(share, scale, Add(), [&](float total) { return 1.0f / sqrtf(fmaf(total, each, a.Eps)); });
	}
	if (!AsHalves && left == 0) return;
#pragma unroll
	for (int i = 0; i < Rows; i++) {
		float2 y = {0.0f, 0.0f};
		if (row + i < length && (!AsHalves || left > 0)) y = finished(v[i], scale[i], gain, shift);
		if (first + i < a.Rows && (!AsHalves || (left > 0 && a.Y.P != nullptr))) store_pair(rows::at(a.Y, item, first + i, channel), left, vectors, y);
		v[i] = {y.x, left > 1 ? y.y : 0.0f};
	}
	if (AsHalves) store_halves<Threads>(a.Halves, v, (int64_t)item * a.Rows + first, a.Rows - first, channel);
}

template <int Threads, int Rows, int Taps, bool AsHalves>
__device__ void convglu(const ConvGLU& a) {
	if (a.Vectors) convglu_of<Threads, Rows, Taps, AsHalves>(a, true);
	else convglu_of<Threads, Rows, Taps, AsHalves>(a, false);
}

// convglu_wide is for rows that are normalised and have too many channels for the
// registers of a block: it takes one output row, and keeps it in Y before it is normalised.
__device__ void convglu_wide(const ConvGLU& a) {
	constexpr int Threads = 256;
	const uint32_t item = blockIdx.x / a.Rows, out = blockIdx.x % a.Rows;
	const int32_t length = (int32_t)rows::number_of(a.Lengths, item, 0), row = (int32_t)(a.From + out);
	const float* x = a.X.P + (int64_t)item * a.X.Batch;
	float* y = rows::at(a.Y, item, out, 0);
	if (row >= length) {
		for (uint32_t c = threadIdx.x; c < a.Channels; c += Threads) y[c] = 0.0f;
		return;
	}
	float sum = 0.0f;
	for (uint32_t c = threadIdx.x; c < a.Channels; c += Threads) {
		const float* w = a.Weights + c;
		float v = 0.0f;
		for (uint32_t tap = 0; tap < a.Kernel; tap++) {
			const int32_t at = row + (int32_t)tap - (int32_t)(a.Kernel / 2);
			const float2 g = gated(load(a, x + c, at, length, 1, false), at, length);
			v = fmaf(g.x, w[(int64_t)tap * a.WeightsRow], v);
		}
		v += w[(int64_t)a.Kernel * a.WeightsRow];
		y[c] = v;
		sum += v;
	}
	const float mean = block_sum<Threads>(sum) / a.Channels;
	float squares = 0.0f;
	for (uint32_t c = threadIdx.x; c < a.Channels; c += Threads) squares = fmaf(y[c] - mean, y[c] - mean, squares);
	const float scale = 1.0f / sqrtf(block_sum<Threads>(squares) / a.Channels + a.Eps);
	for (uint32_t c = threadIdx.x; c < a.Channels; c += Threads) {
		const float* w = a.Weights + (int64_t)(a.Kernel + 1) * a.WeightsRow + c;
		y[c] = activated(fmaf((y[c] - mean) * scale, w[0], w[a.WeightsRow]));
	}
}

}  // namespace conformer
