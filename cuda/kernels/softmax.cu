// Softmax, LogSoftmax and Argmax.
#include "rows.cuh"

namespace softmax {

// Threads of a block that takes a stretch, and quads of a thread.
constexpr int StretchThreads = 256, StretchHeld = 4, BestHeld = 2;

// largest returns the largest element of a quad that is not NaN.
__device__ inline float largest(float4 v, float top) { return fmaxf(fmaxf(top, fmaxf(v.x, v.y)), fmaxf(v.z, v.w)); }

// share returns e^(v − top). Where nothing is larger than −infinity it is 0, but for NaN.
__device__ inline float share(float v, float top) {
	if (top == -infinity()) return is_nan(v) ? v : 0.0f;
	return expf(v - top);
}

__device__ inline float4 shares(float4 v, float top) {
	if (top == -infinity()) return {share(v.x, top), share(v.y, top), share(v.z, top), share(v.w, top)};
	return {expf(v.x - top), expf(v.y - top), expf(v.z - top), expf(v.w - top)};
}

// A Result is what becomes of elements, of which the largest and the sum are known.
struct Result {
	float top, factor, log;
	bool nothing; // but −infinity and NaN, which the sum tells apart

	__device__ Result(float top, float sum, bool logarithm)
		: top(top), factor(1.0f / sum), log(0.0f), nothing(top == -infinity()) {
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

// A row some lanes, a warp or a block, held in registers. Lanes beyond the last row do its
// work again, since their neighbours need them, and store nothing.
template <int Threads, int Lanes, int Held>
__device__ void row(const Softmax& a) {
	using T = rows::Team<Threads, Lanes>;
	release_dependents();
	const uint32_t number = min(T::row(), a.Count - 1), live = T::row() < a.Count ? a.Cols : 0;
	uint32_t item, row;
	rows::split(a, number, item, row);
	float4 v[Held];
	rows::take<Lanes>(v, rows::at(a.X, item, row, 0), T::lane(), a.Cols, a.Vectors & rows::VectorX, -infinity());
	float top = -infinity();
#pragma unroll
	for (int i = 0; i < Held; i++) top = largest(v[i], top);
	top = T::template largest<0>(top);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const float4 e = shares(v[i], top);
		sum = {sum.x + e.x, sum.y + e.y, sum.z + e.z, sum.w + e.w};
		if (!a.Log) v[i] = e;
	}
	const Result r(top, T::template total<1>(rows::across(sum)), a.Log);
	float* y = rows::at(a.Y, item, row, 0);
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const int64_t column = 4 * (int64_t)(T::lane() + i * Lanes);
		if (column < live) rows::store(y + column, a.Cols - column, a.Vectors & rows::VectorY, a.Log ? r.logarithm(v[i]) : r.shared_out(v[i]));
	}
}

// A stretch of a row a block.
struct Stretch {
	uint32_t row, number, item, within;

	template <class A>
	__device__ explicit Stretch(const A& a) : row(blockIdx.x / a.Stretches), number(blockIdx.x % a.Stretches) {
		rows::split(a, row, item, within);
	}
};

// part leaves the largest element of a stretch and the sum relative to it.
__device__ void part(const Softmax& a) {
	using T = rows::Team<StretchThreads, StretchThreads>;
	release_dependents();
	const Stretch s(a);
	const uint32_t first = s.number * (StretchThreads * StretchHeld) + threadIdx.x;
	float4 v[StretchHeld];
	rows::take<StretchThreads>(v, rows::at(a.X, s.item, s.within, 0), first, a.Cols, a.Vectors & rows::VectorX, -infinity());
	float top = -infinity();
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) top = largest(v[i], top);
	top = T::largest<0>(top);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) {
		const float4 e = shares(v[i], top);
		sum = {sum.x + e.x, sum.y + e.y, sum.z + e.z, sum.w + e.w};
	}
	const float all = T::total<1>(rows::across(sum));
	if (threadIdx.x == 0) store2(a.Parts + 2 * (int64_t)blockIdx.x, {top, all});
}

// join puts together what part left of a row, and takes a stretch to its end.
__device__ void join(const Softmax& a) {
	using T = rows::Team<StretchThreads, StretchThreads>;
	release_dependents();
	const Stretch s(a);
	const uint32_t first = s.number * (StretchThreads * StretchHeld) + threadIdx.x;
	float4 v[StretchHeld];
	rows::take<StretchThreads>(v, rows::at(a.X, s.item, s.within, 0), first, a.Cols, a.Vectors & rows::VectorX);
	const float* parts = a.Parts + 2 * (int64_t)s.row * a.Stretches;
	float top = -infinity();
	for (uint32_t i = threadIdx.x; i < a.Stretches; i += StretchThreads) top = fmaxf(top, parts[2 * (int64_t)i]);
	top = T::largest<0>(top);
	float sum = 0.0f;
	for (uint32_t i = threadIdx.x; i < a.Stretches; i += StretchThreads) {
		const float2 part = load2(parts + 2 * (int64_t)i);
		sum = is_nan(part.y) ? part.y : fmaf(share(part.x, top), part.y, sum); // NaN even times a share of 0
	}
	const Result r(top, T::total<1>(sum), a.Log);
	float* y = rows::at(a.Y, s.item, s.within, 0);
#pragma unroll
	for (int i = 0; i < StretchHeld; i++) {
		const int64_t left = (int64_t)a.Cols - 4 * (int64_t)(first + i * StretchThreads);
		if (left <= 0) continue;
		rows::store(y + a.Cols - left, left, a.Vectors & rows::VectorY, a.Log ? r.logarithm(v[i]) : r.shared_out(shares(v[i], top)));
	}
}

// key_of returns a number in the order of floats. −0 counts as 0, and NaN as −infinity. No
// key is 0.
__device__ inline uint32_t key_of(float v) {
	uint32_t bits = bits_of(v);
	const uint32_t size = bits & 0x7fffffffu;
	if (size == 0) bits = 0;
	if (size > 0x7f800000u) bits = 0xff800000u;
	return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

// A Best is the key of an element above its place, counted down: so the largest of them is
// the largest element, the first of equals.
using Best = uint64_t;

__device__ inline Best best_of(float v, uint32_t place) { return (Best)key_of(v) << 32 | (0xffffffffu - place); }

__device__ inline Best best_of(float4 v, int64_t column, int64_t left) {
	const uint32_t place = (uint32_t)column;
	Best top = left > 0 ? best_of(v.x, place) : 0;
	if (left > 1) top = max(top, best_of(v.y, place + 1));
	if (left > 2) top = max(top, best_of(v.z, place + 2));
	if (left > 3) top = max(top, best_of(v.w, place + 3));
	return top;
}

// put stores the place of the largest element of a row.
__device__ inline void put(const Argmax& a, uint32_t row, Best top) {
	uint32_t item, within, place;
	rows::split(a, row, item, within);
	if (!rows::place_of(a.ToRow, item, place)) return;
	const int64_t to = (int64_t)place + a.ToRow.Added + within;
	a.IDs.P[item * a.IDs.Batch + to * a.IDs.Row] = 0xffffffffu - (uint32_t)top;
}

// A row a warp or a block, eight quads a thread at a time.
template <int Threads, int Lanes>
__device__ void best(const Argmax& a) {
	using T = rows::Team<Threads, Lanes>;
	release_dependents();
	if (T::row() >= a.Count) return;
	uint32_t item, row;
	rows::split(a, T::row(), item, row);
	const float* x = rows::at(a.X, item, row, 0);
	Best top = 0;
	for (uint32_t first = T::lane(); 4 * (int64_t)first < a.Cols; first += 8 * Lanes) {
		float4 v[8];
		rows::take<Lanes>(v, x, first, a.Cols, a.Vectors & rows::VectorX);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			const int64_t column = 4 * (int64_t)(first + i * Lanes);
			top = max(top, best_of(v[i], column, a.Cols - column));
		}
	}
	top = T::template largest<0>(top);
	if (T::lane() == 0) put(a, T::row(), top);
}

// A stretch of a row a block.
__device__ void best_part(const Argmax& a) {
	release_dependents();
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
	top = rows::Team<StretchThreads, StretchThreads>::largest<0>(top);
	if (threadIdx.x == 0) {
		a.Parts[2 * (int64_t)blockIdx.x] = (uint32_t)top;
		a.Parts[2 * (int64_t)blockIdx.x + 1] = (uint32_t)(top >> 32);
	}
}

// best_pick takes the best of the stretches of a row, a warp each.
__device__ void best_pick(const Argmax& a) {
	using T = rows::Team<128, 32>;
	release_dependents();
	if (T::row() >= a.Count) return;
	const uint32_t* parts = a.Parts + 2 * (int64_t)T::row() * a.Stretches;
	Best top = 0;
	for (uint32_t i = T::lane(); i < a.Stretches; i += 32) top = max(top, (Best)parts[2 * (int64_t)i + 1] << 32 | parts[2 * (int64_t)i]);
	top = T::largest<0>(top);
	if (T::lane() == 0) put(a, T::row(), top);
}

}  // namespace softmax
