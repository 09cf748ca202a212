// Rope.
#include "rows.cuh"

namespace rope {

// low and high are the turned elements of a pair.
__device__ inline float low(float a, float b, float cosine, float sine) { return fmaf(a, cosine, -(b * sine)); }
__device__ inline float high(float a, float b, float cosine, float sine) { return fmaf(b, cosine, a * sine); }

// A Unit is four pairs in two quads of a head, or one pair in two elements, with the
// cosines and sines that turn them. Without a place there is none.
struct Unit {
	float *first, *second;
	const float *cosines, *sines;
	bool there;

	__device__ void find(const Rope& a, const rows::Place& p) {
		uint32_t place;
		there = p.left > 0 && rows::place_of(a.Pos, p.item, place);
		if (!there) return;
		const uint32_t wide = a.Vectors ? 4 : 1, unit = (uint32_t)(p.column / 4);
		const uint32_t head = rows::divide(unit, a.PerHead), pair = (unit - head * a.PerHead.By) * wide;
		first = rows::at(a.X, p.item, p.row, (int64_t)head * a.Head) + (a.Interleaved ? 2 * pair : pair);
		second = first + (a.Interleaved ? wide : a.Half);
		cosines = a.Table + ((int64_t)place + a.Pos.Added + p.row) * (2 * a.Half) + pair;
		sines = cosines + a.Half;
	}
};

// A block takes 512 units, a thread two of them, whose loads all come before the first
// store.
__device__ void turn(const Rope& a) {
	rows::Place p[rows::Each];
	rows::places(a, p);
	Unit u[rows::Each];
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) u[i].find(a, p[i]);
	float4 v[rows::Each], w[rows::Each], co[rows::Each], si[rows::Each];
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		if (!u[i].there) continue;
		if (a.Vectors) {
			v[i] = load4(u[i].first);
			w[i] = load4(u[i].second);
			co[i] = load4(u[i].cosines);
			si[i] = load4(u[i].sines);
		} else {
			v[i].x = *u[i].first;
			w[i].x = *u[i].second;
			co[i].x = *u[i].cosines;
			si[i].x = *u[i].sines;
		}
	}
#pragma unroll
	for (uint32_t i = 0; i < rows::Each; i++) {
		if (!u[i].there) continue;
		const float4 x = v[i], y = w[i], c = co[i], s = si[i];
		if (!a.Vectors) {
			*u[i].first = low(x.x, y.x, c.x, s.x);
			*u[i].second = high(x.x, y.x, c.x, s.x);
		} else if (a.Interleaved) {
			store4(u[i].first, {low(x.x, x.y, c.x, s.x), high(x.x, x.y, c.x, s.x), low(x.z, x.w, c.y, s.y), high(x.z, x.w, c.y, s.y)});
			store4(u[i].second, {low(y.x, y.y, c.z, s.z), high(y.x, y.y, c.z, s.z), low(y.z, y.w, c.w, s.w), high(y.z, y.w, c.w, s.w)});
		} else {
			store4(u[i].first, {low(x.x, y.x, c.x, s.x), low(x.y, y.y, c.y, s.y), low(x.z, y.z, c.z, s.z), low(x.w, y.w, c.w, s.w)});
			store4(u[i].second, {high(x.x, y.x, c.x, s.x), high(x.y, y.y, c.y, s.y), high(x.z, y.z, c.z, s.z), high(x.w, y.w, c.w, s.w)});
		}
	}
}

}  // namespace rope
