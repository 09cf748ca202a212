// What Conformers have beside products: ConvGLU and DepthwiseConv2D, each in one launch.
#include "conformer_depthwise.cuh"

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

// gated returns a pair of a row of a·sigmoid(b); zeros outside of the item, whose rows
// are not read there.
__device__ inline float2 gated(const ConvGLU& a, const float* x, int64_t row, uint32_t length, uint32_t left, bool vectors) {
	if (row < 0 || row >= length) return {0.0f, 0.0f};
	const float* p = x + row * a.X.Row;
	const float2 v = load_pair(p, left, vectors), gate = load_pair(p + a.Channels, left, vectors);
	return {v.x * sigmoid(gate.x), v.y * sigmoid(gate.y)};
}

// The rows of the weights are filled up to whole quads.
__device__ inline float2 weight(const ConvGLU& a, uint32_t row, uint32_t channel) {
	return load2(a.Weights + (int64_t)row * a.WeightsRow + channel);
}

__device__ inline float2 add(float2 p, float2 q) { return {p.x + q.x, p.y + q.y}; }
__device__ inline float2 multiply_add(float2 p, float2 q, float2 r) { return {fmaf(p.x, q.x, r.x), fmaf(p.y, q.y, r.y)}; }

// finished normalises and activates a pair that was moved to its mean.
__device__ inline float2 finished(float2 v, float scale, float2 gain, float2 shift) {
	return {silu(fmaf(v.x * scale, gain.x, shift.x)), silu(fmaf(v.y * scale, gain.y, shift.y))};
}

// row_sums adds up Rows numbers of each thread over the block. A warp halves at each step
// the numbers that a lane still adds up, so that 16 numbers take 16 shuffles.
template <int Threads, int Rows>
__device__ void row_sums(const float (&v)[Rows], float (&sums)[Rows]) {
	constexpr int Slots = Rows <= 4 ? 4 : 16, Lanes = 32 / Slots, Warps = Threads / 32;
	constexpr int Shares = Slots * Warps < 32 ? 32 : Slots * Warps;  // whole warps
	static_assert(Rows <= Slots && Shares <= Threads && (Warps & (Warps - 1)) == 0, "each share has a thread");
	__shared__ float shares[Shares];
	__shared__ float totals[Shares / Warps];
	float s[Slots];
#pragma unroll
	for (int i = 0; i < Slots; i++) s[i] = i < Rows ? v[i] : 0.0f;
#pragma unroll
	for (int half = Slots / 2; half > 0; half /= 2) {
		const int mask = half * Lanes;
		const bool upper = lane_id() & mask;
#pragma unroll
		for (int i = 0; i < half; i++) {
			const float given = upper ? s[i] : s[i + half], kept = upper ? s[i + half] : s[i];
			s[i] = kept + shfl_xor(given, mask);
		}
	}
#pragma unroll
	for (int m = Lanes / 2; m > 0; m /= 2) s[0] += shfl_xor(s[0], m);
	if (lane_id() % Lanes == 0) shares[lane_id() / Lanes * Warps + warp_id()] = s[0];
	__syncthreads();
	if (threadIdx.x < Shares) {
		const float total = warp_sum<Warps>(shares[threadIdx.x]);
		if (threadIdx.x % Warps == 0) totals[threadIdx.x / Warps] = total;
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < Rows; i++) sums[i] = totals[i];
}

// convglu_of computes Rows output rows of an item × 2·Threads channels, a pair of them in
// each thread: input rows are met once, and added to all outputs that they reach. Taps 0:
// their number is not known, and their weights pass by in registers.
template <int Threads, int Rows, int Taps>
__device__ void convglu_of(const ConvGLU& a, bool vectors) {
	const uint32_t tile = blockIdx.x / a.ColumnTiles, item = tile / a.RowTiles;
	const uint32_t channel = 2 * (blockIdx.x % a.ColumnTiles * Threads + threadIdx.x);
	const uint32_t left = channel < a.Channels ? a.Channels - channel : 0;
	const uint32_t first = tile % a.RowTiles * Rows;
	const uint32_t length = rows::number_of(a.Lengths, item, 0);
	const int64_t row = (int64_t)a.From + first;
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
#pragma unroll
			for (int u = 0; u < Rows + Taps - 1; u++) {
				const float2 g = gated(a, x, row + u - Taps / 2, length, left, vectors);
#pragma unroll
				for (int i = 0; i < Rows; i++) {
					if (i <= u && u - i < Taps) v[i] = multiply_add(g, w[u - i], v[i]);
				}
			}
		} else {
			float2 w[Rows];  // of output i the tap that the input row has for it
			for (int u = 0; u < Rows + taps - 1; u++) {
				const float2 g = gated(a, x, row + u - taps / 2, length, left, vectors);
#pragma unroll
				for (int i = Rows - 1; i > 0; i--) w[i] = w[i - 1];
				if (u < taps) w[0] = weight(a, u, channel);
#pragma unroll
				for (int i = 0; i < Rows; i++) {
					if (i <= u && u - i < taps) v[i] = multiply_add(g, w[i], v[i]);
				}
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
		row_sums<Threads>(share, sum);
#pragma unroll
		for (int i = 0; i < Rows; i++) {
			const float mean = sum[i] * each;
			v[i] = {v[i].x - mean, v[i].y - mean};
			share[i] = left > 1 ? fmaf(v[i].x, v[i].x, v[i].y * v[i].y) : left > 0 ? v[i].x * v[i].x : 0.0f;
		}
		row_sums<Threads>(share, sum);
#pragma unroll
		for (int i = 0; i < Rows; i++) scale[i] = 1.0f / sqrtf(fmaf(sum[i], each, a.Eps));
	}
	if (left == 0) return;
#pragma unroll
	for (int i = 0; i < Rows; i++) {
		float2 y = {0.0f, 0.0f};
		if (row + i < length) y = finished(v[i], scale[i], gain, shift);
		if (first + i < a.Rows) store_pair(rows::at(a.Y, item, first + i, channel), left, vectors, y);
	}
}

template <int Threads, int Rows, int Taps>
__device__ void convglu(const ConvGLU& a) {
	if (a.Vectors) convglu_of<Threads, Rows, Taps>(a, true);
	else convglu_of<Threads, Rows, Taps>(a, false);
}

// convglu_wide is for rows that are normalised and have too many channels for the
// registers of a block: it takes one output row, and keeps it in Y before it is normalised.
__device__ void convglu_wide(const ConvGLU& a) {
	constexpr int Threads = 256;
	const uint32_t item = blockIdx.x / a.Rows, out = blockIdx.x % a.Rows;
	const uint32_t length = rows::number_of(a.Lengths, item, 0);
	const int64_t row = (int64_t)a.From + out;
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
			const float2 g = gated(a, x + c, row + tap - a.Kernel / 2, length, 1, false);
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
		y[c] = silu(fmaf((y[c] - mean) * scale, w[0], w[a.WeightsRow]));
	}
}

}  // namespace conformer
