// Softmax, LogSoftmax and Argmax.
#include "rows.cuh"

namespace softmax {

// Threads of a block that takes a stretch, and quads of a thread.
constexpr int StretchThreads = 256, StretchHeld = 4, BestHeld = 2;

// keys returns the largest key of a quad; what lies beyond the row has none.
__device__ inline uint32_t key(float4 v, int64_t left) {
	uint32_t top = left > 0 ? rows::key_of(v.x) : 0;
	if (left > 1) top = max(top, rows::key_of(v.y));
	if (left > 2) top = max(top, rows::key_of(v.z));
	if (left > 3) top = max(top, rows::key_of(v.w));
	return top;
}

// share returns e^(v − top). Where nothing is larger than −infinity it is 0, but for NaN.
__device__ inline float share(float v, uint32_t top) {
	if (top == rows::NothingKey) return is_nan(v) ? v : 0.0f;
	return expf(v - rows::value_of(top));
}

__device__ inline float4 shares(float4 v, uint32_t top, int64_t left) {
	if (top != rows::NothingKey) {
		const float t = rows::value_of(top);
		v = {expf(v.x - t), expf(v.y - t), expf(v.z - t), expf(v.w - t)};
	} else {
		v = {share(v.x, top), share(v.y, top), share(v.z, top), share(v.w, top)};
	}
	return rows::within(v, left, 0.0f);
}

// A Result is what becomes of elements, of which the largest and the sum are known.
struct Result {
	float top, factor, log;
	bool nothing; // but −infinity and NaN, which the sum tells apart

	__device__ Result(uint32_t key, float sum, bool logarithm)
		: top(rows::value_of(key)), factor(1.0f / sum), log(0.0f), nothing(key == rows::NothingKey) {
		if (nothing) factor = sum;
		if (logarithm) log = nothing ? top + sum : logf(sum);
	}

	// share is of v, in e; the logarithm needs v itself.
	__device__ float4 shared_out(float4 e) const {
		if (nothing) return {factor, factor, factor, factor};
		return {e.x * factor, e.y * factor, e.z * factor, e.w * factor};
	}
	__device__ float4 logarithm(float4 v) const {
		if (nothing) return {log, log, log, log};
		return {(v.x - top) - log, (v.y - top) - log, (v.z - top) - log, (v.w - top) - log};
	}
};

// A row a warp or a block, held in registers.
template <int Threads, int Lanes, int Held>
__device__ void row(const Softmax& a) {
	using T = rows::Team<Threads, Lanes>;
	if (T::row() >= a.Count) return;
	const uint32_t item = T::row() / a.Rows, row = T::row() % a.Rows;
	float4 v[Held];
	rows::take<Lanes>(v, rows::at(a.X, item, row, 0), T::lane(), a.Cols, a.Vectors & rows::VectorX);
	const auto left = [&](int i) { return (int64_t)a.Cols - 4 * (int64_t)(T::lane() + i * Lanes); };
	uint32_t top = 0;
#pragma unroll
	for (int i = 0; i < Held; i++) top = max(top, key(v[i], left(i)));
	top = T::template largest<0>(top);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const float4 e = shares(v[i], top, left(i));
		sum = {sum.x + e.x, sum.y + e.y, sum.z + e.z, sum.w + e.w};
		if (!a.Log) v[i] = e;
	}
	const Result r(top, T::template total<1>(rows::across(sum)), a.Log);
	float* y = rows::at(a.Y, item, row, 0);
#pragma unroll
	for (int i = 0; i < Held; i++) {
		if (left(i) > 0) rows::store(y + a.Cols - left(i), left(i), a.Vectors & rows::VectorY, a.Log ? r.logarithm(v[i]) : r.shared_out(v[i]));
	}
}

// A stretch of a row a block.
struct Stretch {
	uint32_t row, item, within, number;

	template <class A>
	__device__ explicit Stretch(const A& a)
		: row(blockIdx.x / a.Stretches), item(row / a.Rows), within(row % a.Rows), number(blockIdx.x % a.Stretches) {}
};

// part leaves the largest element of a stretch and the sum relative to it.
__device__ void part(const Softmax& a) {
	using T = rows::Team<StretchThreads, StretchThreads>;
	const Stretch s(a);
	const uint32_t first = s.number * (StretchThreads * StretchHeld) + threadIdx.x;
	float4 v[StretchHeld];
	rows::take<StretchThreads>(v, rows::at(a.X, s.item, s.within, 0), first, a.Cols, a.Vectors & rows::VectorX);
	const auto left = [&](int i) { return (int64_t)a.Cols - 4 * (int64_t)(first + i * StretchThreads); };
	uint32_t top = 0;
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) top = max(top, key(v[i], left(i)));
	top = T::largest<0>(top);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) {
		const float4 e = shares(v[i], top, left(i));
		sum = {sum.x + e.x, sum.y + e.y, sum.z + e.z, sum.w + e.w};
	}
	const float all = T::total<1>(rows::across(sum));
	if (threadIdx.x == 0) {
		a.Parts[2 * (int64_t)blockIdx.x] = top;
		a.Parts[2 * (int64_t)blockIdx.x + 1] = bits_of(all);
	}
}

// join puts together what part left of a row, and takes a stretch to its end.
__device__ void join(const Softmax& a) {
	using T = rows::Team<StretchThreads, StretchThreads>;
	const Stretch s(a);
	const uint32_t first = s.number * (StretchThreads * StretchHeld) + threadIdx.x;
	float4 v[StretchHeld];
	rows::take<StretchThreads>(v, rows::at(a.X, s.item, s.within, 0), first, a.Cols, a.Vectors & rows::VectorX);
	const uint32_t* parts = a.Parts + 2 * (int64_t)s.row * a.Stretches;
	uint32_t top = 0;
	for (uint32_t i = threadIdx.x; i < a.Stretches; i += StretchThreads) top = max(top, parts[2 * (int64_t)i]);
	top = T::largest<0>(top);
	float sum = 0.0f;
	for (uint32_t i = threadIdx.x; i < a.Stretches; i += StretchThreads) {
		const float e = float_of(parts[2 * (int64_t)i + 1]);
		sum = fmaf(share(rows::value_of(parts[2 * (int64_t)i]), top), e, sum);
		if (is_nan(e)) sum = e; // times a share of 0, too
	}
	const Result r(top, T::total<1>(sum), a.Log);
	float* y = rows::at(a.Y, s.item, s.within, 0);
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) {
		const int64_t left = (int64_t)a.Cols - 4 * (int64_t)(first + i * StretchThreads);
		if (left <= 0) continue;
		rows::store(y + a.Cols - left, left, a.Vectors & rows::VectorY, a.Log ? r.logarithm(v[i]) : r.shared_out(shares(v[i], top, left)));
	}
}

// A Best is the key of an element above its place, counted down: so the largest of them is
// the largest element, the first of equals.
using Best = uint64_t;

__device__ inline Best best_of(float v, uint32_t place) { return (Best)rows::key_of(v) << 32 | (0xffffffffu - place); }

__device__ inline Best best_of(float4 v, int64_t column, int64_t left) {
	const uint32_t place = (uint32_t)column;
	Best top = left > 0 ? best_of(v.x, place) : 0;
	if (left > 1) top = max(top, best_of(v.y, place + 1));
	if (left > 2) top = max(top, best_of(v.z, place + 2));
	if (left > 3) top = max(top, best_of(v.w, place + 3));
	return top;
}

template <int Threads, int Lanes>
__device__ Best team_best(Best v) {
	for (int mask = 16; mask > 0; mask /= 2) v = max(v, shfl_xor(v, mask));
	if constexpr (Lanes > 32) {
		__shared__ Best tops[Lanes / 32];
		if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = v;
		__syncthreads();
		for (int i = 0; i < Lanes / 32; i++) v = max(v, tops[i]);
	}
	return v;
}

// put stores the place of the largest element of a row.
__device__ inline void put(const Argmax& a, uint32_t row, Best top) {
	const uint32_t item = row / a.Rows;
	uint32_t place;
	if (!rows::place_of(a.ToRow, item, place)) return;
	const int64_t to = (int64_t)place + a.ToRow.Added + row % a.Rows;
	a.IDs.P[item * a.IDs.Batch + to * a.IDs.Row] = 0xffffffffu - (uint32_t)top;
}

// A row a warp or a block.
template <int Threads, int Lanes>
__device__ void best(const Argmax& a) {
	using T = rows::Team<Threads, Lanes>;
	if (T::row() >= a.Count) return;
	const float* x = rows::at(a.X, T::row() / a.Rows, T::row() % a.Rows, 0);
	Best top = 0;
#pragma unroll 4
	for (int64_t c = 4 * T::lane(); c < a.Cols; c += 4 * Lanes) top = max(top, best_of(rows::load(x + c, a.Cols - c, a.Vectors & rows::VectorX), c, a.Cols - c));
	top = team_best<Threads, Lanes>(top);
	if (T::lane() == 0) put(a, T::row(), top);
}

// A stretch of a row a block.
__device__ void best_part(const Argmax& a) {
	const Stretch s(a);
	const uint32_t first = s.number * (StretchThreads * BestHeld) + threadIdx.x;
	float4 v[BestHeld];
	rows::take<StretchThreads>(v, rows::at(a.X, s.item, s.within, 0), first, a.Cols, a.Vectors & rows::VectorX);
	Best top = 0;
#pragma unroll
	for (int i = 0; i < BestHeld; i++) {
		const int64_t column = 4 * (int64_t)(first + i * StretchThreads);
		top = max(top, best_of(v[i], column, a.Cols - column));
	}
	top = team_best<StretchThreads, StretchThreads>(top);
	if (threadIdx.x == 0) {
		a.Parts[2 * (int64_t)blockIdx.x] = (uint32_t)top;
		a.Parts[2 * (int64_t)blockIdx.x + 1] = (uint32_t)(top >> 32);
	}
}

// best_pick takes the best of the stretches of a row, a warp each.
__device__ void best_pick(const Argmax& a) {
	using T = rows::Team<128, 32>;
	if (T::row() >= a.Count) return;
	const uint32_t* parts = a.Parts + 2 * (int64_t)T::row() * a.Stretches;
	Best top = 0;
	for (uint32_t i = T::lane(); i < a.Stretches; i += 32) top = max(top, (Best)parts[2 * (int64_t)i + 1] << 32 | parts[2 * (int64_t)i]);
	top = team_best<128, 32>(top);
	if (T::lane() == 0) put(a, T::row(), top);
}

}  // namespace softmax
