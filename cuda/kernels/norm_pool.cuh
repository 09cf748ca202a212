// PoolNorm. Time is cut at fixed places into chunks; a block takes a chunk of some
// channels side by side.
#pragma once
#include "norm.cuh"

namespace norms {

constexpr int RowsEach = 16; // pooled rows that a thread holds

// A Stripe is the share of a thread: a channel, and of a chunk every Down-th pooled row.
template <int Pool>
struct Stripe {
	const PoolNorm& a;
	uint32_t item, chunk, column, channel, down, first, start, end, live;
	const float* x;

	__device__ explicit Stripe(const PoolNorm& a) : a(a) {
		const uint32_t across = threadIdx.x % a.Across;
		column = blockIdx.x % a.Blocks * a.Across + across;
		channel = min(column, a.Cols - 1); // threads beyond the last have its work, and store nothing
		chunk = blockIdx.x / a.Blocks % a.Chunks;
		item = blockIdx.x / a.Blocks / a.Chunks;
		down = 256 / a.Across;
		start = chunk * a.Chunk;
		end = min(start + a.Chunk, a.Pooled);
		first = start + threadIdx.x / a.Across;
		live = rows::number_of(a.Lengths, item, 0) / a.Pool;
		x = rows::at(a.X, item, 0, channel);
	}

	// pooled returns the maximum of a window, of what is not NaN. Windows of one element
	// are taken as they are, unless absolute values are wanted.
	__device__ float pooled(uint32_t time) const {
		const float* p = x + (int64_t)time * (Pool > 0 ? Pool : a.Pool) * a.X.Row;
		if (Pool == 1 && a.Abs == 0) return p[0];
		const uint32_t mask = a.Abs ? 0x7fffffffu : 0xffffffffu;
		float top = float_of(0xff800000u);
		if (Pool > 0) {
#pragma unroll
			for (int i = 0; i < Pool; i++) top = fmaxf(top, float_of(bits_of(p[i * a.X.Row]) & mask));
		} else {
			for (uint32_t i = 0; i < a.Pool; i++) top = fmaxf(top, float_of(bits_of(p[i * a.X.Row]) & mask));
		}
		return top;
	}

	__device__ void fetch(float (&v)[RowsEach], uint32_t from) const {
#pragma unroll
		for (int i = 0; i < RowsEach; i++) {
			const uint32_t time = from + i * down;
			v[i] = time < min(end, live) ? pooled(time) : 0.0f;
		}
	}

	// total adds v up over the threads of a channel.
	template <int Slot>
	__device__ float2 total(float2 v) const {
		__shared__ float2 shares[8][32];
		for (uint32_t mask = 16; mask >= a.Across; mask /= 2) {
			v.x += shfl_xor(v.x, mask);
			v.y += shfl_xor(v.y, mask);
		}
		const uint32_t lane = threadIdx.x % 32;
		if (lane < a.Across) shares[threadIdx.x / 32][lane] = v;
		__syncthreads();
		v = shares[0][lane % a.Across];
		for (int i = 1; i < 8; i++) {
			v.x += shares[i][lane % a.Across].x;
			v.y += shares[i][lane % a.Across].y;
		}
		return v;
	}
};

// pool_moments leaves the moments of a chunk of each channel.
template <int Pool>
__device__ void pool_moments(const PoolNorm& a) {
	release_dependents();
	const Stripe<Pool> s(a);
	const uint32_t step = s.down * RowsEach;
	const uint32_t within = max(min(s.end, s.live), s.start) - s.start;
	float v[RowsEach];
	float sum = 0.0f;
	s.fetch(v, s.first);
	for (uint32_t from = s.first;;) {
		float part = 0.0f; // sums of sums: time may be long
#pragma unroll
		for (int i = 0; i < RowsEach; i++) part += v[i];
		sum += part;
		if ((from += step) >= s.end) break;
		s.fetch(v, from);
	}
	const float count = fmaxf((float)within, 1.0f);
	const float rough = s.template total<0>({sum, 0.0f}).x / count;
	if (s.first + step < s.end) s.fetch(v, s.first); // not what is there yet
	float2 rest = {0.0f, 0.0f};
	for (uint32_t from = s.first;;) {
		float2 part = {0.0f, 0.0f};
#pragma unroll
		for (int i = 0; i < RowsEach; i++) {
			const float d = from + i * s.down < min(s.end, s.live) ? v[i] - rough : 0.0f;
			part = {part.x + d, fmaf(d, d, part.y)};
		}
		rest = {rest.x + part.x, rest.y + part.y};
		if ((from += step) >= s.end) break;
		s.fetch(v, from);
	}
	rest = s.template total<1>(rest);
	const float fine = rest.x / count;
	if (threadIdx.x < a.Across && s.column < a.Cols) {
		float* part = a.Parts + 4 * (((int64_t)s.item * a.Chunks + s.chunk) * a.Cols + s.column);
		store4(part, {rough, fine, fmaf(-fine, rest.x, rest.y), (float)within});
	}
}

// pool_apply merges the moments of all chunks, pools again and normalises: pooled values
// are not stored in between.
template <int Pool>
__device__ void pool_apply(const PoolNorm& a) {
	release_dependents();
	const Stripe<Pool> s(a);
	const uint32_t step = s.down * RowsEach;
	float v[RowsEach];
	s.fetch(v, s.first);
	const float* parts = a.Parts + 4 * ((int64_t)s.item * a.Chunks * a.Cols + s.channel);
	const float rough = parts[0];
	float2 sum = {0.0f, 0.0f};
	for (uint32_t i = threadIdx.x / a.Across; i < a.Chunks; i += s.down) {
		const float4 p = load4(parts + 4 * (int64_t)i * a.Cols);
		sum = {sum.x + p.w, fmaf(p.w, (p.x - rough) + p.y, sum.y)};
	}
	sum = s.template total<0>(sum);
	const float count = fmaxf(sum.x, 1.0f), fine = sum.y / count;
	float squares = 0.0f;
	for (uint32_t i = threadIdx.x / a.Across; i < a.Chunks; i += s.down) {
		const float4 p = load4(parts + 4 * (int64_t)i * a.Cols);
		const float d = ((p.x - rough) + p.y) - fine;
		squares += fmaf(p.w * d, d, p.z);
	}
	const float scale = scale_of(s.template total<1>({squares, 0.0f}).x / count, a.Eps);
	const float gain = a.Gain[s.channel], bias = a.Bias != nullptr ? a.Bias[s.channel] : 0.0f;
	float* y = rows::at(a.Y, s.item, 0, s.channel);
	for (uint32_t from = s.first;;) {
#pragma unroll
		for (int i = 0; i < RowsEach; i++) {
			const uint32_t time = from + i * s.down;
			if (time >= s.end || s.column >= a.Cols) continue;
			const float r = fmaf(((v[i] - rough) - fine) * scale, gain, bias);
			y[(int64_t)time * a.Y.Row] = time < s.live ? (r < 0.0f ? a.Alpha * r : r) : 0.0f;
		}
		if ((from += step) >= s.end) break;
		s.fetch(v, from);
	}
}

}  // namespace norms
