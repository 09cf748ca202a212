// Rope.
#include "rows.cuh"

namespace rope {

// low and high are the turned elements of a pair.
__device__ inline float low(float a, float b, float cosine, float sine) { return fmaf(a, cosine, -(b * sine)); }
__device__ inline float high(float a, float b, float cosine, float sine) { return fmaf(b, cosine, a * sine); }

// turn_one turns the pair at two places.
__device__ inline void turn_one(float* a, float* b, float cosine, float sine) {
	const float v = *a, w = *b;
	*a = low(v, w, cosine, sine);
	*b = high(v, w, cosine, sine);
}

// turn_four turns four pairs that lie in two quads, beside each other or one after another.
__device__ inline void turn_four(float* first, float* second, float4 co, float4 si, bool interleaved) {
	const float4 v = load4(first), w = load4(second);
	if (interleaved) {
		store4(first, {low(v.x, v.y, co.x, si.x), high(v.x, v.y, co.x, si.x), low(v.z, v.w, co.y, si.y), high(v.z, v.w, co.y, si.y)});
		store4(second, {low(w.x, w.y, co.z, si.z), high(w.x, w.y, co.z, si.z), low(w.z, w.w, co.w, si.w), high(w.z, w.w, co.w, si.w)});
		return;
	}
	store4(first, {low(v.x, w.x, co.x, si.x), low(v.y, w.y, co.y, si.y), low(v.z, w.z, co.z, si.z), low(v.w, w.w, co.w, si.w)});
	store4(second, {high(v.x, w.x, co.x, si.x), high(v.y, w.y, co.y, si.y), high(v.z, w.z, co.z, si.z), high(v.w, w.w, co.w, si.w)});
}

// A block takes 512 units, a thread two of them.
__device__ void turn(const Rope& a) {
	rows::Place p[rows::Each];
	rows::places(a, p);
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		uint32_t place;
		if (p[i].left <= 0 || !rows::place_of(a.Pos, p[i].item, place)) continue;
		const uint32_t pairs = (uint32_t)(p[i].column / 4) * (a.Vectors ? 4 : 1);
		const uint32_t head = pairs / a.Half, pair = pairs % a.Half;
		float* x = rows::at(a.X, p[i].item, p[i].row, (int64_t)head * a.Head);
		const float* cosines = a.Table + ((int64_t)place + a.Pos.Added + p[i].row) * (2 * a.Half) + pair;
		const float* sines = cosines + a.Half;
		if (a.Vectors) {
			x += a.Interleaved ? 2 * pair : pair;
			turn_four(x, x + (a.Interleaved ? 4 : a.Half), load4(cosines), load4(sines), a.Interleaved);
		} else {
			x += a.Interleaved ? 2 * pair : pair;
			turn_one(x, x + (a.Interleaved ? 1 : a.Half), *cosines, *sines);
		}
	}
}

}  // namespace rope
