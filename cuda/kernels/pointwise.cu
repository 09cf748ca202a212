// Map, Magnitude, Add, Scale, GLU and SwiGLU. A block takes 512 quads of elements, a
// thread two of them; see places in rows.cuh. They are found while the kernel before ends.
#include "epilogue.cuh"
#include "rows.cuh"

namespace pointwise {

using rows::Each;
using rows::Place;

// each applies f to the elements of quads.
template <class F>
__device__ float4 each(float4 a, F f) {
	return {f(a.x), f(a.y), f(a.z), f(a.w)};
}

template <class F>
__device__ float4 each(float4 a, float4 b, F f) {
	return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w)};
}

// A Quick is a quad where all are whole and aligned, and so few that they are counted in 32
// bits: most of what a thread does here would otherwise be to find its place.
struct Quick {
	uint32_t item, row, quad;
	bool there;
};

template <class A>
__device__ bool quick(const A& a, uint32_t vectors) {
	return (a.Vectors & vectors) == vectors && a.Cols % 4 == 0 && a.Units < 1ll << 31;
}

template <class A>
__device__ Quick place(const A& a, uint32_t i) {
	const uint32_t unit = (blockIdx.x * Each + i) * rows::VisitThreads + threadIdx.x;
	Quick q = {0, 0, unit, unit < (uint32_t)a.Units};
	if (a.Quads.By == (uint32_t)a.Units) return q;  // one row
	q.row = rows::divide(unit, a.Quads);
	q.quad = unit - q.row * a.Quads.By;
	if ((int64_t)a.Rows.By * a.Quads.By == a.Units) return q;  // one item
	q.item = rows::divide(q.row, a.Rows);
	q.row -= q.item * a.Rows.By;
	return q;
}

template <class V>
__device__ float* at(const V& v, const Quick& q) {
	return rows::at(v, q.item, q.row, 4 * (int64_t)q.quad);
}

// visit stores what f makes of each element of X.
template <class A, class F>
__device__ void visit(const A& a, F f) {
	if (quick(a, rows::VectorX | rows::VectorY)) {
		float4 v[Each];
		Quick q[Each];
#pragma unroll
		for (uint32_t i = 0; i < Each; i++) q[i] = place(a, i);
		wait_dependency();
#pragma unroll
		for (uint32_t i = 0; i < Each; i++)
			if (q[i].there) v[i] = load4(at(a.X, q[i]));
#pragma unroll
		for (uint32_t i = 0; i < Each; i++)
			if (q[i].there) store4(at(a.Y, q[i]), each(v[i], f));
		return;
	}
	Place p[Each];
	rows::places(a, p);
	wait_dependency();
	float4 v[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) v[i] = rows::load(rows::at(a.X, p[i]), p[i].left, a.Vectors & rows::VectorX);
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, each(v[i], f));
}

// pairs stores what f makes of two elements of a row of X: those that are as far from the
// elements number first and second as the result is from the beginning of its row. Fours is
// f of four of them.
template <class A, class F, class Fours>
__device__ void pairs(const A& a, int64_t first, int64_t second, F f, Fours fours) {
	if (quick(a, rows::VectorX | rows::VectorY)) {
		float4 v[Each], w[Each];
		Quick q[Each];
#pragma unroll
		for (uint32_t i = 0; i < Each; i++) q[i] = place(a, i);
		wait_dependency();
#pragma unroll
		for (uint32_t i = 0; i < Each; i++) {
			if (!q[i].there) continue;
			const float* x = at(a.X, q[i]);
			v[i] = load4(x + first);
			w[i] = load4(x + second);
		}
#pragma unroll
		for (uint32_t i = 0; i < Each; i++)
			if (q[i].there) store4(at(a.Y, q[i]), fours(v[i], w[i]));
		return;
	}
	Place p[Each];
	rows::places(a, p);
	wait_dependency();
	float4 v[Each], w[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		v[i] = rows::load(rows::at(a.X, p[i]) + first, p[i].left, a.Vectors & rows::VectorX);
		w[i] = rows::load(rows::at(a.X, p[i]) + second, p[i].left, a.Vectors & rows::VectorX);
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, each(v[i], w[i], f));
}

// map_as is map for one kind of epilogue: so the kind is looked at once.
template <uint32_t Kind>
__device__ void map_as(const Map& a) {
	visit(a, [&](float v) { return apply({Kind, a.Epilogue.Alpha}, v, v); });
}

__device__ void map(const Map& a) {
	switch (a.Epilogue.Kind) {
	case KindSiLU:
		return map_as<KindSiLU>(a);
	case KindReLU:
		return map_as<KindReLU>(a);
	case KindLeaky:
		return map_as<KindLeaky>(a);
	case KindGELU:
		return map_as<KindGELU>(a);
	case KindTanh:
		return map_as<KindTanh>(a);
	case KindSigmoid:
		return map_as<KindSigmoid>(a);
	}
	map_as<KindNone>(a);
}

__device__ void scale(const Scale& a) {
	visit(a, [&](float v) { return a.Factor * v; });
}

// length returns sqrt(re² + im²). Both are scaled by a power of two, so that the larger is
// about one. An infinity outdoes NaN.
__device__ inline float length(float re, float im) {
	const uint32_t a = bits_of(re) & 0x7fffffffu, b = bits_of(im) & 0x7fffffffu, infinite = 0x7f800000u;
	if (max(a, b) >= infinite) return a == infinite || b == infinite ? infinity() : quiet_nan();
	const uint32_t exponent = min(max(max(a, b) & infinite, 0x00800000u), 0x7e000000u);
	const float down = float_of(0x7f000000u - exponent);
	const float s = float_of(a) * down, t = float_of(b) * down;
	return sqrtf(fmaf(s, s, t * t)) * float_of(exponent);
}

__device__ void magnitude(const Magnitude& a) {
	pairs(a, 0, a.Width, length, [](float4 re, float4 im) { return each(re, im, length); });
}

__device__ void add(const Addition& a) {
	if (quick(a, rows::VectorX | rows::VectorB | rows::VectorY)) {
		float4 v[Each], w[Each];
		Quick q[Each];
#pragma unroll
		for (uint32_t i = 0; i < Each; i++) q[i] = place(a, i);
		wait_dependency();
#pragma unroll
		for (uint32_t i = 0; i < Each; i++) {
			if (!q[i].there) continue;
			v[i] = load4(at(a.A, q[i]));
			w[i] = load4(at(a.B, q[i]));
		}
#pragma unroll
		for (uint32_t i = 0; i < Each; i++)
			if (q[i].there) store4(at(a.Y, q[i]), each(v[i], w[i], [](float x, float y) { return x + y; }));
		return;
	}
	Place p[Each];
	rows::places(a, p);
	wait_dependency();
	float4 v[Each], w[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		v[i] = rows::load(rows::at(a.A, p[i]), p[i].left, a.Vectors & rows::VectorX);
		w[i] = rows::load(rows::at(a.B, p[i]), p[i].left, a.Vectors & rows::VectorB);
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		const float4 sum = each(v[i], w[i], [](float x, float y) { return x + y; });
		rows::store(rows::at(a.Y, p[i]), p[i].left, a.Vectors & rows::VectorY, sum);
	}
}

// small is v·sigmoid(g), with swish times g, where the exponential of g may be too small to
// be told from 0 but meet a large v: it comes in two factors.
__device__ inline float small(float v, float g, bool swish) {
	const float root = expf(0.5f * fmaxf(g, -174.0f));
	return (swish ? root * g : root) * v * root;
}

// open is v·sigmoid(g), with swish times g, for g from −80 on. The reciprocal is of a number
// from 1 to 1e35, where it is right to the last place but one.
__device__ inline float open(float v, float g, bool swish) {
	const float some = v * reciprocal_flush(1.0f + expf(-g));
	return swish ? some * g : some;
}

// gated is open for every g.
__device__ inline float gated(float v, float g, bool swish) { return g < -80.0f ? small(v, g, swish) : open(v, g, swish); }

template <bool Swish>
__device__ void gate_as(const Gate& a) {
	const auto one = [](float v, float g) { return gated(v, g, Swish); };
	pairs(a, a.Value, a.Gate, one, [=](float4 v, float4 g) {
		if (fminf(fminf(g.x, g.y), fminf(g.z, g.w)) < -80.0f) return each(v, g, one);
		return each(v, g, [](float v, float g) { return open(v, g, Swish); });
	});
}

__device__ void gate(const Gate& a) {
	if (a.Swish) gate_as<true>(a);
	else gate_as<false>(a);
}

}  // namespace pointwise
